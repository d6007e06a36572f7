#include "cluster/site/scheduler_link.h"

#include <chrono>
#include <mutex>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "base/underway.h"
#include "cluster/site/schedulers_list.h"
#include "cluster/site/wire.h"
#include "cluster/site/write_queue.h"
#include "cluster/tls/channel.h"
#include "platform/repeated_task.h"
#include "site.grpc.pb.h"

namespace tactus {
namespace {

// Attempts in a row that hear nothing before that is said: a restart takes fewer.
constexpr int kAttemptsUntilSaid = 20;

bool IsRefusal(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
         status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
}

}  // namespace

struct SchedulerLink::Body {
  class Stream;

  // Of one scheduler.
  struct Place {
    std::unique_ptr<site::Site::Stub> stub;
    std::shared_ptr<Stream> stream;  // null: between two attempts
    std::chrono::steady_clock::time_point again{};
    std::string refused;  // what it said last when it ended a stream
    int unheard = 0;      // attempts in a row in which it said nothing
  };

  explicit Body(Options with) : options(std::move(with)), places(options.schedulers.size()) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i].stub = site::Site::NewStub(
          ChannelTo(options.schedulers[i],
                    {.tls = options.tls, .most_message = 64 << 20, .keeps_alive = true}));
    }
  }

  // Connects to whom it is time to; how long until it is again.
  Duration Connect();
  void OnHeard(std::uint32_t scheduler);
  void OnGone(std::uint32_t scheduler, Stream* stream, const grpc::Status& why);

  const Options options;
  std::mutex mutex;
  std::vector<Place> places;
  bool stop = false;
  Underway<Stream> streams;
  RepeatedTask thread;
};

// One attempt at one scheduler. Messages that wait for the one under way go together.
class SchedulerLink::Body::Stream final
    : public grpc::ClientBidiReactor<site::FromPeer, site::ToPeer>,
      public std::enable_shared_from_this<Stream> {
 public:
  Stream(Body& body, std::uint32_t scheduler) : body_(body), scheduler_(scheduler) {}

  void Begin() {
    context_.AddMetadata(kSchedulersKey, Joined(body_.options.of_site));
    body_.places[scheduler_].stub->async()->Attend(&context_, this);
    StartRead(&read_);
    AddHold();  // writes come from other threads
    StartCall();
  }
  void Send(const FromPeer& message) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    auto& waiting = writes_.waiting();
    Encode(message, body_.options.now(), waiting.empty() ? waiting.emplace_back() : waiting.back());
    WriteNext();
  }
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return End();
    if (!std::exchange(heard_, true)) body_.OnHeard(scheduler_);
    auto message = Decode(read_);
    if (message) {
      body_.options.hear(scheduler_, *std::move(message));
    } else if (body_.options.say) {
      body_.options.say(body_.options.schedulers[scheduler_] + ": " + message.error().message);
    }
    read_.Clear();
    StartRead(&read_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writes_.Written();
    if (ok && !ended_) WriteNext();
  }
  void OnDone(const grpc::Status& why) override { body_.OnGone(scheduler_, this, why); }

 private:
  void WriteNext() {
    if (const site::FromPeer* next = writes_.Next()) StartWrite(next);
  }
  void End() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(ended_, true)) return;
    }
    context_.TryCancel();
    RemoveHold();
  }

  Body& body_;
  const std::uint32_t scheduler_;
  grpc::ClientContext context_;
  site::ToPeer read_;
  bool heard_ = false;  // of the reads
  std::mutex mutex_;
  WriteQueue<site::FromPeer> writes_;
  bool ended_ = false;
};

void SchedulerLink::Body::OnHeard(std::uint32_t scheduler) {
  const std::lock_guard lock(mutex);
  const bool missed = std::exchange(places[scheduler].unheard, 0) >= kAttemptsUntilSaid;
  if (missed && options.say) options.say(options.schedulers[scheduler] + " answers again");
}

void SchedulerLink::Body::OnGone(std::uint32_t scheduler, Stream* stream, const grpc::Status& why) {
  std::string news;
  {
    const std::lock_guard lock(mutex);
    Place& place = places[scheduler];
    if (place.stream.get() == stream) {
      place.stream.reset();
      place.again = std::chrono::steady_clock::now() + options.again;
    }
    // Each once, as every attempt ends alike.
    if (IsRefusal(why) && place.refused != why.error_message()) {
      news = options.schedulers[scheduler] + " refuses this process: " + why.error_message();
      place.refused = why.error_message();
    } else if (!IsRefusal(why) && !stop && ++place.unheard == kAttemptsUntilSaid) {
      news = options.schedulers[scheduler] + " does not answer: " + why.error_message() +
             "; is a scheduler up there, and do both ends have --peer-tls, or neither, with "
             "certificates of one authority that have not expired (docs/reference/site.md)?";
    }
  }
  if (!news.empty() && options.say) options.say(news);
  if (options.gone) options.gone(scheduler);
  thread.Wake();
  streams.End(stream);
}

Duration SchedulerLink::Body::Connect() {
  const std::lock_guard lock(mutex);
  const auto now = std::chrono::steady_clock::now();
  auto next = now + std::chrono::seconds(1);
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    Place& place = places[i];
    if (place.stream != nullptr) continue;
    if (place.again > now) {
      next = std::min(next, place.again);
      continue;
    }
    place.stream = std::make_shared<Stream>(*this, i);
    streams.Add(place.stream);
    place.stream->Begin();
  }
  return next - now;
}

SchedulerLink::SchedulerLink(Options options) : body_(std::make_unique<Body>(std::move(options))) {}

SchedulerLink::~SchedulerLink() { Stop(); }

void SchedulerLink::Start() {
  body_->thread.Start("link", [this] { return body_->Connect(); });
}

void SchedulerLink::Stop() {
  {
    const std::lock_guard lock(body_->mutex);
    body_->stop = true;
  }
  body_->thread.Stop();
  for (const auto& stream : body_->streams.all()) stream->Cancel();
  body_->streams.Wait();
}

void SchedulerLink::Send(std::uint32_t scheduler, const FromPeer& message) {
  std::shared_ptr<Body::Stream> stream;
  {
    const std::lock_guard lock(body_->mutex);
    if (body_->stop || scheduler >= body_->places.size()) return;
    stream = body_->places[scheduler].stream;
  }
  if (stream != nullptr) stream->Send(message);
}

}  // namespace tactus
