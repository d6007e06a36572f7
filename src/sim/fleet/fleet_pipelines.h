// A fleet's pipelines as a Flow follows them. Stages of a fleet have items of their own: six cars
// and one face in the same picture. So before each stage that has others before it stands a crop:
// it takes no time, and its answer has a row for each item that the stage works on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/expected.h"
#include "core/fleet_plan.h"
#include "pipeline/flow.h"
#include "workload/fleet_scenario.h"

namespace tactus {

struct FleetFlowStage {
  FleetStageId stage;
  bool crop = false;
  bool last = false;  // nothing follows: its answers are results
};

struct FleetPipelines {
  std::vector<Pipeline> pipelines;                 // as the Flow takes them
  std::vector<std::vector<FleetFlowStage>> stage;  // by pipeline, by the Flow's StageId
};

// An error for stages that join what is not of the same objects.
Expected<FleetPipelines> MakeFleetPipelines(const FleetInput& input);

// What a stage takes at best on the devices where it may run.
Duration QuickestOf(const FleetInput& input, const FleetPipeline& pipeline,
                    const FleetStage& stage);

// How many items a crop finds: by the counts of the picture's second where the scenario has them,
// else drawn: Poisson with the stage's mean over that of the stage before it, or one with the
// chance of it where that is at most 1. The same for every planner and policy.
class FleetItems {
 public:
  FleetItems(const FleetScenario& scenario, std::uint64_t seed);

  static constexpr int kMost = 64;
  // Rows of the stage's answer for item `item` of the stage before it, in frame `frame` at `t_s`.
  int Rows(FleetPipelineId p, FleetStageId s, std::int64_t frame, std::uint32_t item,
           double t_s) const;
  // The results that the frame has if nothing is lost.
  std::int64_t Results(FleetPipelineId p, std::int64_t frame, double t_s) const;
  // The mean of the counts over [from_s, to_s), by which a plan begins; the stage's own where there
  // are none.
  double MeanItems(FleetPipelineId p, FleetStageId s, double from_s, double to_s) const;

 private:
  struct Stage {
    double ratio = 1;  // items for each of the stage before
    const std::vector<double>* counts = nullptr;
    std::vector<FleetStageId> behind;
  };
  std::int64_t ResultsBehind(FleetPipelineId p, FleetStageId s, std::int64_t frame,
                             std::uint32_t item, double t_s,
                             std::vector<std::uint32_t>& seen) const;

  const FleetScenario& scenario_;
  const std::uint64_t seed_;
  std::vector<std::vector<Stage>> stages_;
};

}  // namespace tactus
