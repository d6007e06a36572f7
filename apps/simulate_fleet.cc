// tactus simulate of a fleet: all its devices in virtual time, by one planner or several.
#include "simulate_fleet.h"

#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/whole_file.h"
#include "commands.h"
#include "experiment/kept_files.h"
#include "metrics/fleet_report.h"
#include "output_file.h"
#include "planners/fleet_registry.h"
#include "policies/registry.h"
#include "sim/fleet/fleet_simulation.h"
#include "workload/fleet_plan_file.h"
#include "workload/fleet_scenario.h"

namespace tactus {

namespace {

// That the scenario names.
std::vector<std::filesystem::path> FilesOf(const FleetScenario& scenario,
                                           const SimulateFleetOptions& options) {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(options.scenario).parent_path();
  for (const std::string& file : {scenario.run.traces, scenario.run.counts}) {
    if (!file.empty()) files.push_back(folder / file);
  }
  if (!options.plan.empty()) files.push_back(options.plan);
  return files;
}

}  // namespace

namespace {

// The plan of --plan; what runs then is that plan alone, unless the settings say otherwise.
Expected<FleetPlanFile> TakeFleetPlan(const SimulateFleetOptions& options,
                                      std::vector<std::string>& settings) {
  if (!options.planners.empty()) {
    return InvalidArgument(
        "--planners: --plan already says what runs where; leave one of them out (with --set "
        "period_s=360 "
        "--set planner=NAME that planner plans again)");
  }
  const auto scenario = LoadFleetScenario(options.scenario, options.settings);
  if (!scenario) return std::unexpected(scenario.error());
  auto file = LoadFleetPlan(options.plan, scenario->input);
  if (!file) return file;
  if (const auto known = CheckFleetPlanner(file->planner); !known) {
    return InvalidArgument(options.plan + ": planner: " + known.error().message);
  }
  settings.insert(settings.begin(), {"planner=" + file->planner, "period_s=0", "autoscale_s=0"});
  return file;
}

}  // namespace

bool IsFleetFile(const std::string& path) {
  const auto text = ReadWhole(path, "scenario");
  return text && IsFleet(*text);
}

int RunSimulateFleet(const SimulateFleetOptions& options) {
  std::vector<std::string> planners = options.planners, policies = options.policies;
  if (planners.empty()) planners.push_back("");
  if (policies.empty()) policies.push_back("");
  std::vector<FleetReport> reports;
  std::vector<std::string> common = options.settings;
  FleetPlanFile file;
  if (!options.plan.empty()) {
    auto taken = TakeFleetPlan(options, common);
    if (!taken) return ReportBadInput(taken.error());
    file = std::move(*taken);
    for (const std::string& doubt : file.doubts) {
      fmt::print("{}, doubtful: {}\n", options.plan, doubt);
    }
  }
  for (const std::string& planner : planners) {
    for (const std::string& policy : policies) {
      for (int i = 0; i < std::max(1, options.seeds); ++i) {
        std::vector<std::string> settings = common;
        if (!planner.empty()) settings.push_back("planner=" + planner);
        if (!policy.empty()) settings.push_back("policy=" + policy);
        if (options.seeds > 0) {
          const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(i);
          settings.push_back(fmt::format("seed={}", seed));
        }
        const auto scenario = LoadFleetScenario(options.scenario, settings);
        if (!scenario) return ReportBadInput(scenario.error());
        if (const auto kept =
                KeepFiles(options.scenario, FilesOf(*scenario, options), {options.json});
            !kept) {
          return ReportBadInput(kept.error());
        }
        const auto report = SimulateFleet(
            *scenario, {.policies = [](const std::string& name) { return MakePolicy(name); },
                        .plan = options.plan.empty() ? nullptr : &file.plan});
        if (!report) return ReportBadInput(report.error());
        reports.push_back(*report);
      }
    }
  }
  fmt::print("{}", reports.size() == 1 ? FleetTable(reports.front()) : FleetComparison(reports));
  if (options.json.empty()) return 0;
  const auto written = WriteWhole(FleetReportsJson(reports), options.json, "report");
  return written ? 0 : ReportBadInput(written.error());
}

}  // namespace tactus
