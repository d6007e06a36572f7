// Refusals that are held until it is their time (service/refusal_pace.h).
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/deadline_timer.h"
#include "base/serving_time.h"
#include "platform/wall_clock.h"
#include "service/refusal_pace.h"

namespace tactus {

// Thread-safe. Holds what is to be said, on a timer of its own, which starts with the first.
class PacedRefusals {
 public:
  PacedRefusals() = default;
  ~PacedRefusals() { Stop(); }
  PacedRefusals(const PacedRefusals&) = delete;
  PacedRefusals& operator=(const PacedRefusals&) = delete;

  // `tell` is called once: inside, or later on the timer's thread.
  void Tell(const std::string& client, std::size_t bytes, std::optional<Duration> patience,
            std::function<void()> tell);
  // Tells what is held; from now on all is told at once.
  void Stop();
  std::size_t held() const { return timer_.waiting(); }

 private:
  bool Started();

  static constexpr std::size_t kMostHeld = 16'384;

  const WallClock clock_;
  std::mutex mutex_;
  bool started_ = false;
  bool stopped_ = false;
  RefusalPace pace_;
  DeadlineTimer timer_;
};

}  // namespace tactus
