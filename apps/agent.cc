// tactus agent: a node of a fleet. It keeps a worker up and has it load what the controller plans.
#include "cluster/control/agent.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "cluster/control/join.h"
#include "cluster/control/renewal.h"
#include "cluster/tls/peer_tls.h"
#include "cluster/tls/tls.h"
#include "cluster/tls/token.h"
#include "commands.h"
#include "platform/process.h"
#include "server/access/access.h"
#include "server/access/admin_socket.h"
#include "serving/log_queue.h"
#include "serving/patient_sink.h"
#include "serving/peer_port.h"
#include "serving/stop_signals.h"

namespace tactus {
namespace {

struct AgentFlags {
  AgentOptions agent{.node = {}, .controllers = {"127.0.0.1:7400"}};  // without what others say
  std::string state;
  double cache_mb = 32'000;
  std::string peer_address;
  std::string tls;
  std::string join;
  double grace_s = 5;
  bool leave_worker = false;
};

// Nothing where there is a certificate that is good: an agent that is started again has one. While
// nobody leads it asks again, for half a minute or until a signal comes.
Status Join(const AgentFlags& flags, StopSignals& signals, const Agent::Log& log) {
  if (flags.tls.empty())
    return InvalidArgument(
        "--join needs --tls: the folder where node.pem and node.key are to be, with authority.pem "
        "in it");
  const std::string named = NodeOfToken(flags.join);
  if (!named.empty() && named != flags.agent.node) {
    return InvalidArgument("--join: the token is for node '" + named + "', and --node says '" +
                           flags.agent.node + "'; it was not used");
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (CheckCertificate(flags.tls, flags.agent.node, now)) {
    log("--join: " + flags.tls + "/node.pem is good, and the token was not used");
    return {};
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool said = false;
  return JoinCluster(flags.agent.controllers, flags.tls, flags.join, [&](const std::string& why) {
    if (!std::exchange(said, true)) log("not let in yet, and asks again: " + why);
    return !signals.CameWithin(std::chrono::milliseconds(500)) &&
           std::chrono::steady_clock::now() < end;
  });
}

// What the agent itself tells its worker.
std::vector<std::string> OptionsOfAgent(const AgentFlags& flags) {
  std::vector<std::string> own = {"--address", "--admin-socket", "--model-control-mode",
                                  "--routes"};
  if (!flags.agent.worker.schedulers.empty()) own.emplace_back("--schedulers");
  if (!flags.tls.empty()) own.insert(own.end(), {"--peer-tls", "--peer-listen"});
  return own;
}

// What the worker would refuse is refused at once. Nodes without certificates of their own send
// each other steps as any client would: in plaintext, without a token.
Status CheckClients(const AgentFlags& flags) {
  bool tls = false;
  bool tokens = false;
  bool insecure = false;
  for (const std::string& each : flags.agent.worker.arguments) {
    const std::string name = each.substr(0, each.find('='));
    tls |= name == "--tls-cert";
    tokens |= name == "--tokens";
    insecure |= name == "--insecure";
  }
  if ((tls || tokens) && flags.tls.empty()) {
    return InvalidArgument(
        "an option after --: " + std::string(tls ? "--tls-cert" : "--tokens") +
        " needs --tls before --: without it, other nodes send steps of pipelines "
        "to the worker's gRPC port in plaintext and without a token");
  }
  if (Status fine = CheckListening(flags.agent.worker.address, tls, tokens, insecure); !fine) {
    return InvalidArgument(fine.error().message + "; these are options of the worker, after --");
  }
  return {};
}

Expected<WorkerOptions> WorkerOptionsOf(const AgentFlags& flags) {
  if (Status fits = FitsSocket(AdminSocketIn(flags.state)); !fits) {
    return InvalidArgument("--state: " + fits.error().message);
  }
  WorkerOptions worker = flags.agent.worker;
  worker.program = ThisProgram();
  worker.state = flags.state;
  worker.peer_tls = flags.tls;
  worker.peer_address = worker.address;
  auto ports = TakeWorkerPorts(worker.arguments, OptionsOfAgent(flags));
  if (!ports) return std::unexpected(std::move(ports.error()));
  worker.ports = *ports;
  if (flags.peer_address.empty()) return worker;
  auto peers = ParsePeerAddress(flags.peer_address);
  if (!peers) return std::unexpected(std::move(peers.error()));
  if (peers->port != 0 && flags.tls.empty()) {
    return InvalidArgument("--peer-address " + flags.peer_address +
                           ": without --tls other nodes send to the worker's gRPC port; name that "
                           "one (-- --grpc-port N)");
  }
  worker.peer_address = std::move(peers->host);
  worker.ports.peer = peers->port;
  return worker;
}

int RunAgent(const AgentFlags& flags) {
  StopSignals signals;
  LogQueue logs("info");
  for (const std::string& each : flags.agent.controllers) {
    if (const auto place = PlaceOf("--controller", each); !place)
      return ReportBadInput(place.error());
  }
  const Agent::Log log = [to = logs.log()](const std::string& line) { to->info("{}", line); };
  if (const Status clients = CheckClients(flags); !clients) return ReportBadInput(clients.error());
  auto worker = WorkerOptionsOf(flags);
  if (!worker) return ReportBadInput(worker.error());
  if (!flags.join.empty()) {
    if (const Status joined = Join(flags, signals, log); !joined) {
      const int bad_input = ReportBadInput(joined.error());
      return joined.error().code == ErrorCode::kUnavailable ? 1 : bad_input;
    }
  }
  auto tls = PeerTls::Open(flags.tls);
  if (!tls) return ReportBadInput(tls.error());
  Status site = CheckSchedulers("--site", worker->schedulers, true);
  for (const std::string& each : worker->schedulers) {
    if (site) site = CheckReach(each, *tls);
  }
  if (!site) return ReportBadInput(site.error());
  AgentOptions options = flags.agent;
  options.tls = *std::move(tls);
  options.worker = *std::move(worker);
  options.models.most_bytes = static_cast<std::uint64_t>(flags.cache_mb * 1e6);
  auto agent = Agent::Start(std::move(options), log);
  if (!agent) return ReportBadInput(agent.error());
  std::optional<CertificateRenewal> renewal;
  if (!flags.tls.empty()) renewal.emplace(flags.agent.controllers, flags.tls, log);
  SayPatiently(fmt::format("ready node={}\n", flags.agent.node));
  // Terminals and supervisors may signal twice: the worker must end all the same.
  signals.Wait([] {}, StopSignals::Second::kIsIgnored);
  const std::chrono::milliseconds grace(static_cast<std::int64_t>(flags.grace_s * 1000));
  StopSignals::EndWithin(grace);
  if (!flags.leave_worker) (*agent)->StopAll(grace);
  return 0;
}

}  // namespace

void AddAgent(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<AgentFlags>();
  CLI::App* command = app.add_subcommand(
      "agent", "Run a node of a fleet: serve the models that the controller plans for it");
  command
      ->add_option("--controller", flags->agent.controllers,
                   "HOST:PORT of each controller that may lead, separated by commas")
      ->delimiter(',')
      ->option_text(kCommaList)
      ->capture_default_str();
  command->add_option("--node", flags->agent.node, "This node's name: one of the fleet's devices")
      ->required();
  command
      ->add_option("--state", flags->state,
                   "Folder for the last plan, the worker's process id and its log")
      ->required();
  AddOption(*command, "--models", flags->agent.models.own, CLI::ExistingDirectory,
            "The node's own repository; models that are not in it, or have other bytes there, "
            "come from the controller");
  AddOption(*command, "--model-cache-mb", flags->cache_mb, CLI::Range(1.0, 1e9),
            "Space in --state for models from the controller; of models that no plan needs, "
            "the least recently used are removed first")
      ->capture_default_str();
  command
      ->add_option("--address", flags->agent.worker.address,
                   "Address on which the worker listens for clients")
      ->capture_default_str();
  command->add_option("--peer-address", flags->peer_address,
                      "With --tls: address at which the other nodes send pipeline steps to this "
                      "node's worker, HOST or HOST:PORT (default: --address, at any free port)");
  command->add_option("--tls", flags->tls,
                      "Folder with authority.pem, node.pem and node.key: this node's certificate, "
                      "for the controller and for other nodes; the worker has it as --peer-tls");
  command->add_option("--join", flags->join,
                      "A token of `tactus cluster token`: get this node's certificate from the "
                      "controller first, and write node.pem and node.key into --tls");
  AddOption(*command, "--grace-seconds", flags->grace_s, CLI::Range(0.0, 1e6),
            "On SIGTERM: how long the worker has to end its calls")
      ->capture_default_str();
  command->add_flag("--leave-worker", flags->leave_worker,
                    "On SIGTERM, let the worker serve on; the next agent finds it again");
  command
      ->add_option(
          "--site", flags->agent.worker.schedulers,
          "The node is a site with these central schedulers, HOST:PORT (docs/reference/site.md): "
          "instead of a server the agent keeps a front end of the site up")
      ->delimiter(',')
      ->option_text(kCommaList);
  command->add_option("serve", flags->agent.worker.arguments,
                      "After --, options of `tactus serve` for the worker, with --site of `tactus "
                      "front-end`. Ports that are not named there (--http-port, --grpc-port, "
                      "--metrics-port) are any free ones, the same after a restart");
  command->callback([flags, &context] { context.exit_code = RunAgent(*flags); });
}

}  // namespace tactus
