// A config.pbtxt of an ensemble, or a ModelConfig as JSON (the first byte is '{'): read, given its
// meaning, and bound to models that have whatever tensors its steps name.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "pipeline/build.h"
#include "pipeline/tensors.h"
#include "server/kserve/declared_config.h"
#include "server/kserve/ensemble_config.h"

namespace tactus {
namespace {

// A model that fits the step by its names; shapes may or may not.
std::shared_ptr<const ModelSpec> ModelFor(const StageDeclaration& step, std::size_t s) {
  ModelSpec model;
  model.name = step.model;
  model.max_batch = s % 2 == 0 ? 8 : 0;
  const Shape dims = model.max_batch > 0 ? Shape{-1, -1} : Shape{-1};
  for (const TensorLink& link : step.inputs) {
    model.inputs.push_back({link.tensor, DataType::kFp32, dims});
  }
  for (const TensorLink& link : step.outputs) {
    model.outputs.push_back({link.tensor, DataType::kFp32, dims});
  }
  return std::make_shared<const ModelSpec>(std::move(model));
}

void Bind(const EnsembleDeclaration& ensemble) {
  PipelineDeclaration pipeline = ensemble.pipeline;
  if (pipeline.slo <= Duration{}) pipeline.slo = Seconds(10);
  std::vector<StageCost> costs;
  std::vector<std::shared_ptr<const ModelSpec>> models;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    costs.push_back({.model = ModelId{0},
                     .name = pipeline.stages[s].model,
                     .quickest = Nanos(1),
                     .by_batch = {Micros(1)}});
    models.push_back(ModelFor(pipeline.stages[s], s));
  }
  const auto built = BuildPipeline(pipeline, costs);
  if (!built) return;
  const auto bound = BindTensors(ensemble, built->graph, built->levels, models);
  if (!bound) {
    CHECK(!bound.error().message.empty(), "a mistake has a text");
    return;
  }
  CHECK(bound->stages.size() == models.size(), "every step has its tensors");
  CHECK(bound->outputs.size() == ensemble.model.outputs.size(), "every output has its maker");
}

}  // namespace
}  // namespace tactus

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tactus;
  std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = text.starts_with('{') ? DeclaredConfig::FromJson(text)
                                            : DeclaredConfig::FromText(text, "config.pbtxt");
  if (!config) return 0;
  const auto ensemble = EnsembleOf(*config, "/models/m", 1);
  if (!ensemble) {
    CHECK(!ensemble.error().message.empty(), "a mistake has a text");
    return 0;
  }
  CHECK(!StepsOf(ensemble->model).empty(), "an ensemble has steps");
  Bind(*ensemble);
  return 0;
}
