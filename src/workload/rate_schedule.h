// Rates that change as a run goes on: [arrivals] schedule = "FILE" of a scenario.
//
//   at_s,ResNet50,VGG16     # or at_s,all
//   0,1,0.5
//   60,2.5,0
//
// From each instant (seconds from the start) until the next row a model arrives at so many times
// its rate; after the last row, at that row's. Any arrival process: its gaps are counted in
// requests expected rather than in seconds, so a burst of a Gamma process is a burst at every rate.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "workload/arrivals.h"

namespace tactus {

struct RateSchedule {
  struct Step {
    TimePoint from;
    double factor = 1;
  };
  std::vector<Step> steps;  // the first from kStart; instants rise
};

// One for each of `models`, by index. Errors name the file and the line.
Expected<std::vector<RateSchedule>> LoadRateSchedule(const std::filesystem::path& path,
                                                     std::span<const std::string> models);

// `steady` at its own rate, bent to the schedule and cut off at `end`; it must not end by itself.
std::unique_ptr<Arrivals> Follow(RateSchedule schedule, std::unique_ptr<Arrivals> steady,
                                 TimePoint end);

}  // namespace tactus
