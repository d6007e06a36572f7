// What the benchmarks in C++ share: how a short time is taken, how a figure is held against its
// bar, and how a report ends the program.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "metrics/report.h"

namespace tactus {

using BenchClock = std::chrono::steady_clock;

inline double NanosSince(BenchClock::time_point start) {
  return std::chrono::duration<double, std::nano>(BenchClock::now() - start).count();
}

// What reading the clock twice costs in ns, to be taken off each timing.
inline double ClockCost() {
  double least = 1e9;
  for (int i = 0; i < 10'000; ++i) least = std::min(least, NanosSince(BenchClock::now()));
  return least;
}

inline Check AtMost(std::string what, double value, double bar) {
  return {std::move(what), value, fmt::format("<= {:g}", bar), value <= bar};
}
inline Check AtLeast(std::string what, double value, double bar) {
  return {std::move(what), value, fmt::format(">= {:g}", bar), value >= bar};
}

// A figure that no bar is known for.
inline Check Reported(std::string what, double value) {
  return {std::move(what), value, "none", true};
}

inline int CannotRun(std::string_view program, const Error& error) {
  fmt::print(stderr, "{}: {}\n", program, error.message);
  return 2;
}

// Prints the checks and where they were taken, and writes the report to `json` unless that is
// empty. The program's exit code: 0 all checks hold, 1 some do not, 2 the file cannot be written.
inline int Conclude(std::string_view program, const Report& report, const std::string& json) {
  fmt::print("{}\n{} at {}\n", ToText(report.checks), MachineKind(), BuildCommit());
  if (!json.empty()) {
    const auto written = WriteJson(report, json);
    if (!written) return CannotRun(program, written.error());
  }
  return std::ranges::all_of(report.checks, &Check::ok) ? 0 : 1;
}

}  // namespace tactus
