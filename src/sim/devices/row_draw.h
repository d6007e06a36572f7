// How many rows the answers of stages have in a simulation: drawn as the scenario says, for each
// pipeline request by its own number, so that every policy meets the same ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/item_progress.h"
#include "workload/scenario.h"

namespace tactus {

class RowDraw {
 public:
  explicit RowDraw(const Scenario& scenario);

  // Rows of a run's answer, for the pipeline's request that arrived as number `arrival`. 1 where
  // the scenario says nothing.
  int Rows(std::uint32_t pipeline, std::uint64_t arrival, StageRun run) const;

 private:
  struct Stage {
    std::string stream;
    std::vector<double> up_to;  // by rows: how likely there are no more; empty: nothing is said
  };
  const std::uint64_t seed_;
  std::vector<std::vector<Stage>> stages_;  // by pipeline, by stage
};

}  // namespace tactus
