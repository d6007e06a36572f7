// A pipeline that is served: what its clients see of it, and how it is made of models.
#pragma once

#include <string>
#include <vector>

#include "core/model_spec.h"
#include "pipeline/declaration.h"

namespace tactus {

struct EnsembleDeclaration {
  ModelSpec model;  // its tensors, version and limits, as of any model
  PipelineDeclaration pipeline;
  // Where its inputs and outputs are written, for errors, as StageDeclaration::place; in the order
  // of the model's, or none.
  std::vector<std::string> input_places = {};
  std::vector<std::string> output_places = {};
};

}  // namespace tactus
