#include "runtime/calls/run_watch.h"

#include <chrono>

#include <fmt/format.h>

#include "platform/cpu_affinity.h"
#include "runtime/calls/dispatch_turns.h"

namespace tactus {

void RunWatch::Start() {
  if (!options_.on() || thread_.joinable()) return;
  told_.assign(loop_.workers().size(), kNever);
  seen_.assign(told_.size(), {});
  last_look_ = clock_.Now();
  thread_ = std::thread([this] { Run(); });
}

void RunWatch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void RunWatch::Run() {
  NameThisThread("run-watch");
  const Duration period = std::clamp(options_.least / 4, Duration{Millis(1)}, Duration{Seconds(1)});
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::nanoseconds(period.count()),
                            [this] { return stop_; })) {
    lock.unlock();
    Look(2 * period);
    lock.lock();
  }
}

void RunWatch::Look(Duration most) {
  const TimePoint look = clock_.Now();
  for (std::size_t i = 0; i < told_.size(); ++i) {
    const LaneWorker::Running running = loop_.workers()[i]->running();
    const TimePoint now = clock_.Now();
    const bool same = told_[i] != kNever && running.begun == told_[i];
    if (told_[i] != kNever && !same) {
      if (log_)
        log_(
            fmt::format("lane {}: the run that took too long has ended", loop_.lane_of(i).value()));
      told_[i] = kNever;
    }
    if (running.begun == kNever) continue;
    const Duration age = seen_[i].Age(running.begun, last_look_, now, most);
    if (age <= options_.Bound(running.expected)) continue;
    // Again and again: its calls may have become late since.
    const std::string model = loop_.HoldStuck(i, running.begun);
    if (model.empty() || same) continue;
    told_[i] = running.begun;
    if (!log_) continue;
    log_(
        fmt::format("lane {}: a run of model '{}' has taken {:.1f} s where its profile says {:.3f} "
                    "ms; the lane "
                    "is lost until it ends, and calls that no other lane can serve are refused",
                    loop_.lane_of(i).value(), model, ToSeconds(now - running.begun),
                    ToMillis(running.expected)));
  }
  last_look_ = look;
}

}  // namespace tactus
