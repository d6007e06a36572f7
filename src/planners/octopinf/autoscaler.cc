#include "planners/octopinf/autoscaler.h"

#include <algorithm>
#include <optional>

#include "planners/fleet_estimate.h"
#include "planners/octopinf/coral.h"

namespace tactus {

std::vector<AutoScaler::Change> AutoScaler::Step(const FleetInput& input, FleetPlan& plan,
                                                 TimePoint now) {
  std::vector<Change> changes;
  StreamTable table(input);
  for (const FleetInstance& each : plan.instances) table.Restore(each);
  for (FleetPipelineId::rep i = 0; i < input.pipelines.size(); ++i) {
    for (FleetStageId::rep k = 0; k < input.pipelines[i].stages.size(); ++k) {
      const FleetPipelineId p{i};
      const FleetStageId s{k};
      const auto is_it = [&](const FleetInstance& each) {
        return each.pipeline == p && each.stage == s;
      };
      const auto first = std::ranges::find_if(plan.instances, is_it);
      if (first == plan.instances.end()) continue;
      const auto last = std::find_if_not(first, plan.instances.end(), is_it);
      const auto count = static_cast<int>(last - first);
      const FleetStage& stage = input.pipelines[i].stages[k];
      const FleetBatch& batch = *BatchOf(input, stage.model, first->device, first->batch);
      // Windows: what comes in a cycle, of what their batches hold.
      double rate = input.RateOf(p, s);
      for (const FleetStageRef& each : first->also) rate += input.RateOf(each.pipeline, each.stage);
      const Duration each_cycle = first->length > Duration{} ? first->cycle : Duration{};
      const double in_cycle = rate * ToSeconds(each_cycle) / batch.batch;
      const double busy = std::max(BusyOf(rate, batch), in_cycle);
      const auto known = changed_.find({p, s});
      const Duration since = known == changed_.end() ? Duration::max() : now - known->second;
      if (busy / count > options_.up && since >= options_.after_up) {
        const StagePlacement at{first->device, first->batch, count + 1};
        const std::vector<FleetInstance> placed(plan.instances);
        ScheduledInstance made = ScheduleOne(input, p, s, at, placed, table);
        made.instance.also = first->also;
        if (made.placed) plan.instances.insert(last, made.instance);
        if (made.placed) changed_[{p, s}] = now;
        changes.push_back({p, s, made.placed ? 1 : 0});
      } else if (count > 1 && busy / (count - 1) < options_.down && since >= options_.after_down) {
        table.Reclaim(*std::prev(last));
        plan.instances.erase(std::prev(last));
        changed_[{p, s}] = now;
        changes.push_back({p, s, -1});
      }
    }
  }
  return changes;
}

}  // namespace tactus
