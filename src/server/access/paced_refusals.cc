#include "server/access/paced_refusals.h"

#include <system_error>
#include <utility>

namespace tactus {

void PacedRefusals::Tell(const std::string& client, std::size_t bytes,
                         std::optional<Duration> patience, std::function<void()> tell) {
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    const TimePoint at =
        stopped_ ? now : pace_.When(client, bytes, patience.value_or(RefusalPace::kInvited), now);
    if (at > now && timer_.waiting() < kMostHeld && Started()) {
      timer_.At(at, std::move(tell));
      return;
    }
  }
  tell();
}

// False where the system has no room for a thread.
bool PacedRefusals::Started() {
  try {
    if (!started_) timer_.Start([this] { return clock_.Now(); });
    started_ = true;
  } catch (const std::system_error&) {
  }
  return started_;
}

void PacedRefusals::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
  }
  timer_.Stop();
  timer_.Run(kNever);
}

}  // namespace tactus
