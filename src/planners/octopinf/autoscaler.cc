#include "planners/octopinf/autoscaler.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planners/fleet_estimate.h"
#include "planners/octopinf/coral.h"

namespace tactus {
namespace {

// How much of the time the instances of a stage would be busy if there were one of them. With
// windows: what comes in a cycle, of what their batches hold.
double BusyOfOne(const FleetInput& input, const FleetInstance& instance) {
  const FleetStage& stage =
      input.pipelines[instance.pipeline.value()].stages[instance.stage.value()];
  const FleetBatch& batch = *BatchOf(input, stage.model, instance.device, instance.batch);
  double rate = input.RateOf(instance.pipeline, instance.stage);
  for (const FleetStageRef& each : instance.also) rate += input.RateOf(each.pipeline, each.stage);
  const Duration cycle = instance.length > Duration{} ? instance.cycle : Duration{};
  return std::max(BusyOf(rate, batch), rate * ToSeconds(cycle) / batch.batch);
}

// One step's changes to a plan: instances that are added behind the last one of their stage, or
// that one taken away.
class Rescaled {
 public:
  Rescaled(const FleetInput& input, FleetPlan& plan) : input_(input), plan_(plan) {}

  // `from` to `to`: the stage's instances. False where there is no room for another.
  bool Add(std::size_t from, std::size_t to) {
    const FleetInstance& first = plan_.instances[from];
    const StagePlacement at{first.device, first.batch, static_cast<int>(to - from) + 1};
    ScheduledInstance made =
        ScheduleOne(input_, first.pipeline, first.stage, at, before_, Table(first.device));
    if (!made.placed) return false;
    made.instance.also = first.also;
    edits_.push_back({to, true, std::move(made.instance)});
    return true;
  }
  void TakeAway(std::size_t to) {
    const FleetInstance& last = plan_.instances[to - 1];
    StreamTable& table = Table(last.device);
    if (restored_[to - 1]) table.Reclaim(last);
    edits_.push_back({to, false, {}});
  }
  // Goes on behind a stage's instances: the pipeline's later stages come after them, with what this
  // step has changed.
  void Pass(std::size_t from, std::size_t to) {
    const FleetInstance& first = plan_.instances[from];
    if (!before_.empty() && before_.back().pipeline != first.pipeline) before_.clear();
    const auto begin = plan_.instances.begin();
    before_.insert(before_.end(), begin + static_cast<std::ptrdiff_t>(from),
                   begin + static_cast<std::ptrdiff_t>(to));
    if (edits_.empty() || edits_.back().at != to) return;
    if (edits_.back().added) before_.push_back(edits_.back().made);
    if (!edits_.back().added) before_.pop_back();
  }
  // Makes the changes.
  void Apply() {
    if (edits_.empty()) return;
    std::vector<FleetInstance> changed;
    changed.reserve(plan_.instances.size() + edits_.size());
    std::size_t next = 0;
    for (Edit& each : edits_) {
      for (; next < each.at; ++next) changed.push_back(std::move(plan_.instances[next]));
      if (each.added) changed.push_back(std::move(each.made));
      if (!each.added) changed.pop_back();
    }
    for (; next < plan_.instances.size(); ++next) {
      changed.push_back(std::move(plan_.instances[next]));
    }
    plan_.instances = std::move(changed);
    plan_.routes = RoutesOf(plan_.instances);
  }

 private:
  struct Edit {
    std::size_t at;  // before this one of the plan's instances
    bool added;
    FleetInstance made;
  };

  // With what the device has. A step that changes little looks at few devices.
  StreamTable& Table(DeviceId device) {
    if (!table_) {
      table_.emplace(input_);
      restored_.resize(plan_.instances.size());
      on_.resize(input_.devices.size());
      for (std::size_t i = 0; i < plan_.instances.size(); ++i) {
        on_[plan_.instances[i].device.value()].push_back(i);
      }
    }
    for (const std::size_t i : std::exchange(on_[device.value()], {})) {
      restored_[i] = table_->Restore(plan_.instances[i]);
    }
    return *table_;
  }

  const FleetInput& input_;
  FleetPlan& plan_;
  std::vector<Edit> edits_;            // in the order of their places
  std::vector<FleetInstance> before_;  // of the pipeline that it is at, as they will be
  std::optional<StreamTable> table_;
  std::vector<std::vector<std::size_t>> on_;  // by device: its instances that are not restored yet
  std::vector<bool> restored_;  // plans without windows may ask for more use than there is
};

}  // namespace

std::vector<AutoScaler::Change> AutoScaler::Step(const FleetInput& input, FleetPlan& plan,
                                                 TimePoint now) {
  std::vector<Change> changes;
  Rescaled rescaled(input, plan);
  for (std::size_t from = 0, to = 0; from < plan.instances.size(); from = to) {
    const FleetPipelineId p = plan.instances[from].pipeline;
    const FleetStageId s = plan.instances[from].stage;
    while (to < plan.instances.size() && plan.instances[to].pipeline == p &&
           plan.instances[to].stage == s) {
      ++to;
    }
    const auto count = static_cast<int>(to - from);
    const double busy = BusyOfOne(input, plan.instances[from]);
    const auto known = changed_.find({p, s});
    const Duration since = known == changed_.end() ? Duration::max() : now - known->second;
    if (busy / count > options_.up && since >= options_.after_up) {
      const bool added = rescaled.Add(from, to);
      if (added) changed_[{p, s}] = now;
      changes.push_back({p, s, added ? 1 : 0, busy / count});
    } else if (count > 1 && busy / (count - 1) < options_.down && since >= options_.after_down) {
      rescaled.TakeAway(to);
      changed_[{p, s}] = now;
      changes.push_back({p, s, -1, busy / count});
    }
    rescaled.Pass(from, to);
  }
  rescaled.Apply();
  return changes;
}

}  // namespace tactus
