// Who watches a stream: its answers as events, or as pictures with what was found drawn in.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stream/frame_sink.h"
#include "stream/stream_runner.h"

namespace tactus {

enum class FeedKind : std::uint8_t {
  kEvents,    // server-sent events, a line of JSON each
  kLines,     // the lines of JSON alone
  kPictures,  // parts of multipart/x-mixed-replace with kPictureBoundary, a JPEG each
};
inline constexpr std::string_view kPictureBoundary = "tactus-frame";

// One watcher. A slow one misses pieces instead of keeping them: of events the last kMostPieces
// wait, of pictures the last.
class FeedWatcher {
 public:
  static constexpr std::size_t kMostPieces = 64;
  // Called once for each Next, on any thread or inside Next; an empty piece is the end.
  using Ready = std::move_only_function<void(std::string piece)>;

  explicit FeedWatcher(FeedKind kind) : kind_(kind) {}

  FeedKind kind() const { return kind_; }
  // One at a time.
  void Next(Ready ready);
  // Nothing is asked for any more; what was asked for never comes.
  void Leave();
  bool left() const;
  // Pieces that were left out so far.
  std::uint64_t missed() const;

  void Put(std::shared_ptr<const std::string> piece);
  // One was left out before it was put.
  void Miss();
  void End();

 private:
  const FeedKind kind_;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const std::string>> pieces_;  // shared by all watchers
  Ready ready_;
  std::uint64_t missed_ = 0;
  bool ended_ = false;
  bool left_ = false;
};

// Thread-safe. Events are written and pictures drawn on a thread of its own, and only where
// somebody watches: of more than 64 answers that wait for it the oldest are left out.
class FrameFeed {
 public:
  FrameFeed();
  ~FrameFeed();

  // From StreamParts::on_answer.
  void Publish(const AnsweredFrame& frame);
  std::shared_ptr<FeedWatcher> Watch(FeedKind kind);
  // Ends all watchers, and those that still come.
  void End();

 private:
  // An answered frame beyond the call that told of it.
  struct Kept {
    std::string stream;
    std::uint64_t number = 0;
    std::uint64_t captured_at = 0;
    Duration latency{};
    FrameEnd end = FrameEnd::kServed;
    FrameAnswer answer;
    JpegBytes jpeg;
  };

  std::vector<std::shared_ptr<FeedWatcher>> WatchersOf(FeedKind kind);
  void Work(std::stop_token stop);
  void Tell(const Kept& kept);
  void Draw(const Kept& kept);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::shared_ptr<FeedWatcher>> watchers_;
  std::deque<std::shared_ptr<const Kept>> events_;  // that are to be told
  std::shared_ptr<const Kept> next_;  // the newest answer that is to be drawn; null: none
  std::uint64_t drawn_ = 0;           // the number of the last: pictures never go back
  bool ended_ = false;
  std::jthread worker_;  // last: it uses the rest
};

}  // namespace tactus
