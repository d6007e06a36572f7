// tactus controller: plans a fleet for the nodes that are here, and rolls the plans out.
#include "cluster/control/controller.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "cluster/controller/controller_life.h"
#include "cluster/controller/controller_models.h"
#include "cluster/tls/tls.h"
#include "commands.h"
#include "output_file.h"
#include "planners/fleet_registry.h"
#include "platform/process.h"
#include "serving/log_queue.h"
#include "serving/patient_sink.h"
#include "serving/peer_port.h"
#include "serving/stop_signals.h"
#include "workload/fleet_file.h"
#include "workload/fleet_scenario.h"

namespace tactus {
namespace {

struct ControllerFlags {
  std::string fleet;
  std::string listen = "127.0.0.1:7400";
  std::string state;
  std::string tls;
  std::string models;   // empty: those beside the fleet, if there are any
  std::string planner;  // empty: the file's
  double replan_s = 360;
  double autoscale_s = -1;  // below 0: the file's
  double links_s = 30;
  double dead_s = 10;
  double forget_s = 600;
  ControllerLifeFlags life;
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
  // A connection for each node, and files of its own.
  constexpr std::size_t kOwnFiles = 64;
  if (const std::size_t limit = RaiseDescriptorLimit(); limit < fleet->devices.size() + kOwnFiles) {
    logs.log()->warn("the system allows {} file descriptors, too few for {} nodes (ulimit -n)",
                     limit, fleet->devices.size());
  }
  auto tls = PeerTls::Open(flags.tls);
  if (!tls) return ReportBadInput(tls.error());
  if (const Status reach = CheckReach(flags.listen, *tls); !reach)
    return ReportBadInput(reach.error());
  if (tls->on() && tls->node() != kControllerNode) {
    return ReportBadInput(
        {ErrorCode::kInvalidArgument, fmt::format("--tls {0}: {0}/node.pem is of node '{1}', and a "
                                                  "controller's is of `tactus cluster init`: name "
                                                  "the folder that it made",
                                                  flags.tls, tls->node())});
  }
  ControllerOptions options{.listen = flags.listen, .state = flags.state, .tls = *std::move(tls)};
  options.authority = flags.tls;
  options.leader.replan_every = FromSeconds(flags.replan_s);
  options.leader.links_every = FromSeconds(flags.links_s);
  options.leader.membership = MembershipOptions::DeadAfter(FromSeconds(flags.dead_s));
  options.leader.settle = std::min(options.leader.settle, options.leader.membership.suspect_after);
  options.leader.forget_after = FromSeconds(flags.forget_s);
  const auto place = PlaceOf("--listen", flags.listen);
  if (!place) return ReportBadInput(place.error());
  if (Status free = CheckListens("--listen", *place); !free) return ReportBadInput(free.error());
  const auto models =
      flags.models.empty() ? ModelsBeside(flags.fleet) : std::filesystem::path(flags.models);
  const auto say = [log = logs.log()](const std::string& line) { log->info("{}", line); };
  if (Status offered = OfferModels(models, *fleet, options, say); !offered) {
    return ReportBadInput(offered.error());
  }
  ControllerLifeFlags life = flags.life;
  life.autoscale_s = flags.autoscale_s < 0 ? run->autoscale_s : flags.autoscale_s;
  const auto told_to_end = [&signals] {
    const bool told = signals.CameWithin(std::chrono::milliseconds(50));
    if (told) StopSignals::EndWithin({});
    return told;
  };
  const auto ended =
      RunControllerLife(std::move(options), *fleet, planner, life,
                        {.told_to_end = told_to_end, .print = SayPatiently, .log = say});
  return ended ? *ended : ReportBadInput(ended.error());
}

void AddControllerLife(CLI::App& command, ControllerLifeFlags& life) {
  command.add_option("--store", life.store,
                     "Where history is kept: sqlite:PATH or postgresql://USER@HOST:PORT/DATABASE "
                     "(default: knowledge.db in --state)");
  command
      .add_option("--elect", life.elect,
                  "Service that elects one of several controllers: none (there is only one), "
                  "sqlite:PATH (all on one machine), postgresql://... or "
                  "etcd://HOST:PORT[,HOST:PORT]/CLUSTER")
      ->capture_default_str();
  command.add_option("--name", life.name,
                     "Name of this controller among the others (default: --listen)");
  AddOption(command, "--lease-seconds", life.lease_s, CLI::Range(2.0, 3600.0),
            "How long a silent leader remains the leader before another takes over")
      ->capture_default_str();
}

}  // namespace

void AddController(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<ControllerFlags>();
  CLI::App* command = app.add_subcommand(
      "controller", "Plan a fleet for the nodes that are running, and roll the plans out");
  AddOption(*command, "fleet", flags->fleet, ReadFile(),
            "Devices, links, costs and pipelines (TOML)")
      ->required();
  command
      ->add_option(
          "--listen", flags->listen,
          "HOST:PORT for agents; port 0: any free one; beyond this machine only with --tls")
      ->capture_default_str();
  command
      ->add_option("--state", flags->state,
                   "Folder for what the controller must know after a restart")
      ->required();
  command->add_option("--tls", flags->tls,
                      "Folder of `tactus cluster init`: the authority that lets nodes in, and this "
                      "controller's certificate for agents");
  AddOption(*command, "--models", flags->models, CLI::ExistingDirectory,
            "Repository from which nodes get their models (default: models/ beside the "
            "fleet, if it is there)");
  std::string names = "One of";
  for (const FleetPlannerInfo& each : FleetPlanners()) {
    names += fmt::format("{} {}", names == "One of" ? "" : ",", each.name);
  }
  command->add_option(
      "--planner", flags->planner,
      names + "; else the one that the file's [fleet] names, or " + FleetRun{}.planner);
  AddOption(*command, "--replan-seconds", flags->replan_s, CLI::Range(1.0, 1e6),
            "How often to make a new plan for the measured rates")
      ->capture_default_str();
  AddOption(*command, "--autoscale-seconds", flags->autoscale_s, CLI::Range(0.0, 1e6),
            "How often OctopInf's AutoScaler looks whether a stage needs an instance more or "
            "less between two plans; 0: never (default: autoscale_s of the file's [fleet], "
            "or 30)");
  AddOption(*command, "--links-seconds", flags->links_s, CLI::Range(0.1, 1e6),
            "Least time between two plans that changed links cause: links that carry far less or "
            "far more than the plan was made for")
      ->capture_default_str();
  AddOption(*command, "--dead-seconds", flags->dead_s, CLI::Range(4.0, 1e6),
            "How long a node may be silent before plans leave it out; at least 4, for an "
            "agent may need 2 to find its controller again")
      ->capture_default_str();
  AddOption(*command, "--forget-seconds", flags->forget_s, CLI::Range(0.0, 1e9),
            "How long to keep a model loaded when an absent node might still send requests to it")
      ->capture_default_str();
  AddControllerLife(*command, flags->life);
  command->callback([flags, &context] { context.exit_code = RunController(*flags); });
}

}  // namespace tactus
