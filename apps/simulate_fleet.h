// tactus simulate of a fleet's scenario: one that has [[devices]].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tactus {

struct SimulateFleetOptions {
  std::string scenario;
  std::vector<std::string> planners;  // none: the scenario's
  std::vector<std::string> policies;  // none: the scenario's
  std::vector<std::string> settings;  // of [fleet]: "duration_s=600"
  int seeds = 0;                      // as many runs each; 0: one, with the scenario's own seed
  std::uint64_t first_seed = 1;       // of `seeds`
  std::string plan;  // a file of `tactus plan fleet --out`, which serves throughout; empty: none
  std::string json;
};

bool IsFleetFile(const std::string& path);
// The exit code.
int RunSimulateFleet(const SimulateFleetOptions& options);

}  // namespace tactus
