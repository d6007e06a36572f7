#include "serving/server.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include "core/learner.h"
#include "experiment/experiment.h"
#include "metrics/report.h"
#include "metrics/text_table.h"
#include "policies/registry.h"
#include "server/kserve/ensemble_config.h"
#include "server/kserve/validation.h"
#include "serving/auto_lanes.h"
#include "serving/device.h"
#include "serving/idle_memory.h"
#include "serving/overload_news.h"
#include "serving/peer_port.h"
#include "serving/plans.h"
#include "serving/runtime_options.h"
#include "serving/runtime_reading.h"

namespace tactus {
namespace {

// With certificates, of the node that this one's names.
Expected<std::string> WorkerName(const std::string& asked, const PeerTls& tls) {
  if (asked.empty()) {
    return tls.on() ? fmt::format("{}/{}", tls.node(), getpid())
                    : fmt::format("{}-{}", HostName(), getpid());
  }
  if (!tls.on() || asked == tls.node() || asked.starts_with(tls.node() + "/")) return asked;
  return InvalidArgument(
      fmt::format("--worker-name {0}: the certificate of --peer-tls is of node {1}, so the name is "
                  "{1} or begins with {1}/",
                  asked, tls.node()));
}

// Null without --schedulers.
Expected<std::unique_ptr<SiteWorker>> MakeSiteWorker(const ServeOptions& o, const PeerTls& tls,
                                                     const Log& log) {
  if (o.schedulers.empty()) return nullptr;
  if (Status fine = CheckSchedulers("--schedulers", o.schedulers, o.insecure || tls.on()); !fine) {
    return std::unexpected(fine.error());
  }
  auto name = WorkerName(o.worker_name, tls);
  if (!name) return std::unexpected(name.error());
  return std::make_unique<SiteWorker>(
      SiteWorker::Options{.schedulers = o.schedulers,
                          .tls = tls,
                          .name = *std::move(name),
                          .lanes = o.lanes * o.slots,
                          .say = [log](const std::string& line) { log->warn("site: {}", line); }});
}

// "0.797 0.874 0.906 0.921", or "-" where none is known.
std::string AccuracyOf(const ModelSpec& model) {
  std::string text;
  bool known = false;
  for (const ExitSpec& exit : model.exits) {
    known = known || exit.accuracy > 0;
    text += fmt::format("{}{:.3f}", text.empty() ? "" : " ", exit.accuracy);
  }
  return known ? text : "-";
}

// "1 2 3 4".
std::string ExitsOf(const ModelSpec& model) {
  if (model.platform == kEnsemblePlatform) return "-";
  std::string text;
  for (const ExitSpec& exit : model.exits) text += (text.empty() ? "" : " ") + exit.name;
  return text;
}

// "latencies of a, b and 7 more: measured briefly at start".
std::string LatenciesText(const std::string& known, const std::vector<std::string>& models) {
  constexpr std::size_t kNamed = 4;
  const auto named = std::span(models).first(std::min(kNamed, models.size()));
  const std::size_t more = models.size() - named.size();
  return fmt::format("latencies of {}{}: {}\n", fmt::join(named, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "", known);
}

// What a user must know of what is served: that there is nothing in the repository, and what would
// be; that devices are emulated.
std::string AboutServed(const std::string& repository, bool empty, bool emulated) {
  std::string text;
  if (empty) {
    const auto graph = std::filesystem::path(repository) / "NAME/1/model.onnx";
    text += fmt::format(
        "none: {} has no model. Each has a folder of its own, such as {}; `tactus init MODEL.onnx` "
        "writes its config.pbtxt\n",
        repository, graph.string());
  }
  if (emulated) {
    text +=
        "\nEMULATED: there is no device. Times come from a profile, answers are zeros and say so "
        "in "
        "their\nparameters. So do statistics and metrics.\n";
  }
  return text;
}

// Those that can serve.
std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const PolicyInfo& info : Policies()) {
    const auto policy = MakePolicy(info.name);
    if (policy && !(*policy)->traits().suspends) names.push_back(info.name);
  }
  return names;
}

}  // namespace

Server::Server(const ServeOptions& options, const LogQueue& logs)
    : o_(WithALaneOnEach(WithLanes(WithFolders(options)))), logs_(logs), log_(logs.log()) {}

Expected<std::unique_ptr<Server>> Server::Make(const ServeOptions& options, const LogQueue& logs) {
  std::unique_ptr<Server> server(new Server(options, logs));
  if (Status loaded = server->Load(); !loaded) return std::unexpected(std::move(loaded.error()));
  return server;
}

