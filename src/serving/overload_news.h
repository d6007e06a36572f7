// What operators look for in a log: when calls began to miss their deadlines for want of capacity,
// of which model, and when that ended.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "platform/repeated_task.h"
#include "server/metrics/serving_metrics.h"
#include "serving/log_queue.h"

namespace tactus {

// Pure: told the totals once a second, it answers with the line to log, if there is one. Errors of
// engines and calls that their clients took back are no overload.
class OverloadNews {
 public:
  // Begins where that many of the calls that ended in so many seconds were not in time.
  static constexpr std::size_t kSeconds = 5;
  static constexpr double kShare = 0.05;
  static constexpr std::uint64_t kLeast = 10;
  // Ends after so many seconds in a row with a smaller share each.
  static constexpr int kQuiet = 10;
  static constexpr double kQuietShare = 0.01;

  // `refused`: calls for which there was no room before they reached a model.
  std::optional<std::string> Second(const CallsByModel& calls, std::uint64_t refused);

 private:
  struct Total {
    CallsByModel calls;
    std::uint64_t refused = 0;
    std::uint64_t in_time = 0, missed = 0;
  };
  std::string Begins(const Total& from, const Total& to) const;

  std::deque<Total> seconds_;   // of the last kSeconds, oldest first
  std::optional<Total> begun_;  // the total when the overload began
  int lasts_ = 0;               // seconds since then
  int quiet_ = 0;               // seconds in a row
};

std::unique_ptr<RepeatedTask> LogOverloads(const ServingMetrics& metrics, const Log& log);

}  // namespace tactus
