// The pipelines of a scenario: what is wrong with them, and what they are once latencies are known.
#pragma once

#include <string_view>
#include <vector>

#include "base/expected.h"
#include "pipeline/pipeline.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {

// Whether the model's requests come with frames.
bool IsStage(const Scenario& scenario, std::string_view model);
// That a frame brings, of all its stages.
double RequestsOfAFrame(const ScenarioPipeline& pipeline);

// Errors name the pipeline, the stage and the remedy: whatever PipelineGraph::Make refuses, no SLO,
// an unknown model, budgets of some stages only or of more than the SLO, a stage's model that says
// things of its own which would change nothing.
Status ValidatePipelines(const Scenario& scenario);

// With deadlines and budgets. `selected` holds the scenario's models in their order
// (SelectProfile). Without budgets of their own, stages divide the SLO as they divide the time of
// the largest batch whose longest path fits twice: a request waits for one batch and runs in the
// next. An error, with the arithmetic, where not even the quickest batches along the longest path,
// or those of one stage within its budget, are quick enough.
Expected<std::vector<Pipeline>> MakePipelines(const Scenario& scenario,
                                              const ProfileFile& selected);

}  // namespace tactus
