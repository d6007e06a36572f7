// Frames of one stream that wait to be sent, newest first.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "stream/frame.h"

namespace tactus {

// Bounded. What is pushed out is the oldest, and is handed back so that it can be counted.
class FrameQueue {
 public:
  explicit FrameQueue(std::size_t capacity) : capacity_(capacity) {}

  // The frame that had to go, if one had to. `frame` is newer than all that wait.
  std::optional<Frame> Push(Frame frame) {
    frames_.push_back(std::move(frame));
    if (frames_.size() <= capacity_) return std::nullopt;
    return PopOldest();
  }
  std::optional<Frame> PopNewest() {
    if (frames_.empty()) return std::nullopt;
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    return frame;
  }
  std::optional<Frame> PopOldest() {
    if (frames_.empty()) return std::nullopt;
    Frame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }
  const Frame* oldest() const { return frames_.empty() ? nullptr : &frames_.front(); }
  std::size_t size() const { return frames_.size(); }
  bool full() const { return frames_.size() >= capacity_; }

 private:
  const std::size_t capacity_;
  std::deque<Frame> frames_;  // oldest first
};

}  // namespace tactus
