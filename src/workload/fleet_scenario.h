// A fleet with all that simulating it takes: what its links and its pictures do over time, and how
// it is run. The tables of workload/fleet_file.h, and besides
//
// [fleet]      duration_s, seed, planner, policy, ... as FleetRun below, by these names
// [[links]]    trace = "3": the rows of [fleet] traces (CSV: trace,t_s,mbps) whose first field it
// is
// [[pipelines.stages]] items_from = "cars": a column of [fleet] counts (CSV: t_s and the columns)
//
// [fleet]      curve: how many objects there are over the run, as parts of the counts (CSV:
//              t_s,times, between two rows in proportion); exits: where all models of a kind of
//              device may end early (CSV: kind,part,accuracy, as FleetExit)
//
// These files lie beside the scenario. In the first rows of a CSV file, # begins a remark.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/fleet_plan.h"

namespace tactus {

struct FleetRun {
  double duration_s = 60;
  std::uint64_t seed = 1;
  std::string planner = "octopinf-relieved";  // sustains most: docs/research/papers/octopinf.md
  std::string policy = "horizon";             // of every device's dispatcher
  std::string server_policy;                  // of servers' instead; empty: that one too
  double period_s = 360;                      // from plan to plan; 0: the first one is the only one
  // A plan for a link that has changed comes no sooner after another; 0: links cause no plan.
  double links_s = 30;
  double autoscale_s = 30;   // from look to look between plans, for OctopInf's; 0: nobody scales
  double report_s = 1;       // what is measured reaches the controller so much later
  double load_s = 2;         // until a device has loaded a model for a plan
  double latency_scale = 1;  // of what batches take
  double load_scale = 1;     // of frames a second
  double slo_less_ms = 0;    // off every SLO
  double crosstalk = 0.03;   // what each batch beside another costs it, of its time alone
  double spread = 0.05;      // of the logarithm of what batches take; the costs are their P95
  std::string traces;        // of links
  std::string counts;        // of objects in pictures
  std::string curve;         // of these over the run
  std::string exits;         // of models, by kind of device
};

struct CurvePoint {
  double t_s = 0;
  double times = 1;

  bool operator==(const CurvePoint&) const = default;
};

struct LinkSample {
  double t_s = 0;
  double mbps = 0;

  bool operator==(const LinkSample&) const = default;
};

struct FleetScenario {
  std::string name;  // of its file
  FleetInput input;  // scaled as `run` says
  FleetRun run;
  std::vector<std::vector<LinkSample>> link_rates;      // by link; empty: its mbps, always
  std::vector<std::vector<std::vector<double>>> items;  // by pipeline, stage, second; empty: drawn
  std::vector<CurvePoint> curve;                        // times the counts; empty: 1
};

// `settings` change keys of [fleet]: "planner=rim". Errors name file and line, or the setting.
Expected<FleetScenario> LoadFleetScenario(const std::filesystem::path& path,
                                          std::span<const std::string> settings = {});
Expected<FleetScenario> ParseFleetScenario(std::string_view text,
                                           const std::filesystem::path& where,
                                           std::span<const std::string> settings = {});
// What its [fleet] says, without what it takes from other files.
Expected<FleetRun> LoadFleetRun(const std::filesystem::path& path);
// Whether a scenario's text is one of a fleet: it has [[devices]].
bool IsFleet(std::string_view text);

}  // namespace tactus
