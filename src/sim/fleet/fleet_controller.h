// What plans a simulated fleet: it gathers what reaches it with a delay, says what the fleet looks
// like now, and asks a planner for the next plan, or OctopInf's AutoScaler for a step between two.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/fleet_plan.h"
#include "planners/fleet_scaling.h"
#include "sim/fleet/fleet_pipelines.h"
#include "sim/network/rate_trace.h"

namespace tactus {

// Counted since the beginning.
struct FleetCounts {
  std::vector<std::int64_t> frames;              // by pipeline
  std::vector<std::vector<std::int64_t>> crops;  // by pipeline, stage: that were made for it
  std::vector<std::vector<std::int64_t>> items;  // ... and what they found
};

class FleetController {
 public:
  // `links`: by link, what its rate is when; the controller looks at the past of it. All outlive
  // it.
  FleetController(const FleetScenario& scenario, const FleetItems& items,
                  std::vector<const RateTrace*> links);

  // The plan by what was known beforehand: the first minute's counts and rates. `given`: the first
  // plan, instead of the planner's; null: none. An error for an unknown planner.
  Expected<FleetPlan> First(const FleetPlan* given);
  // A sample, as it is taken on the devices. `now` rises.
  void Sample(TimePoint now, const FleetCounts& counts);
  Expected<FleetPlan> Next(TimePoint now);
  // The plan with a step of the AutoScaler; the same one where nothing changes.
  FleetPlan Scaled(TimePoint now, const FleetPlan& plan);
  // Whether there is an AutoScaler: it belongs to OctopInf.
  bool Scales() const;
  const FleetInput& seen() const { return seen_; }

 private:
  struct Sampled {
    TimePoint at;
    FleetCounts counts;
  };
  void Look(TimePoint now);
  const Sampled* SampleBefore(TimePoint at) const;

  const FleetScenario& scenario_;
  const FleetItems& items_;
  const std::vector<const RateTrace*> links_;
  FleetInput seen_;
  std::deque<Sampled> samples_;
  FleetScaling scaling_;
  std::uint64_t epochs_ = 0;
};

// Memory that the device's instances take on its accelerators: weights once for each model and
// accelerator, and what batches need, with windows the largest of each stream, else of all at once.
double MemoryOf(const FleetPlan& plan, const FleetInput& input, DeviceId device, bool windows);

}  // namespace tactus
