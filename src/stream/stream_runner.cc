#include "stream/stream_runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/memory_guard.h"
#include "platform/repeated_task.h"

namespace tactus {
namespace {

// Where neither the pipeline nor the stream says how long an answer may take.
constexpr Duration kDefaultSlo = Seconds(1);
// A recording that fell behind its own pace by more goes on from where it is.
constexpr Duration kMostBehind = Seconds(1);
// A recording's last frame, before it begins again.
constexpr Duration kStands = Millis(40);

}  // namespace

// A frame at the server.
struct StreamRunner::Flight {
  Frame frame;  // without its picture
  TimePoint sent;
  JpegBytes jpeg;
};

std::string_view Name(StreamState state) {
  switch (state) {
    case StreamState::kConnecting:
      return "connecting";
    case StreamState::kRunning:
      return "running";
    case StreamState::kWaiting:
      return "waiting";
    case StreamState::kEnded:
      return "ended";
    case StreamState::kFailed:
      break;
  }
  return "failed";
}

StreamRunner::StreamRunner(std::string name, StreamConfig config, StreamParts parts)
    : name_(std::move(name)),
      config_(std::move(config)),
      parts_(std::move(parts)),
      live_(IsLive(config_.source.source)) {}

Status StreamRunner::Start() {
  const auto promised = parts_.sink->Promise();
  if (!promised) return std::unexpected(promised.error());
  Duration& slo = config_.flow.slo;
  if (slo == Duration{}) slo = *promised > Duration{} ? *promised : kDefaultSlo;
  config_.flow.keeps_stale = !live_ && !config_.realtime;
  flow_.emplace(config_.flow);
  Status begun = WithMemory("stream '" + name_ + "'", [this]() -> Status {
    sender_ = std::jthread([this](std::stop_token stop) { SendAll(std::move(stop)); });
    reader_ = std::jthread([this](std::stop_token stop) { ReadAll(std::move(stop)); });
    return {};
  });
  if (!begun) Stop();
  return begun;
}

void StreamRunner::AskToStop() {
  reader_.request_stop();
  sender_.request_stop();
}

void StreamRunner::Stop() {
  if (!flow_) return;
  AskToStop();
  if (reader_.joinable()) reader_.join();
  if (sender_.joinable()) sender_.join();
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (flow_->counts().read == 0 && error_.empty()) {
      error_ = Shown(config_.source.source) + ": no frame came before the stream was stopped";
    }
    if (state_ != StreamState::kFailed) state_ = StreamState::kEnded;
  }
  parts_.sink->GiveUp();
  std::unique_lock lock(mutex_);
  flow_->Clear();
  changed_.wait(lock, [this] { return flow_->in_flight() == 0; });
}

StreamReading StreamRunner::reading() const {
  const std::lock_guard lock(mutex_);
  StreamReading reading;
  reading.state = state_;
  reading.error = error_;
  // A file that begins again was not lost.
  reading.reconnects = live_ && opened_ > 0 ? opened_ - 1 : 0;
  reading.slo = config_.flow.slo;
  if (!flow_) return reading;
  reading.counts = flow_->counts();
  reading.waiting = flow_->waiting();
  reading.in_flight = flow_->in_flight();
  // The source is at its end, but frames are still under way.
  if (state_ == StreamState::kEnded &&
      reading.waiting + static_cast<std::size_t>(reading.in_flight) > 0) {
    reading.state = StreamState::kRunning;
  }
  std::vector<Duration> last(
      latencies_.begin(),
      latencies_.begin() + static_cast<std::ptrdiff_t>(std::min(answers_, latencies_.size())));
  if (last.empty()) return reading;
  std::ranges::sort(last);
  reading.latency_p50 = last[(last.size() - 1) / 2];
  reading.latency_p99 = last[(last.size() - 1) * 99 / 100];
  return reading;
}

void StreamRunner::SetState(StreamState state, const std::string& error) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  if (!error.empty()) error_ = error;
}

// libav looks up host names without a time limit and hears no stop meanwhile. So it opens on a
// thread that is left to itself when a stop comes; what it opens after that it closes again.
Expected<std::unique_ptr<VideoSource>> StreamRunner::Open(std::stop_token stop) {
  struct Opening {
    std::mutex mutex;
    std::condition_variable_any done;
    std::optional<Expected<std::unique_ptr<VideoSource>>> source;
  };
  const auto opening = std::make_shared<Opening>();
  const Status begun = WithMemory(Shown(config_.source.source), [&]() -> Status {
    std::thread([opening, open = parts_.open, options = config_.source, stop] {
      auto source = WithMemory(Shown(options.source), [&] { return open(options, stop); });
      {
        const std::lock_guard lock(opening->mutex);
        opening->source.emplace(std::move(source));
      }
      opening->done.notify_all();
    }).detach();
    return {};
  });
  if (!begun) return std::unexpected(begun.error());
  std::unique_lock lock(opening->mutex);
  opening->done.wait(lock, stop, [&] { return opening->source.has_value(); });
  if (!opening->source) return Fail(ErrorCode::kCancelled, "the stream was stopped");
  return *std::exchange(opening->source, std::nullopt);
}

