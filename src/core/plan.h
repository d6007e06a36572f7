// A plan: slow decisions as immutable data that policies read. Stored, diffed, validated, drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/serving_time.h"
#include "core/engine_placement.h"
#include "core/model_set.h"

namespace tactus {

struct LaneSpec {
  DeviceId device{0};
  LaneClass lane_class{0};
  double fraction = 1;
  int slots = 1;
  ModelSet serves = ModelSet::All();  // what may run there at all, whatever the plan
  EnginePlacement placement = {};

  bool operator==(const LaneSpec&) const = default;
};

// A window in the lane's cycle, which begins with the plan's adoption; length 0 means open: any
// time in the cycle.
struct PlanEntry {
  ModelId model;
  int batch = 1;
  Duration offset{};
  Duration length{};

  bool operator==(const PlanEntry&) const = default;
};

struct LanePlan {
  LaneSpec spec;
  Duration cycle{};
  std::vector<PlanEntry> entries;

  bool operator==(const LanePlan&) const = default;
};

struct Plan {
  std::uint64_t epoch = 0;
  std::vector<LanePlan> lanes;

  bool operator==(const Plan&) const = default;
};

}  // namespace tactus
