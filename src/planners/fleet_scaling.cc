#include "planners/fleet_scaling.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planners/fleet_registry.h"

namespace tactus {

bool IsScaled(std::string_view planner) { return planner.starts_with("octopinf"); }

FleetScaling::FleetScaling(std::string_view planner, AutoScalerOptions options)
    : windows_(UseLimitOf(planner) == UseLimit::kKept), options_(options), scaler_(options) {}

std::vector<AutoScaler::Change> FleetScaling::Step(const FleetInput& input, FleetPlan& plan,
                                                   TimePoint now) {
  // The AutoScaler knows them by their numbers, which are others where a pipeline is away.
  if (!std::ranges::equal(input.pipelines, pipelines_, {}, &FleetPipeline::name)) {
    scaler_ = AutoScaler(options_);
    pipelines_.clear();
    for (const FleetPipeline& each : input.pipelines) pipelines_.push_back(each.name);
  }
  auto changes = scaler_.Step(input, plan, now);
  if (windows_) return changes;
  for (FleetInstance& each : plan.instances) each.offset = each.length = Duration{};
  return changes;
}

std::string TextOf(const std::vector<AutoScaler::Change>& changes, const FleetInput& input,
                   const FleetPlan& plan, int most) {
  std::string text;
  int told = 0, more = 0;
  for (const AutoScaler::Change& each : changes) {
    if (each.by == 0) continue;
    if (told++ >= most) {
      ++more;
      continue;
    }
    const auto now = std::ranges::count_if(plan.instances, [&](const FleetInstance& instance) {
      return instance.pipeline == each.pipeline && instance.stage == each.stage;
    });
    const FleetPipeline& pipeline = input.pipelines[each.pipeline.value()];
    text += fmt::format("{}{}/{} {} -> {} instances (busy {:.2f})", text.empty() ? "" : ", ",
                        pipeline.name, pipeline.stages[each.stage.value()].name, now - each.by, now,
                        each.busy);
  }
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

PlanScaling ScalingOf(std::string_view planner, AutoScalerOptions options) {
  if (!IsScaled(planner)) return nullptr;
  return [scaling = FleetScaling(planner, options)](const FleetInput& input, FleetPlan& plan,
                                                    TimePoint now) mutable {
    return TextOf(scaling.Step(input, plan, now), input, plan);
  };
}

}  // namespace tactus
