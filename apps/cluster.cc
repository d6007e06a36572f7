// tactus cluster: what a cluster does (status), one on this machine (up), and who may join one
// (init, token); what it did is cluster_history.cc's.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cluster/control/controller.h"
#include "cluster/controller/cluster_text.h"
#include "cluster/tls/authority.h"
#include "cluster/tls/token.h"
#include "commands.h"
#include "serving/stop_signals.h"

namespace tactus {
namespace {

struct StatusFlags {
  std::vector<std::string> controllers = {"127.0.0.1:7400"};
  std::string tls;
  bool json = false;
  bool watch = false;
  bool probe = false;
};

// Whether each answers, as one that leads or one that waits.
int RunProbe(const StatusFlags& flags, const PeerTls& tls) {
  for (const std::string& each : flags.controllers) {
    const auto view = DescribeCluster(each, tls);
    const bool waits = !view && view.error().code == ErrorCode::kCancelled;
    if (!view && !waits) return ReportBadInput(view.error());
    fmt::print("{}\n", waits ? view.error().message : each + " leads");
  }
  return 0;
}

int RunStatus(const StatusFlags& flags) {
  const auto tls = PeerTls::Open(flags.tls);
  if (!tls) return ReportBadInput(tls.error());
  if (flags.probe) return RunProbe(flags, *tls);
  StopSignals signals;
  do {
    auto view = DescribeCluster(flags.controllers.front(), *tls);
    for (std::size_t i = 1; i < flags.controllers.size() && !view;
         ++i) {  // spares describe nothing
      view = DescribeCluster(flags.controllers[i], *tls);
    }
    if (!view && !flags.watch) return ReportBadInput(view.error());
    if (flags.watch && !flags.json) fmt::print("\033[H\033[2J");
    fmt::print("{}", !view        ? view.error().message + "\n"
                     : flags.json ? ClusterJson(*view)
                                  : ClusterTable(*view));
    std::fflush(stdout);
  } while (flags.watch && !signals.CameWithin(std::chrono::milliseconds(1000)));
  return 0;
}

void AddStatus(CLI::App& cluster, CommandContext& context) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App* command =
      cluster.add_subcommand("status", "Show the state of a cluster, as its controller sees it");
  command
      ->add_option("--controller", flags->controllers, "HOST:PORT of each controller that may lead")
      ->delimiter(',')
      ->option_text(kCommaList)
      ->capture_default_str();
  command->add_option("--tls", flags->tls,
                      "Folder with authority.pem, node.pem and node.key: the certificate that this "
                      "command shows the controller");
  command->add_flag("--json", flags->json, "Print JSON, with instances and routes");
  command->add_flag("--watch", flags->watch, "Show it again each second, until Ctrl-C");
  command->add_flag(
      "--probe", flags->probe,
      "Say only whether each controller answers, whether it leads or waits; for health probes");
  command->callback([flags, &context] { context.exit_code = RunStatus(*flags); });
}

void AddInitCluster(CLI::App& cluster, CommandContext& context) {
  struct Flags {
    std::string folder;
    std::vector<std::string> hosts = {"localhost", "127.0.0.1"};
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      cluster.add_subcommand("init", "Make a cluster's authority and its controller's certificate");
  command->add_option("folder", flags->folder, "Folder for the authority; the controllers' --tls")
      ->required();
  command
      ->add_option(
          "--host", flags->hosts,
          "Name or address in the controllers' certificate, for clients other than agents; the "
          "option again for more")
      ->capture_default_str();
  command->callback([flags, &context] {
    const Status made = MakeAuthority(flags->folder, flags->hosts);
    context.exit_code = made ? 0 : ReportBadInput(made.error());
    if (made) fmt::print("{0}: an authority; nodes need {0}/authority.pem\n", flags->folder);
  });
}

void AddTokenCluster(CLI::App& cluster, CommandContext& context) {
  struct Flags {
    std::string folder;
    std::string node;
    double hours = 24;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      cluster.add_subcommand("token", "Print a token with which one node may join, once");
  command->add_option("node", flags->node, "Its name: one of the fleet's devices")->required();
  command->add_option("--tls", flags->folder, "Folder of `tactus cluster init`")->required();
  AddOption(*command, "--hours", flags->hours, CLI::Range(0.01, 1e4),
            "How long the token is good for, in hours")
      ->capture_default_str();
  command->callback([flags, &context] {
    const auto token =
        MakeToken(flags->folder, flags->node,
                  std::chrono::seconds(static_cast<std::int64_t>(flags->hours * 3600)));
    context.exit_code = token ? 0 : ReportBadInput(token.error());
    if (token) fmt::print("{}\n", *token);
  });
}

void AddCertificateCluster(CLI::App& cluster, CommandContext& context) {
  struct Flags {
    std::string folder;
    std::string node;
    std::string out;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = cluster.add_subcommand(
      "certificate", "Make a node's certificate and key here, to be carried to the node");
  command->add_option("node", flags->node, "Its name")->required();
  command->add_option("--tls", flags->folder, "Folder of `tactus cluster init`")->required();
  command->add_option("--out", flags->out, "Folder for authority.pem, node.pem and node.key")
      ->required();
  command->callback([flags, &context] {
    const Status made = MakeNode(flags->folder, flags->node, flags->out);
    context.exit_code = made ? 0 : ReportBadInput(made.error());
    if (made) {
      fmt::print("{}: the certificate of node {}, for 30 days\n", flags->out, flags->node);
    }
  });
}

}  // namespace

void AddCluster(CLI::App& app, CommandContext& context) {
  CLI::App* cluster = app.add_subcommand(
      "cluster", "Show a cluster's state, start one on this machine, and let nodes join");
  cluster->require_subcommand(1);
  AddInitCluster(*cluster, context);
  AddStatus(*cluster, context);
  AddTokenCluster(*cluster, context);
  AddCertificateCluster(*cluster, context);
  AddClusterHistory(*cluster, context);
  AddClusterUp(*cluster, context);
}

}  // namespace tactus
