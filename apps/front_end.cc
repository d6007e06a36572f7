// tactus front-end: takes calls for a site and passes them to its workers as the central scheduler
// grants. With a repository it runs the pipelines of that, of the site's models.
#include "cluster/site/front_end.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/logger.h>

#include "commands.h"
#include "metrics/report.h"
#include "platform/repeated_task.h"
#include "server/kserve/validation.h"
#include "server/metrics/serving_metrics.h"
#include "service/starting_service.h"
#include "serving/admission.h"
#include "serving/front_end_node.h"
#include "serving/idle_memory.h"
#include "serving/log_queue.h"
#include "serving/runtime_reading.h"
#include "serving/served_text.h"
#include "serving/server_ports.h"
#include "serving/site_worker.h"
#include "serving/stop_signals.h"

namespace tactus {
namespace {

struct FrontEndFlags {
  ServeOptions serve;
  int most_workers = 16;
};

void PrintServed(const ServeOptions& o, const InferenceService& service) {
  fmt::print("tactus {} is a front end of the site of {}\n\n", kServerVersion,
             fmt::join(o.schedulers, ", "));
  for (const ModelState& state : service.Index()) {
    fmt::print("{:<16} {:>7}  {}\n", state.name, state.version, state.state);
  }
}

MetricsOptions MetricsOptionsOf(const ServeOptions& o) {
  return {.triton_names = o.triton_metrics,
          .slos = {},
          .predicts_slowdowns = false,
          .version = std::string(kServerVersion),
          .commit = BuildCommit(),
          .policy = "granted"};
}

// All ports at once, so that calls of clients and of other nodes have the same time.
void StopPorts(ServerPorts& ports, FrontEndNode* node, double grace_s) {
  const std::chrono::milliseconds grace(static_cast<std::int64_t>(grace_s * 1000));
  StopSignals::EndWithin(grace);
  ports.Stop(grace, [&] {
    if (node != nullptr) node->StopPeers(grace);
  });
}

SiteFrontEnd::Options SiteOptionsOf(const FrontEndFlags& flags, const PeerTls& tls,
                                    ServingMetrics& metrics,
                                    std::function<void(const std::string&)> warn) {
  return {.schedulers = flags.serve.schedulers,
          .tls = tls,
          .workers = flags.most_workers,
          .queue_capacity = flags.serve.queue_capacity,
          .call_capacity = flags.serve.call_capacity,
          .pending_bytes = flags.serve.pending_mb << 20,
          .observer = &metrics,
          .say = std::move(warn)};
}

// Says when calls stop reaching workers, of all models or of some, and when they do again.
class SiteFollower {
 public:
  SiteFollower(const SiteFrontEnd& site, Log log) : site_(site), log_(std::move(log)) {}

  void Look() {
    std::optional<std::string> why = site_.WhyNotReady();
    if (why != why_ && why) log_->warn("not ready: {}; calls wait until their deadlines", *why);
    if (why != why_ && !why) log_->info("ready again: a worker serves");
    why_ = std::move(why);
    if (why_) return;  // that is all that there is to say
    std::vector<std::string> unserved = site_.Unserved();
    for (const std::string& each : unserved) {
      if (std::ranges::binary_search(unserved_, each)) continue;
      log_->warn(
          "model '{}' is not ready: no worker of the site serves it; its calls wait until "
          "their deadlines",
          each);
    }
    for (const std::string& each : unserved_) {
      if (std::ranges::binary_search(unserved, each)) continue;
      log_->info("model '{}' is ready again: a worker serves it", each);
    }
    unserved_ = std::move(unserved);
  }

