#include "runtime/layout/lane_reviver.h"

#include <chrono>

#include <fmt/format.h>

namespace tactus {

void LaneReviver::Start() {
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back().Start(
        "reviver", [this] { return Run(); }, RepeatedTask::kUntilWoken);
  }
}

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
  for (RepeatedTask& thread : threads_) thread.Wake();
}

void LaneReviver::Close() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
}

void LaneReviver::Stop() {
  Close();
  for (RepeatedTask& thread : threads_) thread.Stop();
}

Duration LaneReviver::Run() {
  std::unique_lock lock(mutex_);
  const auto waits = [](const Lane& lane) { return lane.lost && !lane.busy; };
  const auto next = std::ranges::min_element(lanes_, {}, [&](const auto& each) {
    return waits(each.second) ? each.second.due : Clock::time_point::max();
  });
  if (stop_ || next == lanes_.end() || !waits(next->second)) return RepeatedTask::kUntilWoken;
  const Duration left = next->second.due - Clock::now();
  if (left <= Duration{}) Attempt(next->first, lock);
  return std::max(left, Duration{});
}

void LaneReviver::Attempt(LaneId lane, std::unique_lock<std::mutex>& lock) {
  Lane& tried = lanes_.at(lane);
  tried.lost = false;  // it may die again as soon as it is back
  tried.busy = true;
  tried.back = Clock::now();
  lock.unlock();
  const Status back = options_.revive(lane);
  const std::string line =
      back ? fmt::format("lane {} is back", lane.value())
           : fmt::format("lane {} stays dead: {}", lane.value(), back.error().message);
  lock.lock();
  if (back || line != said_) Say(line);
  said_ = line;
  tried.busy = false;
  if (back) {
    if (!tried.lost) tried.back = Clock::now();
    return;
  }
  tried.lost = true;
  tried.due = Clock::now() + tried.delay.Next(Duration{});
}

}  // namespace tactus
