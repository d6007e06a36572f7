// The fixed suite on which every policy is measured (bench/policies.cc): what each paper is
// measured by, and what no paper has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {

enum class Measure {
  kLoads,  // runs at given loads: accuracy and misses
  kPeak,   // the highest load that is sustained, and runs beside it
};

struct Workload {
  std::string part;  // "edgeserving", "symphony", "strait", "combination" or "zoos"
  std::string name;
  Measure measure = Measure::kLoads;
  Scenario scenario;
  ProfileFile profile;
  std::vector<double> rates;      // of kLoads; none: the scenario's
  std::vector<double> multiples;  // of kPeak
};

// `seed`: of arrivals, and of the twelve mixed zoos. `requests`: about so many in each run.
Expected<std::vector<Workload>> MakeSuite(const std::string& source_dir, std::uint64_t seed,
                                          double requests);

}  // namespace tactus
