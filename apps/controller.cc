// tactus controller: plans a fleet for the nodes that are here, and rolls the plans out.
#include "cluster/control/controller.h"

#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "commands.h"
#include "log_queue.h"
#include "output_file.h"
#include "planners/fleet_registry.h"
#include "stop_signals.h"
#include "workload/fleet_file.h"
#include "workload/fleet_scenario.h"

namespace tactus {
namespace {

struct ControllerFlags {
  std::string fleet;
  std::string listen = "127.0.0.1:7400";
  std::string state;
  std::string tls;
  std::string planner;  // empty: the file's
  double replan_s = 360;
  double links_s = 30;
  double forget_s = 600;
};

int RunController(const ControllerFlags& flags) {
  StopSignals signals;
  LogQueue logs("info");
  auto fleet = LoadFleet(flags.fleet);
  if (!fleet) return ReportBadInput(fleet.error());
  const auto run = LoadFleetRun(flags.fleet);
  if (!run) return ReportBadInput(run.error());
  const std::string planner = flags.planner.empty() ? run->planner : flags.planner;
  if (auto known = CheckFleetPlanner(planner); !known) return ReportBadInput(known.error());
  auto tls = ReadClusterTls(flags.tls);
  if (!tls) return ReportBadInput(tls.error());
  ControllerOptions options{.listen = flags.listen, .state = flags.state, .tls = *std::move(tls)};
  options.authority = flags.tls;
  options.leader.replan_every = FromSeconds(flags.replan_s);
  options.leader.links_every = FromSeconds(flags.links_s);
  options.leader.forget_after = FromSeconds(flags.forget_s);
  const std::size_t nodes = fleet->devices.size();
  auto controller = Controller::Start(
      std::move(options), *std::move(fleet),
      [planner](const FleetInput& input) { return PlanFleet(planner, input); },
      [log = logs.log()](const std::string& line) { log->info("{}", line); });
  if (!controller) return ReportBadInput(controller.error());
  fmt::print("tactus controller plans {} nodes by {}\nready control={}\n", nodes, planner,
             (*controller)->port());
  std::fflush(stdout);
  while (!signals.CameWithin(std::chrono::milliseconds(200))) {
    const std::string why = (*controller)->superseded();
    if (why.empty()) continue;
    logs.log()->error("{}; this one ends. Started again, it leads by a later term", why);
    return 1;
  }
  return 0;
}

}  // namespace

void AddController(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<ControllerFlags>();
  CLI::App* command = app.add_subcommand(
      "controller", "Plan a fleet for the nodes that are here, and roll the plans out");
  command->add_option("fleet", flags->fleet, "Devices, links, costs and pipelines (TOML)")
      ->required()
      ->check(ReadFile());
  command
      ->add_option(
          "--listen", flags->listen,
          "HOST:PORT for agents; port 0: any free one; beyond this machine only with --tls")
      ->capture_default_str();
  command->add_option("--state", flags->state, "Folder for what it must know when it starts again")
      ->required();
  command->add_option("--tls", flags->tls,
                      "Folder of `tactus cluster init`: certificates, and who may join");
  std::string names = "One of";
  for (const FleetPlannerInfo& each : FleetPlanners()) {
    names += fmt::format("{} {}", names == "One of" ? "" : ",", each.name);
  }
  command->add_option(
      "--planner", flags->planner,
      names + "; else the one that the file's [fleet] names, or " + FleetRun{}.planner);
  command
      ->add_option("--replan-seconds", flags->replan_s,
                   "How often to plan anew for the rates that are measured")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  command
      ->add_option(
          "--links-seconds", flags->links_s,
          "How soon after a plan there may be another for links that carry far less or far "
          "more than it was made for")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command
      ->add_option("--forget-seconds", flags->forget_s,
                   "How long a model stays loaded that an absent node may send to")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command->callback([flags, &context] { context.exit_code = RunController(*flags); });
}

}  // namespace tactus
