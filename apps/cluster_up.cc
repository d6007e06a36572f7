// tactus cluster up: a whole cluster as processes of this machine, until Ctrl-C.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/whole_file.h"
#include "cluster/control/controller.h"
#include "cluster/control/state_file.h"
#include "cluster/controller/cluster_text.h"
#include "cluster/controller/controller_life.h"
#include "commands.h"
#include "load/transport.h"
#include "platform/process.h"
#include "serving/stop_signals.h"
#include "workload/fleet_file.h"

namespace tactus {
namespace {

using std::chrono::milliseconds;

struct UpFlags {
  std::string what;
  std::string models;
  std::string state;
  std::vector<std::string> sites;  // NODE=HOST:PORT,...
  std::vector<std::string> serve;
};

constexpr milliseconds kLook{200};
constexpr milliseconds kGrace{15'000};
constexpr int kPatience = 150;  // looks before it is said what is waited for

// The port in a line "ready control=PORT" of a log; 0: it is not there yet.
int PortIn(const std::filesystem::path& log) {
  std::ifstream file(log);
  constexpr std::string_view kReady = "ready control=";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kReady)) return std::atoi(line.c_str() + kReady.size());
  }
  return 0;
}

// Of a node.
struct LocalAgent {
  std::string node;
  ProcessIdentity process;
};

class LocalCluster {
 public:
  LocalCluster(UpFlags flags, std::filesystem::path fleet, std::filesystem::path models)
      : flags_(std::move(flags)), fleet_(std::move(fleet)), models_(std::move(models)) {}
  ~LocalCluster() { Stop(); }

  int Run(StopSignals& signals);

 private:
  Status ReadSites(const FleetInput& fleet);
  Status MakeState();
  Expected<int> StartController(StopSignals& signals);
  Status StartAgents(const FleetInput& fleet, int port);
  // Prints a request; whether there was one, or none can be had.
  bool Ask(const LeaderView& view, bool models) const;
  // An error where one of them is gone; agents may come and go once the cluster serves.
  Status CheckProcesses(bool serves) const;
  void SayWhatLacks(const Expected<LeaderView>& view) const;
  void Stop();
  std::filesystem::path NodeFolder(const std::string& node) const {
    return state_ / ("node-" + node);
  }
  std::filesystem::path AgentLog(const std::string& node) const {
    return state_ / ("agent-" + node + ".log");
  }

  const UpFlags flags_;
  const std::filesystem::path fleet_, models_;
  std::map<std::string, std::string> sites_;  // their schedulers, by node
  std::filesystem::path state_;
  bool own_state_ = false;
  ProcessIdentity controller_;
  std::vector<LocalAgent> agents_;
};

Status LocalCluster::ReadSites(const FleetInput& fleet) {
  for (const std::string& each : flags_.sites) {
    const auto end = std::min(each.find('='), each.size());
    const std::string node = each.substr(0, end);
    if (end == each.size()) return InvalidArgument("--site " + each + ": write NODE=HOST:PORT");
    if (std::ranges::find(fleet.devices, node, &FleetDevice::name) == fleet.devices.end()) {
      return InvalidArgument("--site " + each + ": the fleet has no device '" + node + "'");
    }
    sites_[node] = each.substr(end + 1);
  }
  return {};
}

Status LocalCluster::MakeState() {
  std::error_code code;
  state_ = flags_.state;
  if (state_.empty()) {
    std::string made =
        (std::filesystem::temp_directory_path(code) / "tactus-cluster-XXXXXX").string();
    if (mkdtemp(made.data()) == nullptr) {
      return Fail(ErrorCode::kUnavailable, made + ": cannot make this folder; name one by --state");
    }
    state_ = made;
    own_state_ = true;
  }
  std::filesystem::create_directories(state_, code);
  if (!code) return {};
  return Fail(ErrorCode::kUnavailable, state_.string() + ": cannot make this folder: " +
                                           code.message() + "; name another by --state");
}

// What is said of a process that this one started and that is gone, with all that it wrote.
std::unexpected<Error> ProcessEnded(const std::string& what, const std::filesystem::path& log) {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("the {} has ended, and with it this cluster; its log {} says:\n{}", what,
                          log.string(), ReadWhole(log, "log").value_or("(nothing)")));
}

Expected<int> LocalCluster::StartController(StopSignals& signals) {
  const auto log = state_ / "controller.log";
  std::error_code code;
  std::filesystem::remove(log, code);  // an old port is in it
  const auto started = StartProcess(
      {ThisProgram().string(), "controller", fleet_.string(), "--listen", "127.0.0.1:0", "--state",
       (state_ / "controller").string(), "--models", models_.string()},
      log);
  if (!started) return std::unexpected(started.error());
  controller_ = *started;
  for (int port = 0; !signals.CameWithin(kLook);) {
    if ((port = PortIn(log)) != 0) return port;
    if (!Runs(controller_)) break;
  }
  return ProcessEnded("controller", log);
}

