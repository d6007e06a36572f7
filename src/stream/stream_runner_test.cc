#include "stream/stream_runner.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stream/answer_json.h"

namespace tactus {
namespace {

using testing::HasSubstr;

class TextPicture final : public Picture {
 public:
  explicit TextPicture(std::string text) : text_(std::move(text)) {}
  Expected<std::string> Jpeg() override {
    if (text_ == "broken") return InvalidArgument("the frame is broken");
    return text_;
  }

 private:
  std::string text_;
};

// Brings `frames`, an empty one for what cannot be decoded, then ends; or hangs until a stop.
class ScriptedSource final : public VideoSource {
 public:
  ScriptedSource(std::vector<std::string> frames, bool hangs, std::stop_token stop)
      : frames_(std::move(frames)), hangs_(hangs), stop_(std::move(stop)) {}

  Expected<std::optional<SourceFrame>> Read() override {
    if (next_ < frames_.size()) {
      const std::string& text = frames_[next_];
      SourceFrame frame{nullptr, Millis(static_cast<std::int64_t>(next_++))};
      if (!text.empty()) frame.picture = std::make_unique<TextPicture>(text);
      return frame;
    }
    if (!hangs_) return std::nullopt;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop_, [] { return false; });
    return Fail(ErrorCode::kCancelled, "the stream was stopped");
  }

 private:
  std::vector<std::string> frames_;
  bool hangs_;
  std::stop_token stop_;
  std::size_t next_ = 0;
};

// Answers on a thread of its own, as `answer` says of the JPEG.
class ScriptedSink final : public FrameSink {
 public:
  explicit ScriptedSink(std::function<FrameAnswer(const std::string&)> answer)
      : answer_(std::move(answer)), thread_([this](std::stop_token stop) { Run(stop); }) {}

  Expected<Duration> Promise() override { return Seconds(600); }
  void Send(JpegBytes jpeg, Duration left, OnFrameAnswer done) override {
    EXPECT_GT(left, Duration{});
    const std::lock_guard lock(mutex_);
    sent_.push_back({std::move(jpeg), std::move(done)});
    changed_.notify_one();
  }
  void GiveUp() override {
    std::deque<std::pair<JpegBytes, OnFrameAnswer>> sent;
    {
      const std::lock_guard lock(mutex_);
      sent.swap(sent_);
    }
    FrameAnswer stopped;
    stopped.end = FrameEnd::kStopped;
    for (const auto& [jpeg, done] : sent) done(FrameAnswer(stopped));
  }

 private:
  void Run(std::stop_token stop) {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !sent_.empty(); })) return;
      auto [jpeg, done] = std::move(sent_.front());
      sent_.pop_front();
      lock.unlock();
      done(answer_(*jpeg));
    }
  }

  std::function<FrameAnswer(const std::string&)> answer_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::pair<JpegBytes, OnFrameAnswer>> sent_;
  std::jthread thread_;
};

FrameAnswer Served(const std::string& jpeg) {
  FrameAnswer answer;
  answer.end = FrameEnd::kServed;
  answer.outputs.push_back(
      {"size", DataType::kUint8, {1}, std::string(1, static_cast<char>(jpeg.size()))});
  return answer;
}

StreamConfig FileConfig() {
  StreamConfig config;
  config.source.source = "test.mp4";
  config.model = "m";
  config.realtime = false;
  config.reconnect.interval = Millis(1);
  return config;
}

