// Steps without a model, and steps that are ensembles themselves: which may be, and what the others
// are told. Ensembles with `as_step` are steps of others, and have steps that are models only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "pipeline/ensemble_declaration.h"

namespace tactus {

// The models of an ensemble's steps; none: it is no ensemble, or not known.
using StepsOfEnsemble = std::function<std::vector<std::string>(const std::string& name)>;

// Why there is no model for `step`, as `tactus check` says it of a repository that nobody serves
// yet; `why` is what the service that runs the steps says.
std::string WhyNoModel(const StageDeclaration& step, const Error& why);

// Why `step`, a model of which is known that it is an ensemble, cannot be one of `ensemble`'s, with
// the remedy. `has_as_step`: `ensemble` is a step of others.
std::string WhyNoStep(const EnsembleDeclaration& ensemble, const std::string& step,
                      bool has_as_step, const StepsOfEnsemble& steps_of);

}  // namespace tactus
