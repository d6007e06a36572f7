// What a lane sustains whose models run one after another, round and round: each gathers a batch
// while the others run (Nexus, Section 6.1; gpu-lets, Section 2.2).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/planner.h"

namespace tactus {

// A model's part in a lane.
struct LaneMember {
  ModelId model;
  double rate_rps = 0;
  // How many times longer its batches take because of what runs in the device's other lanes, >= 1.
  double slowdown = 1;
};

struct DutyCycle {
  Duration cycle{};
  Duration busy{};           // of it, the batches' time
  std::vector<int> batches;  // by member
};

// A cycle d with batches b_i that sustains all members: b_i >= rate_i d, sum L(b_i) <= d, and
// L(b_i) + d <= SLO_i. Of those that there are, the one that leaves most of the lane idle. Exact:
// between two instants at which some rate_i d is whole, batches stay as they are. Nothing where no
// cycle fits, or for no member.
std::optional<DutyCycle> FitCycle(const PlanInput& input, LaneClass lane,
                                  std::span<const LaneMember> members);

// The most requests a second of a model that joins `members`, who keep their rates: the largest
// rate that FitCycle finds a cycle for. 0: there is none. `joining` is no member.
double MostBeside(const PlanInput& input, LaneClass lane, std::span<const LaneMember> members,
                  ModelId joining, double slowdown = 1);

// The most that a model alone gets from a lane, in requests a second: b / L(b) of the best batch
// that may wait for one of its kind, 2 L(b) <= SLO. 0: the lane is too slow for it.
double MostRate(const PlanInput& input, LaneClass lane, ModelId model, double slowdown = 1);

}  // namespace tactus
