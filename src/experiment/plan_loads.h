// Loads for `tactus plan gpulet --loads`, and what it tells of models on shares of a device.
#pragma once

#include <string>
#include <vector>

#include "base/expected.h"
#include "core/planner.h"

namespace tactus {

// `input` at the rates of each row of a CSV file whose header is its models' names. Errors name the
// file and the line.
Expected<std::vector<PlanInput>> ReadLoads(const std::string& path, const PlanInput& input);

// [{"name", "slo_ms", "rate_rps", "on_share": [{"share": 0.2, "most_rps", "knee", "latency_ms": [of
// a batch of 1, 2, ...]}]}]: what each model alone does there; most_rps: MostRate.
std::string OnSharesJson(const PlanInput& input);

}  // namespace tactus