Status Server::Load() {
  auto access = ServerAccess::Of(o_, [log = log_](const std::string& line) { log->warn(line); });
  if (!access) return std::unexpected(std::move(access.error()));
  access_ = *std::move(access);
  const auto peers = PeerPort::PlaceFor(o_, access_.tls);
  if (!peers) return std::unexpected(peers.error());
  if (Status free = ServerPorts::CheckFree(o_, *peers); !free) return free;
  if (Status routes = ServiceStack::CheckRoutes(o_); !routes) return routes;
  if (Status kept = ServedJournals::KeepOld(o_.journal); !kept) return kept;
  auto policy = MakeRealTimePolicy(o_.policy);
  if (!policy) return std::unexpected(std::move(policy.error()));
  auto site = MakeSiteWorker(o_, access_.tls, log_);
  if (!site) return std::unexpected(std::move(site.error()));
  site_ = *std::move(site);
  if (Status made = MakeSampler(); !made) return made;
  const bool predicts = PredictionErrorsOf(**policy) != nullptr;
  metrics_ = std::make_unique<ServingMetrics>(MetricsOptionsOf(o_, o_.policy, predicts));
  moments_ = std::make_unique<LiveMoments>(*metrics_);
  auto device = ServedDevice::Load(o_, {.policy = *std::move(policy),
                                        .site = site_.get(),
                                        .metrics = *metrics_,
                                        .observer = *moments_,
                                        .log = log_});
  if (!device) return std::unexpected(std::move(device.error()));
  device_ = *std::move(device);
  if (sampler_ != nullptr) sampler_->Start();
  return {};
}

Status Server::MakeSampler() {
  if (o_.autoscale_interval_s <= 0 || SplitsDevice(o_)) return {};  // a plan says which lanes
  if (Status valid = Validate(o_.autoscale); !valid) {
    return InvalidArgument("--autoscale-*: " + valid.error().message);
  }
  sampler_ = std::make_unique<LoadSampler>(
      LoadSamplerOptions{.advice = o_.autoscale,
                         .window = FromSeconds(o_.autoscale_window_s),
                         .interval = FromSeconds(o_.autoscale_interval_s)},
      [this] { return ReadLoad(); });
  return {};
}

LoadTotals Server::ReadLoad() const {
  const Runtime& runtime = device_->runtime();
  const CallTotals calls = metrics_->calls();
  LoadTotals load;
  load.lanes = o_.lanes;
  load.pending = runtime.pending();
  const Duration uptime = runtime.uptime();
  load.totals = {.at = kStart + uptime, .good = calls.good, .bad = calls.bad};
  for (const LaneLoad& lane : runtime.lane_loads()) {
    load.totals.busy += lane.busy;
    load.totals.batches.push_back(lane.batches);
    load.totals.available += o_.slots * uptime;
  }
  return load;
}

RuntimeReading Server::Read() const {
  RuntimeReading reading = ReadingOf(device_->runtime(), stack_->service());
  device_->AddTo(reading);
  stack_->AddTo(reading);
  reading.http_lag = lag_->Longest();
  if (sampler_ != nullptr) reading.advice = sampler_->latest().advice;
  if (streams_ != nullptr) reading.streams = FramesOf(*streams_);
  return reading;
}

