// One stream in real time: a thread that reads its source, and one that sends its frames. A source
// that hangs holds up nobody but its own stream.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "platform/wall_clock.h"
#include "stream/frame_flow.h"
#include "stream/frame_sink.h"
#include "stream/stream_config.h"
#include "stream/video_source.h"

namespace tactus {

// A frame whose answer came. Views are good during the call.
struct AnsweredFrame {
  const std::string& stream;
  std::uint64_t number = 0;
  std::uint64_t captured_at = 0;  // milliseconds since 1970
  Duration latency{};             // from capture to answer
  FrameEnd end = FrameEnd::kServed;
  const FrameAnswer& answer;
  const JpegBytes& jpeg;
};

enum class StreamState : std::uint8_t {
  kConnecting,  // the source is being opened
  kRunning,     // frames come
  kWaiting,     // lost; tried again after a while
  kEnded,       // the file's end, or it was stopped; every frame is answered or given up
  kFailed,      // given up
};
std::string_view Name(StreamState state);

struct StreamReading {
  StreamState state = StreamState::kConnecting;
  std::string error;             // the last of the source or of the server; empty: none yet
  std::uint64_t reconnects = 0;  // times that a camera came back
  FrameCounts counts;
  std::size_t waiting = 0;
  int in_flight = 0;
  Duration slo{};
  // Latencies of the last answers, at most 256; zero where there were none.
  Duration latency_p50{};
  Duration latency_p99{};
};

using SourceOpener =
    std::function<Expected<std::unique_ptr<VideoSource>>(const SourceOptions&, std::stop_token)>;

struct StreamParts {
  std::shared_ptr<FrameSink> sink;  // of this stream alone
  // Called for kServed and kLate, on the sink's threads, several at once; must be quick. May be
  // null.
  std::function<void(const AnsweredFrame&)> on_answer;
  // Called on a thread of its own, for which a stop does not wait: what it uses must outlive even
  // the stream.
  SourceOpener open = OpenVideo;
};

class StreamRunner {
 public:
  StreamRunner(std::string name, StreamConfig config, StreamParts parts);
  ~StreamRunner() { Stop(); }
  StreamRunner(const StreamRunner&) = delete;
  StreamRunner& operator=(const StreamRunner&) = delete;

  // Asks the sink what its model promises, and starts. Its error is the sink's. Blocks for seconds
  // where the server is not there.
  Status Start();
  // Begins what Stop waits for.
  void AskToStop();
  // No frame is read or sent from now on, and what is at the server is given up; returns when each
  // has ended. Idempotent.
  void Stop();

  const std::string& name() const { return name_; }
  const StreamConfig& config() const { return config_; }
  StreamReading reading() const;

 private:
  struct Flight;

  Expected<std::unique_ptr<VideoSource>> Open(std::stop_token stop);
  void ReadAll(std::stop_token stop);
  Status Pump(VideoSource& source, Reconnect& reconnect, std::stop_token stop);
  std::optional<TimePoint> CapturedAt(const SourceFrame& frame, std::optional<TimePoint>& origin,
                                      std::stop_token stop);
  void SendAll(std::stop_token stop);
  void SendOne(Frame frame);
  void OnAnswer(const Flight& flight, FrameAnswer&& answer);
  void EndUnsent(const Frame& frame, FrameEnd end, const std::string& error);
  void SetState(StreamState state, const std::string& error = {});

  const std::string name_;
  StreamConfig config_;
  const StreamParts parts_;
  const bool live_;
  const WallClock clock_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<FrameFlow> flow_;
  StreamState state_ = StreamState::kConnecting;
  std::string error_;
  std::uint64_t opened_ = 0;
  bool stopped_ = false;  // what is at the sink is given up
  std::array<Duration, 256> latencies_{};
  std::size_t answers_ = 0;

  std::jthread sender_;
  std::jthread reader_;
};

}  // namespace tactus
