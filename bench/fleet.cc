// How long planners of fleets take: OctopInf's testbed of nine devices, and a fleet of a thousand
// with seven stages each; a step of the AutoScaler; how large a device's part of a plan is as it is
// sent; and how many items a second of CPU time are simulated.
#include <algorithm>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#ifdef TACTUS_WITH_CONTROL
#include "cluster/control/codec.h"
#include "fleet/slices.h"
#endif
#include "base/source_path_for_test.h"
#include "planners/fleet_registry.h"
#include "planners/octopinf/autoscaler.h"
#include "policies/registry.h"
#include "program.h"
#include "sim/fleet/fleet_simulation.h"
#include "workload/fleet_file.h"
#include "workload/fleet_scenario.h"

namespace tactus {
namespace {

const std::string kTestbed = SourcePath("scenarios/fleets/testbed.toml");
constexpr int kManyDevices = 1000;
const std::string kSimulated = SourcePath("scenarios/octopinf/testbed.toml");
constexpr double kItemsBar = 1e6;  // a second of CPU time
constexpr double kTestbedBarMs = 100, kManyBarMs = 2000, kStepBarMs = 5;
constexpr double kSliceBarBytes = 2000;

// A thousand cameras like the testbed's, each with a chain of seven stages, at one server of enough
// accelerators.
FleetInput Many(const FleetInput& testbed) {
  FleetInput input = testbed;
  const FleetDevice camera = testbed.devices.back();
  input.devices.resize(1);
  input.devices[0].accelerators = 400;
  input.links.clear();
  input.pipelines.clear();
  for (int i = 0; i < kManyDevices; ++i) {
    const SiteId site{static_cast<SiteId::rep>(input.sites.size())};
    input.sites.push_back(fmt::format("camera{}", i));
    FleetDevice& device = input.devices.emplace_back(camera);
    device.name = input.sites.back();
    device.site = site;
    input.links.push_back(
        {.a = input.devices[0].site, .b = site, .mbps = 20.0 + i % 60, .rtt = Millis(20)});
    FleetPipeline& pipeline = input.pipelines.emplace_back();
    pipeline = {.name = device.name,
                .slo = Millis(200 + i % 200),
                .source = DeviceId{static_cast<DeviceId::rep>(i + 1)},
                .rate_rps = 5.0 + i % 10};
    for (std::uint32_t s = 0; s < 7; ++s) {
      FleetStage& stage = pipeline.stages.emplace_back();
      stage.name = fmt::format("s{}", s);
      stage.model = ModelId{s % static_cast<std::uint32_t>(testbed.models.size())};
      if (s > 0) stage.after = {FleetStageId{s == 1 ? 0 : (s - 1) / 2}};
      stage.items = s == 0 ? 1 : 0.5 + 0.5 * ((i + s) % 5);
      stage.in_kb = s == 0 ? 110 : 5;
      stage.out_kb = 1;
    }
  }
  return input;
}

double LeastMs(int times, auto run) {
  double least = 1e18;
  for (int i = 0; i < times; ++i) {
    const auto begun = BenchClock::now();
    run();
    least = std::min(least, NanosSince(begun) * 1e-6);
  }
  return least;
}

Status TimePlanners(const FleetInput& input, const std::string& what, int times, double bar,
                    Report& report) {
  fmt::print("{}\n", what);
  for (const FleetPlannerInfo& planner : FleetPlanners()) {
    Expected<FleetPlan> plan = FleetPlan{};
    const double ms = LeastMs(times, [&] { plan = PlanFleet(planner.name, input); });
    if (!plan) return std::unexpected(plan.error());
    fmt::print("  {:<20} {:>10.3f} ms  {:>6} instances, {:>4} stages short\n", planner.name, ms,
               plan->instances.size(), plan->short_of.size());
    if (planner.name != "octopinf" && planner.name != "octopinf-relieved") continue;
    report.checks.push_back(
        AtMost(fmt::format("{}: ms a plan by {}", what, planner.name), ms, bar));
  }
  return {};
}

// A step of the AutoScaler where one in `every` pipelines has three times its load.
Status TimeSteps(const FleetInput& input, const std::string& what, std::size_t every,
                 Report& report) {
  FleetInput busier = input;
  for (std::size_t p = 0; p < input.pipelines.size(); p += every) {
    busier.pipelines[p].rate_rps *= 3;
  }
  for (const char* planner : {"octopinf", "octopinf-relieved"}) {
    const auto plan = PlanFleet(planner, input);
    if (!plan) return std::unexpected(plan.error());
    double ms = 1e18;
    std::size_t changes = 0;
    for (int i = 0; i < 20; ++i) {
      FleetPlan changed = *plan;
      ms = std::min(
          ms, LeastMs(1, [&] { changes = AutoScaler().Step(busier, changed, kStart).size(); }));
    }
    const std::string check =
        fmt::format("{}, {}, {} at three times the load", what, planner,
                    every == 1 ? "all pipelines" : fmt::format("one of {} pipelines", every));
    fmt::print("{}: {:.3f} ms a step of the AutoScaler, {} changes\n", check, ms, changes);
    report.checks.push_back(AtMost(check + ": ms a step of the AutoScaler", ms, kStepBarMs));
  }
  return {};
}

// What a node must know of a plan, as a controller sends it: the largest slice of an edge device
// and of a server.
Status WeighSlices(const FleetInput& input, const std::string& what, Report& report) {
#ifdef TACTUS_WITH_CONTROL
  std::set<std::string> nodes;
  for (const FleetDevice& device : input.devices) nodes.insert(device.name);
  for (const char* planner : {"octopinf", "octopinf-relieved"}) {
    const auto plan = PlanFleet(planner, input);
    if (!plan) return std::unexpected(plan.error());
    const auto slices = SlicesOf(*plan, input, {1, 1}, nodes);
    std::size_t edge = 0, server = 0, instances = 0;
    for (const FleetDevice& device : input.devices) {
      const FleetSlice& slice = slices.at(device.name);
      std::size_t& most = device.server ? server : edge;
      most = std::max(most, BytesOf(slice));
      if (device.server) instances = std::max(instances, slice.instances.size());
    }
    const std::string check = fmt::format("{}, {}", what, planner);
    fmt::print(
        "{}: slices of at most {} bytes for an edge device, {} for the server ({} instances)\n",
        check, edge, server, instances);
    report.checks.push_back(AtMost(check + ": bytes of an edge device's slice",
                                   static_cast<double>(edge), kSliceBarBytes));
    report.checks.push_back(AtMost(check + ": bytes of the server's slice",
                                   static_cast<double>(server), kSliceBarBytes));
  }
#else
  fmt::print("{}: slices are not weighed, as this build has no server\n", what);
#endif
  return {};
}

// OctopInf's testbed over ten minutes of its traces, plans and AutoScaler included.
Status CountItems(const std::string& policy, Report& report) {
  const auto scenario =
      LoadFleetScenario(kSimulated, std::vector<std::string>{"duration_s=600", "policy=" + policy});
  if (!scenario) return std::unexpected(scenario.error());
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begun = std::clock();
    const auto run = SimulateFleet(
        *scenario, {.policies = [](const std::string& name) { return MakePolicy(name); }});
    if (!run) return std::unexpected(run.error());
    const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
    best = std::max(best, static_cast<double>(run->items) / seconds);
  }
  fmt::print("simulated under {}: {:.2f} M items a second of CPU time\n", policy, best * 1e-6);
  if (policy != "planned") return {};
  report.checks.push_back(AtLeast("items simulated a second of CPU time", best, kItemsBar));
  return {};
}

int Run(const std::string& json) {
  const auto testbed = LoadFleet(kTestbed);
  if (!testbed) return CannotRun("fleet", testbed.error());
  const FleetInput many = Many(*testbed);
  Report report;
  for (const Status& done :
       {TimePlanners(*testbed, "9 edge devices", 50, kTestbedBarMs, report),
        TimePlanners(many, "1,000 edge devices of 7 stages", 3, kManyBarMs, report),
        TimeSteps(*testbed, "9 edge devices", 1, report),
        TimeSteps(many, "1,000 edge devices of 7 stages", 100, report),
        TimeSteps(many, "1,000 edge devices of 7 stages", 1, report),
        WeighSlices(*testbed, "9 edge devices", report),
        WeighSlices(many, "1,000 edge devices of 7 stages", report), CountItems("planned", report),
        CountItems("horizon", report)}) {
    if (!done) return CannotRun("fleet", done.error());
  }
  return Conclude("fleet", report, json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"How long planners of fleets take"};
  std::string json;
  app.add_option("--json", json, "Write the checks to this file");
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(json);
}