// The runner's threads end by themselves; a test that hangs is ended by its time limit.
StreamReading WaitFor(const StreamRunner& runner, std::function<bool(const StreamReading&)> done) {
  for (;;) {
    StreamReading reading = runner.reading();
    if (done(reading)) return reading;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool Finished(const StreamReading& reading) {
  return reading.state == StreamState::kEnded || reading.state == StreamState::kFailed;
}

// Without this, a file's frames could be lost where each is wanted, or an answer go astray.
TEST(StreamRunner, AnswersEachFrameOfAFileAndCountsWhatIsWrongWithIt) {
  std::mutex mutex;
  std::vector<std::string> lines;
  StreamParts parts;
  parts.sink = std::make_shared<ScriptedSink>([](const std::string& jpeg) {
    if (jpeg != "refused") return Served(jpeg);
    FrameAnswer answer;
    answer.end = FrameEnd::kRefused;
    answer.error = "no room";
    return answer;
  });
  parts.on_answer = [&](const AnsweredFrame& frame) {
    const std::lock_guard lock(mutex);
    lines.push_back(ToJsonLine(frame));
  };
  parts.open = [](const SourceOptions&, std::stop_token stop) {
    return std::make_unique<ScriptedSource>(
        std::vector<std::string>{"one", "", "three", "broken", "refused", "sixsix"}, false, stop);
  };
  StreamConfig config = FileConfig();
  config.flow.in_flight = 1;
  StreamRunner runner("door", config, std::move(parts));
  ASSERT_TRUE(runner.Start());
  const StreamReading end = WaitFor(runner, Finished);
  runner.Stop();
  EXPECT_EQ(end.state, StreamState::kEnded);
  EXPECT_EQ(end.error, "no room");
  EXPECT_EQ(end.counts.read, 6u);
  EXPECT_EQ(end.counts.of(FrameEnd::kServed), 3u);
  EXPECT_EQ(end.counts.of(FrameEnd::kCorrupt), 1u);
  EXPECT_EQ(end.counts.of(FrameEnd::kUnmade), 1u);
  EXPECT_EQ(end.counts.of(FrameEnd::kRefused), 1u);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], HasSubstr(R"("stream":"door","frame":1,)"));
  EXPECT_THAT(lines[2], HasSubstr(R"("frame":6,)"));
  EXPECT_THAT(lines[2],
              HasSubstr(R"("outputs":{"size":{"datatype":"UINT8","shape":[1],"data":[6]}})"));
  EXPECT_THAT(ToJson("door", runner.config(), end),
              HasSubstr(R"("server":{"refused":1,"too_late":0,"failed":0})"));
}

// Without this, a camera that drops its connection would be lost, or asked for ever in vain.
TEST(StreamRunner, ReconnectsUntilTheAttemptsAreUsedUp) {
  std::atomic<int> opens = 0;
  StreamParts parts;
  parts.sink = std::make_shared<ScriptedSink>(Served);
  parts.open = [&opens](const SourceOptions&,
                        std::stop_token stop) -> Expected<std::unique_ptr<VideoSource>> {
    const int open = ++opens;
    if (open > 3) return Fail(ErrorCode::kUnavailable, "camera: connection refused");
    return std::make_unique<ScriptedSource>(std::vector<std::string>{"a", "b"}, false, stop);
  };
  StreamConfig config = FileConfig();
  config.source.source = "rtsp://camera/1";
  config.reconnect.attempts = 4;
  StreamRunner runner("camera", config, std::move(parts));
  ASSERT_TRUE(runner.Start());
  WaitFor(runner, Finished);
  runner.Stop();
  const StreamReading end = runner.reading();
  EXPECT_EQ(end.state, StreamState::kFailed);
  EXPECT_EQ(end.error, "camera: connection refused");
  EXPECT_EQ(opens.load(), 3 + 4);  // the first of the four attempts follows the third's end
  EXPECT_EQ(end.reconnects, 2u);
  EXPECT_EQ(end.counts.read, 6u);
  EXPECT_EQ(end.counts.ended(), 6u);
}

// Without this, a frozen camera could not be removed, or would hold up the stream beside it.
TEST(StreamRunner, AFrozenSourceStopsAtOnceAndHoldsUpNobody) {
  const auto make = [&](const std::string& name, bool frozen) {
    StreamParts parts;
    parts.sink = std::make_shared<ScriptedSink>(Served);
    parts.open = [frozen](const SourceOptions&, std::stop_token stop) {
      return std::make_unique<ScriptedSource>(std::vector<std::string>(frozen ? 1 : 50, "frame"),
                                              frozen, stop);
    };
    return std::make_unique<StreamRunner>(name, FileConfig(), std::move(parts));
  };
  const auto frozen = make("frozen", true);
  const auto healthy = make("healthy", false);
  ASSERT_TRUE(frozen->Start());
  ASSERT_TRUE(healthy->Start());
  EXPECT_EQ(WaitFor(*healthy, Finished).counts.of(FrameEnd::kServed), 50u);
  const StreamReading hangs =
      WaitFor(*frozen, [](const StreamReading& reading) { return reading.counts.ended() == 1; });
  EXPECT_EQ(hangs.state, StreamState::kRunning);
  frozen->Stop();
  EXPECT_EQ(frozen->reading().counts.of(FrameEnd::kServed), 1u);
}

