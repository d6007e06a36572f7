// Symphony's Figure 7: thousands of synthetic workloads, each searched for the peak goodput of
// several policies. Hours on one thread, so every finished workload is kept, and a run that was
// killed goes on where it was.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/search/workload_grid.h"

namespace tactus {

struct GridPolicy {
  std::string name;  // of its column
  std::string policy;
};

// Deferred as published and as we set it, eager in both ways of gathering.
const std::vector<GridPolicy>& GridPolicies();

struct GridOptions {
  std::filesystem::path profile;  // of the zoo: Table 3
  std::filesystem::path results;  // the CSV file
  std::size_t cells = 0;          // only so many, spread over all; 0: all
  int jobs = 1;                   // threads
  bool fresh = false;
  GridEffort effort;
};

struct GridResult {
  GridCell cell;
  double fluid_rps = 0;
  std::vector<double> peaks_rps;  // by GridPolicies
};

// In the order of the files' rows, which is that in which they ended.
Expected<std::vector<GridResult>> RunGrid(const GridOptions& options);

}  // namespace tactus
