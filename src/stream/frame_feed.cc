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

void FeedWatcher::Put(std::shared_ptr<const std::string> piece) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    if (left_ || ended_) return;
    if (!ready_) {
      const std::size_t most = kind_ == FeedKind::kPictures ? 1 : kMostPieces;
      if (pieces_.size() >= most) pieces_.pop_front();
      pieces_.push_back(std::move(piece));
      return;
    }
    ready = std::exchange(ready_, nullptr);
  }
  ready(*piece);
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

FrameFeed::FrameFeed() : artist_([this](std::stop_token stop) { Draw(std::move(stop)); }) {}

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
  if (const auto listeners = WatchersOf(FeedKind::kEvents); !listeners.empty()) {
    const auto event =
        std::make_shared<const std::string>(fmt::format("data: {}\n\n", ToJsonLine(frame)));
    for (const auto& listener : listeners) listener->Put(event);
  }
  if (WatchersOf(FeedKind::kPictures).empty()) return;
  {
    const std::lock_guard lock(mutex_);
    // Answers may overtake each other.
    if (frame.number <= std::max(drawn_, next_ ? next_->number : 0)) return;
    next_ = Drawing{frame.number, frame.jpeg, frame.answer.outputs};
  }
  changed_.notify_one();
}

void FrameFeed::Draw(std::stop_token stop) {
  for (;;) {
    Drawing drawing;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return next_.has_value(); })) return;
      if (stop.stop_requested()) return;
      drawing = *std::exchange(next_, std::nullopt);
      drawn_ = drawing.number;
    }
    auto picture = DecodeRgb(*drawing.jpeg);
    if (!picture) continue;
    DrawAnswer(*picture, drawing.outputs);
    const auto jpeg = EncodeJpeg(*picture);
    if (!jpeg) continue;
    const auto part = std::make_shared<const std::string>(
        fmt::format("--{}\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\n\r\n{}\r\n",
                    kPictureBoundary, jpeg->size(), *jpeg));
    for (const auto& watcher : WatchersOf(FeedKind::kPictures)) watcher->Put(part);
  }
}

}  // namespace tactus
