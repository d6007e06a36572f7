#include "runtime/calls/run_watch.h"

#include <fmt/format.h>

#include "runtime/calls/dispatch_turns.h"

namespace tactus {

void RunWatch::Start() {
  if (!options_.on()) return;
  told_.assign(loop_.workers().size(), kNever);
  seen_.assign(told_.size(), {});
  last_look_ = clock_.Now();
  const Duration period = std::clamp(options_.least / 4, Millis(1), Seconds(1));
  thread_.Start("run-watch", Every(period, [this, period] { Look(2 * period); }), period);
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
