#include "stream/frame_feed.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stream/answer_json.h"
#include "stream/jpeg.h"
#include "stream/overlay.h"

namespace tactus {

void FeedWatcher::Next(Ready ready) {
  std::string piece;
  {
    const std::lock_guard lock(mutex_);
    if (left_) return;
    if (pieces_.empty() && !ended_) {
      ready_ = std::move(ready);
      return;
    }
    if (!pieces_.empty()) {
      piece = *pieces_.front();
      pieces_.pop_front();
    }
  }
  ready(std::move(piece));
}

void FeedWatcher::Leave() {
  Ready dropped;
  const std::lock_guard lock(mutex_);
  left_ = true;
  pieces_.clear();
  dropped = std::exchange(ready_, nullptr);
}

bool FeedWatcher::left() const {
  const std::lock_guard lock(mutex_);
  return left_;
}

std::uint64_t FeedWatcher::missed() const {
  const std::lock_guard lock(mutex_);
  return missed_;
}

void FeedWatcher::Put(std::shared_ptr<const std::string> piece) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    if (left_ || ended_) return;
    if (!ready_) {
      const std::size_t most = kind_ == FeedKind::kPictures ? 1 : kMostPieces;
      if (pieces_.size() >= most) {
        pieces_.pop_front();
        ++missed_;
      }
      pieces_.push_back(std::move(piece));
      return;
    }
    ready = std::exchange(ready_, nullptr);
  }
  ready(*piece);
}

void FeedWatcher::Miss() {
  const std::lock_guard lock(mutex_);
  ++missed_;
}

void FeedWatcher::End() {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    ready = std::exchange(ready_, nullptr);
  }
  if (ready) ready({});
}

FrameFeed::FrameFeed() : worker_([this](std::stop_token stop) { Work(std::move(stop)); }) {}

FrameFeed::~FrameFeed() { End(); }

std::shared_ptr<FeedWatcher> FrameFeed::Watch(FeedKind kind) {
  auto watcher = std::make_shared<FeedWatcher>(kind);
  const std::lock_guard lock(mutex_);
  if (ended_) {
    watcher->End();
  } else {
    watchers_.push_back(watcher);
  }
  return watcher;
}

void FrameFeed::End() {
  std::vector<std::shared_ptr<FeedWatcher>> watchers;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    watchers = std::exchange(watchers_, {});
  }
  for (const auto& watcher : watchers) watcher->End();
}

std::vector<std::shared_ptr<FeedWatcher>> FrameFeed::WatchersOf(FeedKind kind) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [](const auto& watcher) { return watcher->left(); });
  std::vector<std::shared_ptr<FeedWatcher>> found;
  std::ranges::copy_if(watchers_, std::back_inserter(found),
                       [kind](const auto& watcher) { return watcher->kind() == kind; });
  return found;
}

void FrameFeed::Publish(const AnsweredFrame& frame) {
  const auto lines = WatchersOf(FeedKind::kLines);
  const bool tells = !lines.empty() || !WatchersOf(FeedKind::kEvents).empty();
  const bool draws = !WatchersOf(FeedKind::kPictures).empty();
  if (!tells && !draws) return;
  const auto kept = std::make_shared<const Kept>(Kept{.stream = frame.stream,
                                                      .number = frame.number,
                                                      .captured_at = frame.captured_at,
                                                      .latency = frame.latency,
                                                      .end = frame.end,
                                                      .answer = frame.answer,
                                                      .jpeg = frame.jpeg});
  {
    const std::lock_guard lock(mutex_);
    if (tells) events_.push_back(kept);
    if (events_.size() > FeedWatcher::kMostPieces) {
      events_.pop_front();
      for (const auto& watcher : lines) watcher->Miss();
    }
    // Answers may overtake each other.
    const std::uint64_t newest = std::max(drawn_, next_ ? next_->number : 0);
    if (draws && frame.number > newest) next_ = kept;
  }
  changed_.notify_one();
}

void FrameFeed::Work(std::stop_token stop) {
  for (;;) {
    std::deque<std::shared_ptr<const Kept>> events;
    std::shared_ptr<const Kept> drawing;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return next_ != nullptr || !events_.empty(); });
      if (stop.stop_requested()) return;
      events.swap(events_);
      drawing.swap(next_);
      if (drawing) drawn_ = drawing->number;
    }
    for (const auto& event : events) Tell(*event);
    if (drawing) Draw(*drawing);
  }
}

void FrameFeed::Tell(const Kept& kept) {
  const AnsweredFrame frame{.stream = kept.stream,
                            .number = kept.number,
                            .captured_at = kept.captured_at,
                            .latency = kept.latency,
                            .end = kept.end,
                            .answer = kept.answer,
                            .jpeg = kept.jpeg};
  const auto line = std::make_shared<const std::string>(ToJsonLine(frame));
  for (const auto& watcher : WatchersOf(FeedKind::kLines)) watcher->Put(line);
  const auto events = WatchersOf(FeedKind::kEvents);
  if (events.empty()) return;
  const auto event = std::make_shared<const std::string>(fmt::format("data: {}\n\n", *line));
  for (const auto& watcher : events) watcher->Put(event);
}

void FrameFeed::Draw(const Kept& kept) {
  auto picture = DecodeRgb(*kept.jpeg);
  if (!picture) return;
  DrawAnswer(*picture, kept.answer.outputs);
  const auto jpeg = EncodeJpeg(*picture);
  if (!jpeg) return;
  const auto part = std::make_shared<const std::string>(
      fmt::format("--{}\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\n\r\n{}\r\n",
                  kPictureBoundary, jpeg->size(), *jpeg));
  for (const auto& watcher : WatchersOf(FeedKind::kPictures)) watcher->Put(part);
}

}  // namespace tactus