Status LocalCluster::StartAgents(const FleetInput& fleet, int port) {
  for (const FleetDevice& device : fleet.devices) {
    std::vector<std::string> command = {ThisProgram().string(),
                                        "agent",
                                        "--controller",
                                        fmt::format("127.0.0.1:{}", port),
                                        "--node",
                                        device.name,
                                        "--state",
                                        NodeFolder(device.name).string(),
                                        "--models",
                                        models_.string()};
    if (const auto site = sites_.find(device.name); site != sites_.end()) {
      command.emplace_back("--site");
      command.push_back(site->second);
    } else if (!flags_.serve.empty()) {
      command.emplace_back("--");
      command.insert(command.end(), flags_.serve.begin(), flags_.serve.end());
    }
    const auto started = StartProcess(command, AgentLog(device.name));
    if (!started) return std::unexpected(started.error());
    agents_.push_back({device.name, *started});
  }
  return {};
}

Status LocalCluster::CheckProcesses(bool serves) const {
  if (!Runs(controller_)) return ProcessEnded("controller", state_ / "controller.log");
  for (const LocalAgent& each : agents_) {
    if (!serves && !Runs(each.process))
      return ProcessEnded("agent of node " + each.node, AgentLog(each.node));
  }
  return {};
}

// Where a cluster takes long to serve: what it waits for.
void LocalCluster::SayWhatLacks(const Expected<LeaderView>& view) const {
  fmt::print("not all nodes serve yet: a worker's or an agent's log in {} may say why\n{}\n",
             state_.string(), view ? ClusterTable(*view) : view.error().message);
  std::fflush(stdout);
}

// What can be pasted to call `name` there, with zeros; empty: it does not serve that, or takes more
// numbers than anybody pastes.
std::string RequestTo(const LeaderView::Node& node, const std::string& name) {
  if (node.report.http.empty()) return "";
  const auto transport = MakeHttpTransport({.url = node.report.http});
  if (!transport) return "";
  const auto model = (*transport)->Describe(name);
  if (!model || model->inputs.empty()) return "";
  std::string inputs;
  for (const TensorSpec& each : model->inputs) {
    std::int64_t count = 1;
    std::string shape;
    for (const std::int64_t dimension : each.dims) {
      count *= std::max<std::int64_t>(dimension, 1);
      shape += fmt::format("{}{}", shape.empty() ? "" : ",", std::max<std::int64_t>(dimension, 1));
    }
    constexpr std::int64_t kMostPasted = 64;
    if (count > kMostPasted) return "";
    std::string zeros;
    for (std::int64_t i = 0; i < count; ++i) zeros += i == 0 ? "0" : ",0";
    inputs += fmt::format(R"({}{{"name":"{}","datatype":"{}","shape":[{}],"data":[{}]}})",
                          inputs.empty() ? "" : ",", each.name, Name(each.type), shape, zeros);
  }
  return fmt::format("curl -s http://{}/v2/models/{}/infer -d '{{\"inputs\":[{}]}}'",
                     node.report.http, name, inputs);
}

// Of a pipeline at its source, one of those that cross nodes if there are any; its steps, for
// people.
struct Crossing {
  std::string pipeline;
  std::string steps;
  bool crosses = false;
};
std::vector<Crossing> PipelinesOf(const LeaderView::Node& node) {
  std::vector<Crossing> all;
  for (const SliceRoute& route : node.slice.routes) {
    if (all.empty() || all.back().pipeline != route.pipeline) all.push_back({route.pipeline, ""});
    std::string where;
    for (const RouteTarget& to : route.to) {
      where += (where.empty() ? "" : " and ") + to.node;
      all.back().crosses = all.back().crosses || to.node != node.name;
    }
    all.back().steps += (all.back().steps.empty() ? "" : ", ") + route.stage + " on " + where;
  }
  return all;
}

// A pipeline that its source serves; where none does, a model that somebody holds.
bool LocalCluster::Ask(const LeaderView& view, bool models) const {
  for (const bool crosses : {true, false}) {
    for (const LeaderView::Node& node : view.nodes) {
      for (const Crossing& each : PipelinesOf(node)) {
        if (each.crosses != crosses) continue;
        const std::string request = RequestTo(node, each.pipeline);
        if (request.empty()) continue;
        fmt::print("\na request to {}, which serves {}: {}\n  {}\n", node.name, each.pipeline,
                   each.steps, request);
        return true;
      }
    }
  }
  for (const LeaderView::Node& node : view.nodes) {
    const std::vector<std::string> held = ModelsOf(node.slice);
    const std::string request = models && !held.empty() ? RequestTo(node, held.front()) : "";
    if (request.empty()) continue;
    fmt::print("\na request to {}, which holds {}:\n  {}\n", node.name, held.front(), request);
    return true;
  }
  return models;
}

