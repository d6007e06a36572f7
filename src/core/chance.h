// What a plan loses where requests come by chance. Cycles and batches are planned for requests that
// come evenly: of a cycle that has two requests in the mean, many have four. Whether the others
// fill the lane meanwhile, and how long its batches then take, no formula tells well, so each lane
// runs by itself for some thousand requests, as a lane of the `planned` policy does. Always the
// same ones: the same plan loses the same.
#pragma once

#include <vector>

#include "core/planner.h"

namespace tactus {

// Of a model's requests, those that would be late or given up.
struct ChanceLoss {
  double part = 0;
  double error = 0;  // standard, of the part: few requests were drawn of a model that is rare
};

// By ModelId. Requests of a model come one by one, independently of each other (Poisson), as many
// a second as `expected_rps` says, and are divided among the model's lanes as the plan divides its
// rate. A model of which nothing is expected loses nothing and takes no time. Batches take as long
// as their windows: where a plan counts on neighbours, those are there all the time.
std::vector<ChanceLoss> LossesByChance(const Plan& plan, const PlanInput& input);

// Of all models together, by what is expected of each.
ChanceLoss LossOfAll(const std::vector<ChanceLoss>& losses, const PlanInput& input);

// A run's own luck comes on top of what is lost in the mean; so that it loses no more than 1 %,
// less is planned for.
inline constexpr double kMostLostByChance = 0.006;
bool TooMuch(const ChanceLoss& loss);

}  // namespace tactus
