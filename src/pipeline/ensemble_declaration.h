// A pipeline that is served: what its clients see of it, and how it is made of models.
#pragma once

#include "core/model_spec.h"
#include "pipeline/declaration.h"

namespace tactus {

struct EnsembleDeclaration {
  ModelSpec model;  // its tensors, version and limits, as of any model
  PipelineDeclaration pipeline;
};

}  // namespace tactus