Status Server::Open() {
  stack_ =
      std::make_unique<ServiceStack>(o_, ServiceStack::Parts{.models = device_->runtime(),
                                                             .runtime = device_->runtime(),
                                                             .host = device_->host(),
                                                             .tls = access_.tls,
                                                             .observer = *moments_,
                                                             .journal = device_->pipeline_journal(),
                                                             .log = log_});
  metrics_->Watch([this] { return Read(); });
  streams_ = std::make_unique<StreamSet>(stack_->service());
  if (!o_.streams.empty()) {
    if (Status kept = streams_->Keep(o_.streams); !kept) return kept;
  }
  const bool decides_alone = site_ == nullptr && !SplitsDevice(o_);
  live_ = std::make_unique<LiveFeed>(
      LiveFeed::Parts{.policy = o_.policy,
                      .streams = true,
                      .policies = decides_alone ? PolicyNames() : std::vector<std::string>(),
                      .journal = o_.journal,
                      .moments = *moments_,
                      .metrics = *metrics_,
                      .read = [this] { return ReadingOf(device_->runtime(), stack_->service()); },
                      .settable = [this](const std::string& model) { return Runs(model); },
                      .find =
                          [this](const std::string& model, std::int64_t version) {
                            auto found = stack_->service().Find(model, version);
                            return found ? *std::move(found) : nullptr;
                          }});
  if (o_.ui && decides_alone) {
    what_if_ = std::make_unique<WhatIf>(
        WhatIf::Parts{.setting = device_->setting(),
                      .served = [this] { return device_->runtime().served_models(); },
                      .minute = [this] { return live_->Minute(); },
                      .busy = BusyPart});
  }
  auto ports =
      ServerPorts::Start(o_, {.service = stack_->service(),
                              .access = access_,
                              .lag = lag_,
                              .logs = logs_,
                              .folders = o_.folders,
                              .streams = streams_.get(),
                              .live = o_.ui ? live_.get() : nullptr,
                              .what_if = what_if_.get(),
                              .sampler = sampler_.get(),
                              .metrics = [this] { return metrics_->Text(); },
                              .refused = [this](auto why) { metrics_->OnTurnedAway(why); },
                              .late = [this] { metrics_->OnLateAnswer(); },
                              .spans_lost = [this](auto spans) { metrics_->OnSpansLost(spans); }});
  if (!ports) return std::unexpected(std::move(ports.error()));
  ports_ = *std::move(ports);
  if (Status opened = stack_->Open(); !opened) return opened;
  if (!o_.streams.empty()) {
    streams_->AddKept([this](const std::string& line) { log_->warn(line); });
  }
  access_refresh_ = FollowAccess(access_.access);
  idle_memory_ = GiveBackKeptMemory(*metrics_, device_->runtime(), device_->engines());
  overloads_ = LogOverloads(*metrics_, log_);
  device_->Start();
  if (site_ != nullptr) site_->Start(device_->runtime(), stack_->peer_place());
  return {};
}

std::string Server::Text() const {
  InferenceService& service = stack_->service();
  std::string text = fmt::format("tactus {} serves {} with {} on {}\n\n", kServerVersion,
                                 o_.folders->Text(), o_.policy, device_->LanesText());
  TextTable table;
  table.AddColumns("model|version~2|state|exits~1|accuracy~3|SLO [ms]");
  std::map<std::string, std::vector<std::string>> latencies;  // what is known of them, of whom
  std::string waiting;
  bool emulated = false;
  const std::vector<ModelState> models = service.Index();
  for (const ModelState& state : models) {
    const auto model = service.Find(state.name, state.version);
    if (!model) {
      table.Add({state.name, fmt::format("{}", state.version), state.state});
      waiting += fmt::format("{}: {}\n", state.name, state.reason);
      continue;
    }
    const ModelSpec& spec = **model;
    const double slo = spec.slo > Duration{} ? ToMillis(spec.slo) : o_.default_slo_ms;
    table.Add({state.name, fmt::format("{}", state.version), state.state, ExitsOf(spec),
               AccuracyOf(spec), fmt::format("{:g}", slo)});
    latencies[device_->LatenciesOf(spec)].push_back(state.name);
    emulated = emulated || spec.platform == "emulated";
  }
  if (!models.empty()) text += table.Print() + waiting;
  for (const auto& [known, of] : latencies) text += LatenciesText(known, of);
  text += AboutServed(o_.models.front(), models.empty(), emulated);
  if (const DeviceLayout layout = device_->runtime().layout(); layout.plan != nullptr) {
    text += fmt::format("\nlanes now: {}\n", LayoutText(*layout.plan, layout.models));
  }
  return text;
}

bool Server::Runs(const std::string& name) const {
  const auto served = device_->runtime().served_models();
  return served != nullptr && std::ranges::any_of(served->models, [&](const Model& model) {
           return model.loaded && model.name == name;
         });
}

void Server::TakePlanAgain() {
  if (!device_->TakePlanAgain()) log_->info("SIGHUP: there is no --plan to read again");
}

void Server::Stop() {
  const std::chrono::milliseconds grace(static_cast<std::int64_t>(o_.grace_s * 1000));
  device_->BeginStop();  // while the models are still there
  idle_memory_.reset();
  overloads_.reset();
  if (site_ != nullptr) site_->Stop();
  streams_->Stop();  // their watchers are connections
  live_->Stop();
  if (what_if_ != nullptr) what_if_->Stop();
  ports_->Stop(
      grace, [&] { stack_->StopPeers(grace); }, [&] { device_->Abandon(); });
  if (sampler_ != nullptr) sampler_->Stop();
  device_->Stop();
  ports_->StopMetrics();
  metrics_->Watch({});
  device_->CloseJournals();
  log_->info("stopped");
}

}  // namespace tactus
