#include "runtime/layout/lane_reviver.h"

#include <chrono>

#include <fmt/format.h>

namespace tactus {

void LaneReviver::Lost(LaneId lane, const Error& why) {
  const std::lock_guard lock(mutex_);
  if (stop_ || !lost_.insert(lane).second) return;
  Say(fmt::format(
      "lane {} died: {}; what it ran goes back to its queue, and its models are loaded anew there",
      lane.value(), why.message));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_all();
}

void LaneReviver::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void LaneReviver::Run() {
  std::unique_lock lock(mutex_);
  std::string said;  // the last reason why not, once
  while (!stop_) {
    changed_.wait(lock, [this] { return stop_ || !lost_.empty(); });
    changed_.wait_for(lock, options_.period, [this] { return stop_; });
    const std::set<LaneId> lost = lost_;
    for (const LaneId lane : lost) {
      if (stop_) return;
      lost_.erase(lane);  // it may die again as soon as it is back
      lock.unlock();
      const Status back = options_.revive(lane);
      const std::string line =
          back ? fmt::format("lane {} is back", lane.value())
               : fmt::format("lane {} stays dead: {}", lane.value(), back.error().message);
      if (back || line != said) Say(line);
      said = line;
      lock.lock();
      if (!back) lost_.insert(lane);
    }
  }
}

}  // namespace tactus
