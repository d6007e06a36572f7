#include "sim/fleet/fleet_controller.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planners/fleet_registry.h"

namespace tactus {
namespace {

constexpr double kLeastItems = 0.01;  // a frame; planners size instances for something
constexpr double kLeastMbps = 0.01;
constexpr double kOfLinks = 0.25;  // the percentile that planners take
constexpr Duration kLinkWindow = Seconds(60);
constexpr int kWindows[] = {15, 30, 60};  // seconds: the largest rate of them is planned for

}  // namespace

FleetController::FleetController(const FleetScenario& scenario, const FleetItems& items,
                                 std::vector<const RateTrace*> links)
    : scenario_(scenario),
      items_(items),
      links_(std::move(links)),
      seen_(scenario.input),
      scaling_(scenario.run.planner) {}

Expected<FleetPlan> FleetController::First(const FleetPlan* given) {
  for (FleetPipelineId::rep p = 0; p < seen_.pipelines.size(); ++p) {
    auto& stages = seen_.pipelines[p].stages;
    for (FleetStageId::rep s = 0; s < stages.size(); ++s) {
      stages[s].items =
          std::max(kLeastItems, items_.MeanItems(FleetPipelineId{p}, FleetStageId{s}, 0, 60));
    }
  }
  for (std::size_t l = 0; l < links_.size(); ++l) {
    if (links_[l] == nullptr) continue;
    seen_.links[l].mbps =
        std::max(kLeastMbps, links_[l]->Quantile(kStart, kStart + kLinkWindow, kOfLinks));
  }
  if (auto known = CheckFleetPlanner(scenario_.run.planner); !known) {
    return std::unexpected(known.error());
  }
  auto plan = given != nullptr ? *given : PlanFleet(scenario_.run.planner, seen_);
  if (plan) plan->epoch = ++epochs_;
  return plan;
}

void FleetController::Sample(TimePoint now, const FleetCounts& counts) {
  samples_.push_back({now, counts});
  const TimePoint keep = now - FromSeconds(scenario_.run.report_s) - Seconds(62);
  while (samples_.size() > 2 && samples_[1].at < keep) samples_.pop_front();
}

const FleetController::Sampled* FleetController::SampleBefore(TimePoint at) const {
  const auto after = std::ranges::upper_bound(samples_, at, {}, &Sampled::at);
  return after == samples_.begin() ? nullptr : &*std::prev(after);
}

void FleetController::Look(TimePoint now) {
  const TimePoint known = now - FromSeconds(scenario_.run.report_s);
  const Sampled* last = SampleBefore(known);
  for (std::size_t p = 0; last != nullptr && p < seen_.pipelines.size(); ++p) {
    auto& stages = seen_.pipelines[p].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (stages[s].after.empty()) continue;
      // Of what is found in each answer of the stage before, not of what reaches this one: a
      // bottleneck before it hides no load.
      double most = -1;
      for (const int window : kWindows) {
        const Sampled* first = SampleBefore(last->at - Seconds(window));
        if (first == nullptr) continue;
        const auto crops = last->counts.crops[p][s] - first->counts.crops[p][s];
        const auto found = last->counts.items[p][s] - first->counts.items[p][s];
        if (crops < 10) continue;
        most = std::max(most, static_cast<double>(found) / static_cast<double>(crops));
      }
      if (most < 0) continue;
      const FleetStage& before = stages[stages[s].after.front().value()];
      stages[s].items = std::max(kLeastItems, most * (before.after.empty() ? 1 : before.items));
    }
  }
  if (known <= kStart) return;
  for (std::size_t l = 0; l < links_.size(); ++l) {
    if (links_[l] == nullptr) continue;
    const TimePoint from = std::max(kStart, known - kLinkWindow);
    seen_.links[l].mbps = std::max(kLeastMbps, links_[l]->Quantile(from, known, kOfLinks));
  }
}

Expected<FleetPlan> FleetController::Next(TimePoint now) {
  Look(now);
  auto plan = PlanFleet(scenario_.run.planner, seen_);
  if (plan) plan->epoch = ++epochs_;
  return plan;
}

bool FleetController::Scales() const {
  return scenario_.run.autoscale_s > 0 && IsScaled(scenario_.run.planner);
}

FleetPlan FleetController::Scaled(TimePoint now, const FleetPlan& plan) {
  Look(now);
  FleetPlan scaled = plan;
  const auto changes = scaling_.Step(seen_, scaled, now);
  const bool any = std::ranges::any_of(changes, [](const auto& each) { return each.by != 0; });
  if (any) scaled.epoch = ++epochs_;
  return scaled;
}

double MemoryOf(const FleetPlan& plan, const FleetInput& input, DeviceId device, bool windows) {
  double memory_mb = 0;
  std::set<std::pair<int, ModelId>> loaded;
  std::map<std::pair<int, int>, double> peaks;  // of streams
  for (const FleetInstance& each : plan.instances) {
    if (each.device != device) continue;
    const ModelId model = input.pipelines[each.pipeline.value()].stages[each.stage.value()].model;
    const FleetCost& cost = *input.CostOf(model, input.devices[device.value()].kind);
    if (loaded.insert({each.accelerator, model}).second) memory_mb += cost.weights_mb;
    const auto batch = std::ranges::find(cost.batches, each.batch, &FleetBatch::batch);
    double& peak = peaks[{each.accelerator, each.stream}];
    if (!windows) memory_mb += batch->peak_mb;
    if (windows) peak = std::max(peak, batch->peak_mb);
  }
  for (const auto& [stream, peak] : peaks) memory_mb += peak;
  return memory_mb;
}

}  // namespace tactus