 private:
  const SiteFrontEnd& site_;
  const Log log_;
  std::optional<std::string> why_;
  std::vector<std::string> unserved_;  // in order
};

// What the options say of peers and clients.
struct Admission {
  PeerTls tls;
  std::shared_ptr<Access> access;
  std::size_t connections = 0;
  std::shared_ptr<ClientLimits> limits;
  std::shared_ptr<const Objectives> objectives;
};

Expected<Admission> AdmissionOf(const ServeOptions& o,
                                const std::function<void(const std::string&)>& warn) {
  auto tls = PeerTls::Open(o.peer_tls);
  if (!tls) return std::unexpected(std::move(tls.error()));
  if (Status fine = CheckSchedulers("--schedulers", o.schedulers, o.insecure || tls->on()); !fine)
    return std::unexpected(std::move(fine.error()));
  if (Status fine = CheckFrontEndNode(o); !fine) return std::unexpected(std::move(fine.error()));
  auto access = AccessOf(o, warn);
  if (!access) return std::unexpected(std::move(access.error()));
  const auto connections = MostConnections();
  if (!connections) return std::unexpected(connections.error());
  auto limits = LimitsOf(o, *connections);
  if (!limits) return std::unexpected(std::move(limits.error()));
  auto objectives = ObjectivesOf(o);
  if (!objectives) return std::unexpected(std::move(objectives.error()));
  return Admission{*std::move(tls), *std::move(access), *connections, *std::move(limits),
                   *std::move(objectives)};
}

void AwaitWorker(SiteFrontEnd& site, const ServeOptions& o, const Log& log) {
  log->info("waiting up to 10 s for a scheduler with a worker at {}; not ready meanwhile",
            fmt::join(o.schedulers, ", "));
  if (!site.AwaitModels(Seconds(10))) {
    log->warn("no scheduler with a worker answers at {}: it serves once one does",
              fmt::join(o.schedulers, ", "));
  }
}

int RunFrontEnd(const FrontEndFlags& flags) {
  const ServeOptions& o = flags.serve;
  StopSignals signals;  // before anything starts a thread
  const LogQueue logs(o.log_level, o.log_format);
  const Log log = logs.log();
  const auto warn = [log](const std::string& line) { log->warn(line); };
  std::jthread starting = signals.EndAtOnce();
  const auto admission = AdmissionOf(o, warn);
  if (!admission) return ReportBadInput(admission.error());

  ServingMetrics metrics(MetricsOptionsOf(o));
  SiteFrontEnd site(SiteOptionsOf(flags, admission->tls, metrics, warn));
  site.Start();
  Runtime& runtime = site.runtime();
  std::unique_ptr<FrontEndNode> node;
  // Probes have an answer from now on.
  StartingService door("no scheduler with a worker has answered yet");
  auto ports = ServerPorts::Start(o, {.service = door,
                                      .access = admission->access,
                                      .limits = admission->limits,
                                      .objectives = admission->objectives,
                                      .logs = logs,
                                      .connections = admission->connections,
                                      .metrics = [&metrics] { return metrics.Text(); },
                                      .unread = [&metrics] { metrics.OnUnread(); }});
  if (!ports) return ReportBadInput(ports.error());
  AwaitWorker(site, o, log);
  if (!o.models.empty()) {
    auto made = FrontEndNode::Make(o, admission->tls, site, metrics, log);
    if (!made) return ReportBadInput(made.error());
    node = *std::move(made);
  }
  InferenceService& service = node ? node->service() : site.service();
  metrics.Watch([&] {
    RuntimeReading reading = ReadingOf(runtime, service);
    if (node) node->AddTo(reading);
    return reading;
  });
  starting = {};
  door.Open(service);
  if (Status opened = node ? node->Open() : Status(); !opened)
    return ReportBadInput(opened.error());
  const auto refresh = FollowAccess(admission->access);
  const RepeatedTask follow(
      "follow site",
      Every(Millis(250), [follower = SiteFollower(site, log)]() mutable { follower.Look(); }));
  const auto memory = GiveBackKeptMemory(metrics, runtime);
  PrintServed(o, service);
  (*ports)->PrintPlaces(node ? node->peer_port() : 0);
  const char* const signal = signals.Wait([] {});
  log->info("{}: no new calls; those under way have {:g} s", signal, o.grace_s);
  StopPorts(**ports, node.get(), o.grace_s);
  if (node) node->Stop();
  site.Stop();
  (*ports)->StopMetrics();
  metrics.Watch({});
  return 0;
}

}  // namespace

void AddFrontEnd(CLI::App& app, CommandContext& context) {
  auto flags = std::make_shared<FrontEndFlags>();
  CLI::App* command = app.add_subcommand(
      "front-end", "Take calls for a site of workers under a central scheduler (docs/site.md)");
  command
      ->add_option(
          "--schedulers", flags->serve.schedulers,
          "The site's schedulers, HOST:PORT; every process needs the same list in the same order")
      ->delimiter(',')
      ->option_text(kCommaList)
      ->required();
  command
      ->add_option("--most-workers", flags->most_workers,
                   "Most workers of the site; the same as for its schedulers")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  DeclareFrontEnd(flags->serve, *command);
  command->callback([flags, &context] {
    KeepFreedMemory();
    context.exit_code = RunFrontEnd(*flags);
  });
}

}  // namespace tactus
