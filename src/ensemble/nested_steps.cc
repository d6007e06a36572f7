#include "ensemble/nested_steps.h"

#include <set>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

// Whether one of the steps of `from`, or of theirs, is `to`.
bool Reaches(const StepsOfEnsemble& steps_of, const std::string& from, const std::string& to) {
  std::set<std::string> seen{from};
  std::vector<std::string> open{from};
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    for (std::string& step : steps_of(name)) {
      if (step == to) return true;
      if (seen.insert(step).second) open.push_back(std::move(step));
    }
  }
  return false;
}

}  // namespace

std::string WhyNoModel(const StageDeclaration& step, const Error& why) {
  if (why.code != ErrorCode::kNotFound) return why.message;
  if (step.version < 0) {
    return fmt::format("the repository has no model '{}', or it is not loaded; add it, or load it",
                       step.model);
  }
  return fmt::format("model '{}' has no version {} that serves; add it, or name another",
                     step.model, step.version);
}

std::string WhyNoStep(const EnsembleDeclaration& ensemble, const std::string& step,
                      bool has_as_step, const StepsOfEnsemble& steps_of) {
  const std::string& name = ensemble.model.name;
  if (step == name) return "the ensemble calls itself; name a model, or leave the step out";
  if (has_as_step) {
    return fmt::format(
        "'{}' is an ensemble, but one with as_step has steps that are models only; put the steps "
        "of '{}' here",
        step, step);
  }
  if (Reaches(steps_of, step, name)) {
    return fmt::format("'{}' is an ensemble that calls '{}' in turn; leave one of the steps out",
                       step, name);
  }
  return fmt::format("'{}' is an ensemble itself; put its steps here, or give it as_step", step);
}

}  // namespace tactus
