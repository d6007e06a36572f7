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
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_all();
}

void LaneReviver::Close() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

void LaneReviver::Stop() {
  Close();
  if (thread_.joinable()) thread_.join();
}

void LaneReviver::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto next = std::ranges::min_element(lanes_, {}, [](const auto& each) {
      return each.second.lost ? each.second.due : Clock::time_point::max();
    });
    if (next == lanes_.end() || !next->second.lost) {
      changed_.wait(lock);
    } else if (Clock::now() < next->second.due) {
      changed_.wait_until(lock, next->second.due);
    } else {
      Attempt(next->first, lock);
    }
  }
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