// Without this, a stream whose host's name nobody answers for could not be removed for minutes.
TEST(StreamRunner, ASourceThatHearsNoStopWhileItIsOpenedIsLeftToItself) {
  struct Resolver {  // outlives the stream, as what is opened may
    std::atomic<bool> asked{false};
    std::atomic<bool> answers{false};
    std::atomic<bool> closed{false};
  };
  const auto resolver = std::make_shared<Resolver>();
  StreamParts parts;
  parts.sink = std::make_shared<ScriptedSink>(Served);
  parts.open = [resolver](const SourceOptions&, const std::stop_token&) {
    const std::shared_ptr<VideoSource> closes(nullptr, [resolver](VideoSource*) {
      resolver->closed = true;
      resolver->closed.notify_all();
    });
    resolver->asked = true;
    resolver->asked.notify_all();
    resolver->answers.wait(false);
    return Expected<std::unique_ptr<VideoSource>>(Fail(ErrorCode::kUnavailable, "no such host"));
  };
  StreamRunner runner("camera", FileConfig(), std::move(parts));
  ASSERT_TRUE(runner.Start());
  resolver->asked.wait(false);
  runner.Stop();
  EXPECT_FALSE(resolver->answers);
  const StreamReading end = runner.reading();
  EXPECT_EQ(end.counts.read, 0u);
  EXPECT_EQ(end.error, "test.mp4: no frame came before the stream was stopped");
  resolver->answers = true;
  resolver->answers.notify_all();
  resolver->closed.wait(false);
}

// Without this, a recording would be read through at once, or end where it should begin again.
TEST(StreamRunner, ALoopGoesOnAtTheRecordingsPaceUntilItIsStopped) {
  StreamParts parts;
  parts.sink = std::make_shared<ScriptedSink>(Served);
  std::atomic<int> opens = 0;
  parts.open = [&opens](const SourceOptions&, std::stop_token stop) {
    ++opens;
    return std::make_unique<ScriptedSource>(std::vector<std::string>(4, "frame"), false, stop);
  };
  StreamConfig config = FileConfig();
  config.realtime = true;
  config.loop = true;
  StreamRunner runner("loop", config, std::move(parts));
  ASSERT_TRUE(runner.Start());
  const auto reading = WaitFor(runner, [](const StreamReading& r) { return r.counts.read >= 12; });
  EXPECT_GE(opens.load(), 3);
  EXPECT_EQ(reading.reconnects, 0u);  // a lap is none
  runner.Stop();
  const StreamReading end = runner.reading();
  EXPECT_EQ(end.counts.ended(), end.counts.read);
}

// Without this, a stream that did all that it was asked for would end with an error of its own
// making.
TEST(StreamRunner, WhatItsOwnStopGivesUpIsNoError) {
  // Answers nothing until it is given up.
  class SilentSink final : public FrameSink {
   public:
    Expected<Duration> Promise() override { return Seconds(600); }
    void Send(JpegBytes, Duration, OnFrameAnswer done) override { done_ = std::move(done); }
    void GiveUp() override {
      if (!done_) return;
      FrameAnswer answer;
      answer.end = FrameEnd::kStopped;
      answer.error = "CANCELLED";
      std::exchange(done_, nullptr)(std::move(answer));
    }

   private:
    OnFrameAnswer done_;  // of the one frame in flight; set before the stop joins the sender
  };
  StreamParts parts;
  parts.sink = std::make_shared<SilentSink>();
  parts.open = [](const SourceOptions&, std::stop_token stop) {
    return std::make_unique<ScriptedSource>(std::vector<std::string>(2, "frame"), true, stop);
  };
  StreamConfig config = FileConfig();
  config.realtime = true;
  config.flow.in_flight = 1;
  StreamRunner runner("door", config, std::move(parts));
  ASSERT_TRUE(runner.Start());
  WaitFor(runner, [](const StreamReading& r) { return r.in_flight == 1 && r.waiting == 1; });
  EXPECT_EQ(runner.reading().state, StreamState::kRunning);
  runner.Stop();
  const StreamReading end = runner.reading();
  EXPECT_EQ(end.state, StreamState::kEnded);
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(end.counts.of(FrameEnd::kStopped), 2u);
}

}  // namespace
}  // namespace tactus