void StreamRunner::ReadAll(std::stop_token stop) {
  Reconnect reconnect(config_.reconnect);
  while (!stop.stop_requested()) {
    SetState(StreamState::kConnecting);
    auto source = Open(stop);
    const std::uint64_t before = reading().counts.read;
    const Status end =
        source ? Pump(**source, reconnect, stop) : Status(std::unexpected(source.error()));
    if (stop.stop_requested()) return;
    const bool brought = reading().counts.read > before;
    if (!live_ && end && config_.loop && brought) {
      // As long as a frame stands, or a file of one would be opened without a pause.
      if (config_.realtime && !SleepUnlessStopped(kStands, stop)) return;
      continue;
    }
    if (!live_ && end)
      return SetState(
          StreamState::kEnded,
          brought ? "" : Shown(config_.source.source) + ": there is no frame in this file");
    const std::string why =
        end ? Shown(config_.source.source) + ": the source ended" : end.error().message;
    // A file does not come back by waiting.
    const bool final = !live_ || (!end && end.error().code == ErrorCode::kUnimplemented);
    const auto wait = final ? std::nullopt : reconnect.Lost();
    if (!wait) return SetState(StreamState::kFailed, why);
    SetState(StreamState::kWaiting, why);
    if (!SleepUnlessStopped(*wait, stop)) return;
  }
}

// Until the source ends; the error is the source's.
Status StreamRunner::Pump(VideoSource& source, Reconnect& reconnect, std::stop_token stop) {
  std::optional<TimePoint> origin;  // of the source's own clock
  for (;;) {
    auto frame = WithMemory("a frame", [&] { return source.Read(); });
    if (!frame) return std::unexpected(frame.error());
    if (!*frame) return {};
    if (!origin) {
      const std::lock_guard lock(mutex_);
      ++opened_;
      state_ = StreamState::kRunning;
    }
    reconnect.Arrived();
    const auto captured = CapturedAt(**frame, origin, stop);
    if (!captured) return {};
    {
      const std::lock_guard lock(mutex_);
      flow_->Offer(*captured, std::move((*frame)->picture));
    }
    changed_.notify_all();
  }
}

// When the frame counts as captured, which is waited for; nothing where a stop came first.
std::optional<TimePoint> StreamRunner::CapturedAt(const SourceFrame& frame,
                                                  std::optional<TimePoint>& origin,
                                                  std::stop_token stop) {
  const TimePoint now = clock_.Now();
  if (!origin) origin = now - frame.at;
  if (live_) return now;
  if (!config_.realtime) {
    // As many as the server answers: a frame counts from when it can be sent.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] {
      return flow_->waiting() == 0 && flow_->in_flight() < config_.flow.in_flight;
    });
    if (stop.stop_requested()) return std::nullopt;
    return clock_.Now();
  }
  TimePoint due = *origin + frame.at;
  if (due < now - kMostBehind || due > now + Seconds(60)) {
    origin = now - frame.at;
    due = now;
  }
  if (due > now && !SleepUnlessStopped(due - now, stop)) return std::nullopt;
  return due;
}

void StreamRunner::SendAll(std::stop_token stop) {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return flow_->may_take(); })) return;
    if (stop.stop_requested()) return;
    std::optional<Frame> frame = flow_->Take(clock_.Now());
    lock.unlock();
    if (frame) SendOne(*std::move(frame));
    changed_.notify_all();  // the queue is shorter
  }
}

void StreamRunner::SendOne(Frame frame) {
  auto jpeg = WithMemory("a frame", [&] { return frame.picture->Jpeg(); });
  frame.picture.reset();
  if (!jpeg) return EndUnsent(frame, FrameEnd::kUnmade, jpeg.error().message);
  const TimePoint now = clock_.Now();
  const Duration left = frame.deadline - now;
  if (left <= Duration{}) return EndUnsent(frame, FrameEnd::kStale, "");
  auto bytes = std::make_shared<const std::string>(*std::move(jpeg));
  auto flight = std::make_shared<Flight>(Flight{std::move(frame), now, bytes});
  parts_.sink->Send(std::move(bytes), left,
                    [this, flight](FrameAnswer&& answer) { OnAnswer(*flight, std::move(answer)); });
}

void StreamRunner::EndUnsent(const Frame& frame, FrameEnd end, const std::string& error) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  flow_->End(frame, end, now, now);
  if (!error.empty()) error_ = error;
}

void StreamRunner::OnAnswer(const Flight& flight, FrameAnswer&& answer) {
  const TimePoint now = clock_.Now();
  const Duration latency = now - flight.frame.captured;
  const bool served = answer.end == FrameEnd::kServed;
  if (served && parts_.on_answer) {
    const auto age = static_cast<std::uint64_t>(std::max(0.0, ToMillis(latency)));
    // Who watches misses an answer for which there is no memory.
    (void)WithMemory("an answer", [&]() -> Status {
      parts_.on_answer({.stream = name_,
                        .number = flight.frame.number,
                        .captured_at = WallClock::UnixMillis() - age,
                        .latency = latency,
                        .end = now > flight.frame.deadline ? FrameEnd::kLate : FrameEnd::kServed,
                        .answer = answer,
                        .jpeg = flight.jpeg});
      return {};
    });
  }
  // Last: Stop goes on once nothing is in flight, and the stream may then be gone.
  const std::lock_guard lock(mutex_);
  flow_->End(flight.frame, answer.end, flight.sent, now);
  if (served) latencies_[answers_++ % latencies_.size()] = latency;
  // What the stop gave up is no error.
  const bool given_up = stopped_ && answer.end == FrameEnd::kStopped;
  if (!answer.error.empty() && !given_up) error_ = std::move(answer.error);
  changed_.notify_all();
}

}  // namespace tactus
