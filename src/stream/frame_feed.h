// Who watches a stream: its answers as events, or as pictures with what was found drawn in.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stream/frame_sink.h"
#include "stream/stream_runner.h"

namespace tactus {

enum class FeedKind : std::uint8_t {
  kEvents,    // server-sent events, a line of JSON each
  kPictures,  // parts of multipart/x-mixed-replace with kPictureBoundary, a JPEG each
};
inline constexpr std::string_view kPictureBoundary = "tactus-frame";

// One watcher. A slow one misses pieces instead of keeping them: of events the last kMostPieces
// wait, of pictures the last.
class FeedWatcher {
 public:
  // Called once for each Next, on any thread or inside Next; an empty piece is the end.
  using Ready = std::move_only_function<void(std::string piece)>;

  explicit FeedWatcher(FeedKind kind) : kind_(kind) {}

  FeedKind kind() const { return kind_; }
  // One at a time.
  void Next(Ready ready);
  // Nothing is asked for any more; what was asked for never comes.
  void Leave();
  bool left() const;

  void Put(std::shared_ptr<const std::string> piece);
  void End();

 private:
  static constexpr std::size_t kMostPieces = 64;

  const FeedKind kind_;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const std::string>> pieces_;  // shared by all watchers
  Ready ready_;
  bool ended_ = false;
  bool left_ = false;
};

// Thread-safe. Pictures are drawn on a thread of its own, and only where somebody watches them.
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
  struct Drawing {
    std::uint64_t number = 0;
    JpegBytes jpeg;
    std::vector<AnswerTensor> outputs;
  };

  std::vector<std::shared_ptr<FeedWatcher>> WatchersOf(FeedKind kind);
  void Draw(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::shared_ptr<FeedWatcher>> watchers_;
  std::optional<Drawing> next_;  // the newest answer that is to be drawn
  std::uint64_t drawn_ = 0;      // the number of the last: pictures never go back
  bool ended_ = false;
  std::jthread artist_;  // last: it uses the rest
};

}  // namespace tactus
