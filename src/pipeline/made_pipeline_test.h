// Pipelines for tests, from what a test says of their stages.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "pipeline/build.h"

namespace tactus {

// Stage i asks model i, of which every batch takes `each`.
inline Pipeline PipelineOf(const PipelineDeclaration& declaration, Duration each) {
  std::vector<StageCost> costs;
  for (const StageDeclaration& stage : declaration.stages) {
    const ModelId model{static_cast<ModelId::rep>(costs.size())};
    costs.push_back({.model = model, .name = stage.name, .quickest = each, .by_batch = {each}});
  }
  EXPECT_TRUE(Validate(declaration));
  auto pipeline = BuildPipeline(declaration, costs);
  EXPECT_TRUE(pipeline) << pipeline.error().message;
  return std::move(*pipeline);
}

}  // namespace tactus