int LocalCluster::Run(StopSignals& signals) {
  const auto fleet = LoadFleet(fleet_);
  if (!fleet) return ReportBadInput(fleet.error());
  if (Status sites = ReadSites(*fleet); !sites) return ReportBadInput(sites.error());
  if (Status made = MakeState(); !made) return ReportBadInput(made.error());
  const auto port = StartController(signals);
  if (!port) return ReportBadInput(port.error());
  if (Status agents = StartAgents(*fleet, *port); !agents) return ReportBadInput(agents.error());
  fmt::print("a controller and {} agents start on this machine\n", agents_.size());
  std::fflush(stdout);
  const std::string address = fmt::format("127.0.0.1:{}", *port);
  bool told = false;
  int looks = 0;  // since all serve
  for (int waited = 0; !signals.CameWithin(kLook); ++waited) {
    if (Status run = CheckProcesses(told); !run) return ReportBadInput(run.error());
    if (told) continue;
    const auto view = DescribeCluster(address, {});
    if (waited == kPatience) SayWhatLacks(view);
    if (!view || !AllServe(*view)) continue;
    const bool all = std::ranges::all_of(
        view->nodes, [](const auto& node) { return node.standing == Standing::kAlive; });
    if (!all) continue;
    // A pipeline serves once its nodes have said what their models look like.
    constexpr int kLooks = 25;
    if (looks == 0) fmt::print("{}\nlogs and state: {}\n", ClusterTable(*view), state_.string());
    if (!Ask(*view, ++looks >= kLooks)) continue;
    fmt::print(
        "\nits state: tactus cluster status --controller {0}\n"
        "its past: tactus cluster history --store {1}\nCtrl-C ends all of it\n\n"
        "ready control={2}\n",
        address, DefaultStore((state_ / "controller").string()), *port);
    std::fflush(stdout);
    told = true;
  }
  fmt::print("stopping\n");
  return 0;
}

void LocalCluster::Stop() {
  // All are asked before any is waited for; once, as a second time would end them at once.
  for (const LocalAgent& each : agents_) AskToStop(each.process);
  for (const LocalAgent& each : agents_) {
    if (!EndsWithin(each.process, kGrace)) StopProcess(each.process, kGrace);
    // One whose agent was killed serves on.
    if (const auto worker = ReadWorker(NodeFolder(each.node))) StopProcess(worker->process, kGrace);
  }
  StopProcess(controller_, kGrace);
  std::error_code code;
  if (own_state_) std::filesystem::remove_all(state_, code);
}

}  // namespace

void AddClusterUp(CLI::App& cluster, CommandContext& context) {
  auto flags = std::make_shared<UpFlags>();
  CLI::App* command =
      cluster.add_subcommand("up", "Start a whole cluster on this machine, until Ctrl-C");
  command
      ->add_option("what", flags->what,
                   "A fleet (TOML), or a folder with fleet.toml and its models in models/")
      ->required();
  command->add_option("--models", flags->models,
                      "Repository of the models (default: models/ beside the fleet)");
  command->add_option("--state", flags->state,
                      "Folder for logs and state (default: a temporary one, removed at the end)");
  command
      ->add_option(
          "--site", flags->sites,
          "This node is the site of these schedulers, which run already (docs/reference/site.md); "
          "once for each such node")
      ->option_text("NODE=HOST:PORT,... ...")
      ->allow_extra_args(false);
  command->add_option("serve", flags->serve,
                      "After --, options of `tactus serve` for each worker that is no site");
  command->callback([flags, &context] {
    const std::filesystem::path what = flags->what;
    if (!std::filesystem::exists(what)) {
      context.exit_code = ReportBadInput(
          {ErrorCode::kNotFound,
           what.string() +
               ": there is no such file or folder; name a fleet's file (docs/reference/fleets.md; "
               "scenarios/fleets/testbed.toml is one), or a folder with fleet.toml"});
      return;
    }
    const bool folder = std::filesystem::is_directory(what);
    const auto fleet = folder ? what / "fleet.toml" : what;
    const auto models = flags->models.empty() ? fleet.parent_path() / "models"
                                              : std::filesystem::path(flags->models);
    if (folder && !std::filesystem::exists(fleet)) {
      context.exit_code =
          ReportBadInput({ErrorCode::kNotFound,
                          what.string() + ": there is no fleet.toml in this folder; write one "
                                          "(docs/reference/fleets.md), or name the fleet's file"});
      return;
    }
    if (!std::filesystem::is_directory(models)) {
      context.exit_code = ReportBadInput(
          {ErrorCode::kNotFound, models.string() + ": there is no such folder; put the models "
                                                   "there, or name their folder by --models"});
      return;
    }
    StopSignals signals;
    context.exit_code = LocalCluster(*flags, fleet, models).Run(signals);
  });
}

}  // namespace tactus
