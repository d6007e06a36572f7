// The pipelines of a scenario: what is wrong with them, and what they are once latencies are known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "pipeline/declaration.h"
#include "pipeline/pipeline.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {

// Whether the model's requests are pipelines'.
bool IsStage(const Scenario& scenario, std::string_view model);
// How often each stage runs for one pipeline request, and all of them together: the mean, where
// rows are drawn.
std::vector<double> RunsOfStages(const ScenarioPipeline& pipeline);
double RunsOfARequest(const ScenarioPipeline& pipeline);

PipelineDeclaration DeclarationOf(const ScenarioPipeline& pipeline);

// Errors name the pipeline, the stage and the remedy: whatever Validate refuses of its declaration
// (pipeline/build.h), an unknown model, rows that are never any, a stage's model that says things
// of its own which would change nothing.
Status ValidatePipelines(const Scenario& scenario);

// The first of those mistakes, and whose it is, each by its place in the scenario.
struct PipelineMistake {
  std::string what;
  std::optional<std::size_t> model = {};     // in `models`: what it says of itself
  std::optional<std::size_t> pipeline = {};  // in `pipelines`
  std::optional<std::size_t> stage = {};     // of that pipeline
};
std::optional<PipelineMistake> FindPipelineMistake(const Scenario& scenario);

// With deadlines and budgets, by what the profile says its stages take: pipeline/build.h.
// `selected` holds the scenario's models in their order (SelectProfile).
Expected<std::vector<Pipeline>> MakePipelines(const Scenario& scenario,
                                              const ProfileFile& selected);

}  // namespace tactus
