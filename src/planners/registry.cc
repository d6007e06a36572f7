#include "planners/registry.h"

#include <string>
#include <utility>

#include "planners/gpulet/elastic.h"
#include "planners/nexus/squishy.h"

namespace tactus {
namespace {

class ElasticPlanner final : public Planner {
 public:
  ElasticPlanner(std::string_view name, std::optional<InterferenceModel> interference)
      : name_(name), interference_(interference) {}
  std::string_view name() const override { return name_; }
  Expected<Plan> Solve(const PlanInput& input) override {
    const InterferenceModel* interference = interference_ ? &*interference_ : nullptr;
    if (name_ == "gpulet-retry") return PlanElasticRetrying(input, {.interference = interference});
    return PlanElastic(input,
                       {.interference = interference, .self_tuning = name_ == "self-tuning"});
  }

 private:
  const std::string name_;
  const std::optional<InterferenceModel> interference_;
};

class SquishyPlanner final : public Planner {
 public:
  explicit SquishyPlanner(bool halves) : halves_(halves) {}
  std::string_view name() const override { return halves_ ? "nexus-half" : "nexus"; }
  Expected<Plan> Solve(const PlanInput& input) override {
    if (!halves_) return PlanSquishy(input, input.whole());
    for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
      if (input.shares[c] == 0.5) return PlanSquishy(input, LaneClass{c});
    }
    return InvalidArgument("planner nexus-half: needs 50 % among the shares of a device");
  }

 private:
  const bool halves_;
};

}  // namespace

Expected<std::unique_ptr<Planner>> MakePlanner(std::string_view name,
                                               std::optional<InterferenceModel> interference) {
  if (name == "gpulet" || name == "gpulet-retry" || name == "self-tuning") {
    return std::make_unique<ElasticPlanner>(name, interference);
  }
  if (name == "nexus" || name == "nexus-half") {
    return std::make_unique<SquishyPlanner>(name == "nexus-half");
  }
  return NotFound("no planner '" + std::string(name) +
                  "'; there are gpulet, gpulet-retry, self-tuning, nexus, nexus-half");
}

}  // namespace tactus
