#include "runtime/layout/lane_reviver.h"

#include <chrono>

#include <fmt/format.h>

namespace tactus {

void LaneReviver::Lost(LaneId lane, const Error& why) {
  const std::lock_guard lock(mutex_);
  if (stop_) return;
  const auto now = Clock::now();
  Lane& lost =
      lanes_.try_emplace(lane, RevivalDelay(options_.period, options_.longest)).first->second;
  if (std::exchange(lost.lost, true)) return;
  lost.due = now + lost.delay.Next(now - lost.back);
  Say(fmt::format(
      "lane {} died: {}; what it ran goes back to its queue, and its models are loaded anew there",
      lane.value(), why.message));
  if (!std::exchange(started_, true)) thread_.Start("reviver", [this] { return Run(); });
  thread_.Wake();
}

void LaneReviver::Close() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
}

void LaneReviver::Stop() {
  Close();
  thread_.Stop();
}

Duration LaneReviver::Run() {
  std::unique_lock lock(mutex_);  // some lane was lost: that began the thread
  const auto next = std::ranges::min_element(lanes_, {}, [](const auto& each) {
    return each.second.lost ? each.second.due : Clock::time_point::max();
  });
  if (stop_ || !next->second.lost) return RepeatedTask::kUntilWoken;
  const Duration left = next->second.due - Clock::now();
  if (left <= Duration{}) Attempt(next->first, lock);
  return std::max(left, Duration{});
}

void LaneReviver::Attempt(LaneId lane, std::unique_lock<std::mutex>& lock) {
  lanes_.at(lane).lost = false;  // it may die again as soon as it is back
  lanes_.at(lane).back = Clock::now();
  lock.unlock();
  const Status back = options_.revive(lane);
  const std::string line =
      back ? fmt::format("lane {} is back", lane.value())
           : fmt::format("lane {} stays dead: {}", lane.value(), back.error().message);
  if (back || line != said_) Say(line);
  said_ = line;
  lock.lock();
  Lane& tried = lanes_.at(lane);
  if (back) {
    if (!tried.lost) tried.back = Clock::now();
    return;
  }
  tried.lost = true;
  tried.due = Clock::now() + tried.delay.Next(Duration{});
}

}  // namespace tactus
