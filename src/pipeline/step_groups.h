// Steps of a pipeline that go together: which of those that run at one place may be one call to it,
// and the two pipelines that come of it, one of the group's steps by themselves and one in which
// the group is a single step. Both are ordinary pipelines, so whoever runs pipelines runs them.
//
//   detect -> persons (rows) -> pose        persons and pose run on another node
//   outer:  detect -> persons+pose          inner:  persons (rows) -> pose
//
// A group starts when all that its steps need from outside is there, and answers when all of them
// have: nothing waits longer for that than it would without the group.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/model_spec.h"
#include "pipeline/ensemble_declaration.h"
#include "pipeline/graph.h"
#include "pipeline/levels.h"

namespace tactus {

// A pipeline with the models of its steps, as it was linked and built.
struct BuiltEnsemble {
  const EnsembleDeclaration& declared;
  const PipelineGraph& graph;
  const PipelineLevels& levels;
  std::span<const std::shared_ptr<const ModelSpec>> models;  // by stage
};

// Groups of two steps and more, none in two of them. `places`: by stage, where it runs; an empty
// one is in no group. Steps of a group have one place, pass tensors to each other, and
// - what one of them needs from outside all of them wait for, and who outside needs one waits for
//   all;
// - rows that one of them makes are gathered by one of them, by the step behind the group, or by
// the
//   pipeline's outputs; or the group makes rows, and nothing else, for steps behind it;
// - where rows cross its border, all its models batch or none does.
// Pipelines whose deadlines are equal have none: one step would have the time of one.
std::vector<StageMask> FindStepGroups(const BuiltEnsemble& ensemble,
                                      std::span<const std::string> places);

struct SplitEnsemble {
  EnsembleDeclaration outer;
  std::vector<std::shared_ptr<const ModelSpec>>
      models;            // of outer's stages; the group's is made up
  std::size_t step = 0;  // outer's stage that is the group
  EnsembleDeclaration inner;
  std::vector<std::shared_ptr<const ModelSpec>> inner_models;
};
// Splits at a group that FindStepGroups has found. kInvalidArgument where the parts do not link
// after all (a step is already called as the group would be).
Expected<SplitEnsemble> SplitAtGroup(const BuiltEnsemble& ensemble, StageMask group);

}  // namespace tactus
