// From a declaration to a pipeline that can run: what is wrong with it by itself, and what it is
// once somebody says what its stages take.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "pipeline/declaration.h"
#include "pipeline/pipeline.h"

namespace tactus {

// What a stage's model takes.
struct StageCost {
  ModelId model;
  std::string name;                // the model's, for errors
  Duration quickest{};             // any batch at any exit, there and back
  std::vector<Duration> by_batch;  // at the final exit: of 1, 2, ... as many as it may hold
};

// Errors name the stage and the remedy: whatever PipelineGraph::Make and PipelineLevels::Make
// refuse, no SLO, budgets of some stages only, of more than the SLO, or with a rule that would not
// read them.
Status Validate(const PipelineDeclaration& declaration);

// With deadlines and budgets; `costs` by stage. Without budgets, and but for kEqual and kWhole,
// stages divide the SLO as they divide the time of the largest batch whose longest path fits twice:
// a request waits for one batch and runs in the next. An error, with the arithmetic, where not even
// the quickest batches along the longest path, or those of one stage within its budget, are quick
// enough.
Expected<Pipeline> BuildPipeline(const PipelineDeclaration& declaration,
                                 std::span<const StageCost> costs);

}  // namespace tactus
