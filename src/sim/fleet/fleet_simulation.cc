#include "sim/fleet/fleet_simulation.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/fleet/fleet_world.h"

namespace tactus {
namespace {

// Of whole milliseconds counted.
double PercentileOf(const std::vector<std::int64_t>& counts, double percent) {
  std::int64_t all = 0;
  for (const std::int64_t each : counts) all += each;
  std::int64_t seen = 0;
  for (std::size_t ms = 0; ms < counts.size(); ++ms) {
    seen += counts[ms];
    if (seen > 0 && static_cast<double>(seen) >= percent * 1e-2 * static_cast<double>(all)) {
      return static_cast<double>(ms);
    }
  }
  return 0;
}

// Memory that the device's instances take on its accelerators: weights once for each model and
// accelerator, and what batches need, with windows the largest of each stream, else of all at once.
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

}  // namespace

FleetReport FleetWorld::Report() const {
  FleetReport report = report_;
  report.fleet = scenario_.name;
  report.planner = scenario_.run.planner;
  report.policy = scenario_.run.policy;
  if (const std::string& servers = scenario_.run.server_policy; !servers.empty()) {
    report.policy += " (servers: " + servers + ")";
  }
  report.seed = scenario_.run.seed;
  report.duration_s = scenario_.run.duration_s;
  report.exits =
      std::ranges::any_of(input_.costs, [](const FleetCost& each) { return !each.exits.empty(); });
  for (std::size_t p = 0; p < report.pipelines.size(); ++p) {
    FleetPipelineReport& pipeline = report.pipelines[p];
    pipeline.p50_ms = PercentileOf(latency_ms_[p], 50);
    pipeline.p95_ms = PercentileOf(latency_ms_[p], 95);
    pipeline.p99_ms = PercentileOf(latency_ms_[p], 99);
  }
  for (std::size_t m = 0; m < models_.size(); ++m) {
    const auto& to = generations_[serving_].routes[m].to;
    if (!to.empty()) report.stages[m].device = input_.devices[to.front().device.value()].name;
  }
  const double seconds = scenario_.run.duration_s;
  for (DeviceId::rep d = 0; d < input_.devices.size(); ++d) {
    const FleetDevice& device = input_.devices[d];
    double busy = 0;
    for (int a = 0; a < device.accelerators; ++a) {
      busy += ToSeconds(accelerators_[AcceleratorOf(DeviceId{d}, a)].busy(end_)) / seconds;
    }
    const double memory_mb = MemoryOf(generations_[serving_].plan, input_, DeviceId{d}, windows_);
    report.devices.push_back(
        {.name = device.name, .busy = busy / device.accelerators, .memory_mb = memory_mb});
    if (device.server) report.memory_mb += memory_mb;
  }
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const FleetLink& link = input_.links[l / 2];
    const bool back = l % 2 == 1;
    const std::string& from = input_.sites[(back ? link.b : link.a).value()];
    const std::string& to = input_.sites[(back ? link.a : link.b).value()];
    const LinkTotals& totals = links_[l].totals();
    report.links.push_back({.name = from + " -> " + to,
                            .busy = ToSeconds(totals.busy) / seconds,
                            .megabytes = totals.bytes * 1e-6,
                            .delivered = totals.delivered,
                            .dropped = totals.dead + totals.full});
  }
  return report;
}

Expected<FleetReport> SimulateFleet(const FleetScenario& scenario,
                                    const FleetSimulationOptions& options) {
  auto pipelines = MakeFleetPipelines(scenario.input);
  if (!pipelines) return std::unexpected(pipelines.error());
  FleetWorld world(scenario, options, std::move(*pipelines));
  if (auto started = world.Start(); !started) return std::unexpected(started.error());
  world.Simulate();
  return world.Report();
}

}  // namespace tactus
