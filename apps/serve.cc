// tactus serve: models from a repository behind KServe v2 over HTTP and gRPC, until SIGTERM.
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
#include <spdlog/logger.h>

#include "check/doubts.h"
#include "commands.h"
#include "core/learner.h"
#include "dispatch/journal_file.h"
#include "engines/engine_shelf.h"
#include "experiment/experiment.h"
#include "experiment/kept_predictor.h"
#include "metrics/report.h"
#include "platform/cpu_affinity.h"
#include "policies/registry.h"
#include "profiling/machine.h"
#include "runtime/layout/lane_layout.h"
#include "runtime/models/model_profile.h"
#include "runtime/runtime.h"
#include "serve_options.h"
#include "server/autoscale/load_sampler.h"
#include "server/kserve/ensemble_config.h"
#include "server/kserve/model_config.h"
#include "server/kserve/validation.h"
#include "server/metrics/serving_metrics.h"
#include "server/net/loop_lag.h"
#include "serving/admission.h"
#include "serving/device.h"
#include "serving/ensembles.h"
#include "serving/host_lanes.h"
#include "serving/idle_memory.h"
#include "serving/isolation.h"
#include "serving/log_queue.h"
#include "serving/peer_port.h"
#include "serving/plans.h"
#include "serving/routes.h"
#include "serving/runtime_options.h"
#include "serving/runtime_reading.h"
#include "serving/served_journals.h"
#include "serving/served_text.h"
#include "serving/server_ports.h"
#include "serving/site_worker.h"
#include "serving/stop_signals.h"
#include "stream/stream_set.h"
#include "workload/profile_file.h"

namespace tactus {
namespace {

using std::chrono::milliseconds;

// Everything that serves, in the order of its making; destroyed in the reverse order.
class ServeCommand {
 public:
  explicit ServeCommand(ServeOptions options)
      : o_(std::move(options)), logs_(o_.log_level, o_.log_format), log_(logs_.log()) {}

  int Run();

 private:
  Status LoadProfileFile();
  Status ReadShares();
  Status SplitDevice();
  Expected<ProfileTable::ModelRows> EmulatedRows(const ModelSpec& spec) const;
  RuntimeParts Parts(std::unique_ptr<Policy> policy, Journal* journal) const;
  Status MakeRuntime();
  Status JoinSite(std::unique_ptr<Policy>& policy);
  Status StartHost(const RuntimeOptions& options);
  Status ResumePolicy();
  Machine Device() const;
  PredictorFile PredictorHere() const;
  Status MakeSampler();
  LoadTotals ReadLoad() const;
  Status OpenPorts();
  bool Profiled(const ModelSpec& spec) const;
  std::string LatenciesOf(const ModelSpec& spec) const;
  std::string LanesText() const;
  // Of all models but ensembles, save those that are steps of others.
  InferenceService& Models() const {
    if (composed_ != nullptr) return *composed_;
    return host_ ? host_->service() : *runtime_;
  }
  void PrintServed() const;
  void Stop();

  const ServeOptions o_;
  StopSignals signals_;  // before anything starts a thread
  LogQueue logs_;
  Log log_;
  std::optional<ProfileFile> profile_;
  std::unique_ptr<EngineShelf> engines_;
  ServedJournals journals_;
  std::unique_ptr<ServingMetrics> metrics_;
  PeerTls peer_tls_;
  std::unique_ptr<ServedSite> site_;  // with --schedulers
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<HostLanes> host_;            // null with --engine
  std::unique_ptr<EnsembleService> composed_;  // over both: ensembles that are steps; or null
  std::unique_ptr<RoutedSteps> routed_;        // with --routes: over those, and other nodes
  std::unique_ptr<EnsembleService> service_;   // over all; front ends speak to it
  Policy* policy_ = nullptr;                   // the runtime's; not touched while it runs
  std::optional<PredictorFile> resumed_;
  std::unique_ptr<LoadSampler> sampler_;  // null: no advice
  std::shared_ptr<Access> access_;
  std::shared_ptr<const Objectives> objectives_;
  const std::shared_ptr<LoopLag> lag_ = std::make_shared<LoopLag>();
  std::size_t connections_ = 0;  // at most, of HTTP and of gRPC each
  std::shared_ptr<ClientLimits> limits_;
  std::unique_ptr<RepeatedTask> access_refresh_;
  std::unique_ptr<RepeatedTask> idle_memory_;
  std::unique_ptr<RepeatedTask> processes_watch_;
  std::unique_ptr<StreamSet> streams_;  // to the service
  std::unique_ptr<ServerPorts> ports_;
  std::unique_ptr<PeerPort> peer_port_;       // for others of a site or a cluster
  std::unique_ptr<RepeatedTask> links_;       // with --routes
  std::unique_ptr<RepeatedTask> routes_;      // with --routes
  std::optional<SplitOptions> split_;         // with --plan or --planner
  std::unique_ptr<PlanningThread> planning_;  // with --planner
  std::unique_ptr<RepeatedTask> reload_;      // with --plan
};

Status ServeCommand::LoadProfileFile() {
  const bool emulated = o_.engine == "emulated";
  if (o_.profile.empty()) return {};
  auto profile = LoadProfile(o_.profile);
  if (!profile) return std::unexpected(std::move(profile.error()));
  for (const std::string& warning : Warnings(*profile)) log_->warn("profile: {}", warning);
  profile_ = std::move(*profile);
  if (emulated) return {};  // it stands for the machine of the profile, whichever that is
  const auto engine = engines_->For(o_.engine.empty() ? "onnxruntime_onnx" : o_.engine);
  if (!engine) return std::unexpected(engine.error());
  return CheckMachine(*profile_, ThisMachine((*engine)->traits(), o_.threads),
                      o_.allow_other_machine);
}

Status ServeCommand::ReadShares() {
  if (Status fit = CheckPlanOptions(o_); !fit) return fit;
  if (!SplitsDevice(o_)) return {};
  const auto engine = engines_->For(o_.engine.empty() ? "onnxruntime_onnx" : o_.engine);
  if (!engine) return std::unexpected(engine.error());
  auto split = ReadSplit(o_, (*engine)->traits());
  if (!split) return std::unexpected(std::move(split.error()));
  split_ = *std::move(split);
  if (const auto doubt = SharesDoubt(split_->shares)) log_->warn(*doubt);
  return {};
}

Status ServeCommand::SplitDevice() {
  if (!split_) return {};
  if (!o_.planner.empty()) {
    auto planning =
        MakePlanning(o_, *runtime_,
                     {.ended =
                          [this] {
                            const CallTotals calls = metrics_->calls();
                            return PlanningThread::Ended{.in_time = calls.good, .late = calls.bad};
                          },
                      .tell = [log = log_](const std::string& line) { log->info(line); },
                      .warn = [log = log_](const std::string& line) { log->warn(line); }});
    if (!planning) return std::unexpected(std::move(planning.error()));
    planning_ = *std::move(planning);
  }
  return o_.plan.empty() ? planning_->First() : TakePlan(o_.plan, *runtime_, log_);
}

// What an emulated model's batches take: the profile's means. Policies count on a percentile.
Expected<ProfileTable::ModelRows> ServeCommand::EmulatedRows(const ModelSpec& spec) const {
  const auto known = FindProfile(spec, profile_);
  if (!known) return std::unexpected(known.error());
  if (*known) return RowsOf(**known, spec, kMaxBatch, {.percentile = 0});
  return NotFound(fmt::format(
      "model '{}' is emulated and has no latencies: name a profile in its "
      "folder (parameters {{ key: \"profile\" }}), or serve with a --profile that has it",
      spec.name));
}

RuntimeParts ServeCommand::Parts(std::unique_ptr<Policy> policy, Journal* journal) const {
  const bool grants = policy != nullptr && site_ != nullptr;  // not on the host's lanes
  return {.policy = std::move(policy),
          .engine_for = [this](std::string_view platform) { return engines_->For(platform); },
          .profile = profile_,
          .profile_options = {o_.percentile, o_.jitter_ms},
          .place_granted = grants ? site_->Placing() : nullptr,
          .journal = journal,
          .observer = metrics_.get(),
          .log = [log = log_](const std::string& line) { log->warn(line); }};
}

Status ServeCommand::MakeRuntime() {
  auto policy = MakeRealTimePolicy(o_.policy);
  if (!policy) return std::unexpected(std::move(policy.error()));
  policy_ = policy->get();
  if (Status joined = JoinSite(*policy); !joined) return joined;
  if (Status resumed = ResumePolicy(); !resumed) return resumed;
  if (Status made = MakeSampler(); !made) return made;
  if (Status fit = CheckIsolation(o_); !fit) return fit;
  EngineOptions engines = EngineOptionsOf(o_);
  Isolate(o_, engines);
  engines.emulated.latencies = [this](const ModelSpec& spec) { return EmulatedRows(spec); };
  engines_ = std::make_unique<EngineShelf>(o_.engine, std::move(engines));
  if (Status fit = CheckLoadedModels(o_); !fit) return fit;
  if (Status there = CheckEngine(o_, *engines_); !there) return there;
  if (Status loaded = LoadProfileFile(); !loaded) return loaded;
  if (Status read = ReadShares(); !read) return read;

  const auto cores = static_cast<int>(AllowedCores().size());
  if (const auto doubt = CoresDoubt(o_, cores)) log_->warn(*doubt);
  RuntimeOptions options = RuntimeOptionsOf(o_);
  Isolate(o_, options);
  options.split = split_;
  if (!o_.journal.empty()) {
    JournalHeader header{.policy = o_.policy,
                         .source = "served",
                         .commit = BuildCommit(),
                         .options = {options.queue_capacity, options.expiry, options.follow},
                         .lanes = SplitsDevice(o_)
                                      ? LaneLayout::Lanes()
                                      : std::vector<LaneSpec>(static_cast<std::size_t>(o_.lanes),
                                                              LaneSpec{.slots = o_.slots})};
    if (Status opened = journals_.Open(o_.journal, header, log_); !opened) return opened;
  }

  const bool predicts = PredictionErrorsOf(*policy_) != nullptr;
  metrics_ = std::make_unique<ServingMetrics>(MetricsOptions{.triton_names = o_.triton_metrics,
                                                             .slos = {},
                                                             .predicts_slowdowns = predicts,
                                                             .version = std::string(kServerVersion),
                                                             .commit = BuildCommit(),
                                                             .policy = o_.policy});
  runtime_ = std::make_unique<Runtime>(options, Parts(*std::move(policy), journals_.dispatcher()));
  for (const std::string& each : o_.folders->Overlooked()) log_->warn(each);
  if (Status started = runtime_->Start(RepositoryOptionsOf(o_, log_)); !started) return started;
  if (Status host = StartHost(options); !host) return host;
  if (Status split = SplitDevice(); !split) return split;
  if (resumed_) {
    if (Status fits = CheckPredictor(*resumed_, o_.predictor, PredictorHere()); !fits) return fits;
  }
  if (sampler_ != nullptr) sampler_->Start();
  return {};
}

// The lanes run what the site's scheduler grants, and else what the policy says.
Status ServeCommand::JoinSite(std::unique_ptr<Policy>& policy) {
  auto site = ServedSite::Make(o_, peer_tls_, log_);
  if (!site) return std::unexpected(std::move(site.error()));
  site_ = *std::move(site);
  if (site_ != nullptr) policy = site_->MakePolicy(std::move(policy));
  return {};
}

Status ServeCommand::StartHost(const RuntimeOptions& options) {
  if (!o_.engine.empty()) return {};
  auto host = HostLanes::Start(o_, options, RepositoryOptionsOf(o_, log_), *runtime_,
                               Parts(nullptr, nullptr));
  if (!host) return std::unexpected(std::move(host.error()));
  host_ = *std::move(host);
  return {};
}

Status ServeCommand::ResumePolicy() {
  Status fine = CheckPredictorFiles(o_.save_predictor, o_.predictor, o_.journal, *policy_);
  if (!fine || o_.predictor.empty()) return fine;
  auto resumed = ResumePredictor(o_.predictor, *policy_);
  if (!resumed) return std::unexpected(std::move(resumed.error()));
  resumed_ = std::move(*resumed);
  return {};
}

// What is emulated runs on the profile's machine, everything else on this one.
Machine ServeCommand::Device() const {
  if (o_.engine == "emulated" && profile_) return profile_->machine;
  const auto engine = engines_->For(o_.engine.empty() ? "onnxruntime_onnx" : o_.engine);
  return engine ? ThisMachine((*engine)->traits()) : ThisMachine(o_.engine);
}

PredictorFile ServeCommand::PredictorHere() const {
  return PredictorOf(o_.policy, Device(), runtime_->served_models()->models);
}

Status ServeCommand::MakeSampler() {
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

LoadTotals ServeCommand::ReadLoad() const {
  const CallTotals calls = metrics_->calls();
  LoadTotals load;
  load.lanes = o_.lanes;
  load.pending = runtime_->pending();
  const Duration uptime = runtime_->uptime();
  load.totals = {.at = kStart + uptime, .good = calls.good, .bad = calls.bad};
  for (const LaneLoad& lane : runtime_->lane_loads()) {
    load.totals.busy += lane.busy;
    load.totals.batches.push_back(lane.batches);
    load.totals.available += o_.slots * uptime;
  }
  return load;
}

Status ServeCommand::OpenPorts() {
  std::vector<const Runtime*> runtimes = {runtime_.get()};
  if (host_ != nullptr) runtimes.push_back(&host_->runtime());
  composed_ = ServeStepEnsembles(o_, Models(), CostIn(runtimes), *metrics_, log_);
  auto routed = MakeRoutedSteps(o_, peer_tls_, Models(), log_);
  if (!routed) return std::unexpected(std::move(routed.error()));
  routed_ = *std::move(routed);
  service_ = ServeEnsembles(o_, Models(), routed_.get(), CostIn(std::move(runtimes)), *metrics_,
                            journals_.pipelines(), log_);
  metrics_->Watch([this] {
    RuntimeReading reading = ReadingOf(*runtime_, *service_);
    reading.journal_whole = journals_.whole();
    reading.http_lag = lag_->Longest();
    if (host_ != nullptr) host_->AddTo(reading);
    AddEngines(*engines_, reading);
    if (sampler_ != nullptr) reading.advice = sampler_->latest().advice;
    if (planning_ != nullptr) reading.planning = planning_->reading();
    if (streams_ != nullptr) reading.streams = FramesOf(*streams_);
    if (routed_ != nullptr) reading.remote = routed_->Remote();
    return reading;
  });
  streams_ = std::make_unique<StreamSet>(*service_);
  auto ports = ServerPorts::Start(o_, {.service = *service_,
                                       .access = access_,
                                       .limits = limits_,
                                       .lag = lag_,
                                       .objectives = objectives_,
                                       .logs = logs_,
                                       .folders = o_.folders,
                                       .connections = connections_,
                                       .streams = streams_.get(),
                                       .sampler = sampler_.get(),
                                       .metrics = [this] { return metrics_->Text(); },
                                       .unread = [this] { metrics_->OnUnread(); }});
  if (!ports) return std::unexpected(std::move(ports.error()));
  ports_ = *std::move(ports);
  if (routed_) routes_ = FollowRoutes(o_, *routed_, *service_, log_);
  if (routed_) links_ = MeasureLinks(o_, *routed_, log_);
  auto peers = PeerPort::Start(o_, peer_tls_, Models(), *service_,
                               [log = log_](const std::string& line) { log->warn(line); });
  if (!peers) return std::unexpected(std::move(peers.error()));
  peer_port_ = *std::move(peers);
  return {};
}

// Whether the profile holds the model, and fits it.
bool ServeCommand::Profiled(const ModelSpec& spec) const {
  const ProfiledModel* known = profile_ ? profile_->Find(spec.name) : nullptr;
  if (known == nullptr) return false;
  Model model{.name = spec.name,
              .max_batch = std::min(std::max(1, spec.max_batch), known->max_batch)};
  for (const ExitSpec& exit : spec.exits) model.exits.push_back({exit.name, exit.accuracy});
  return MakeTable(*profile_, {&model, 1}, {o_.percentile, o_.jitter_ms}).has_value();
}

std::string ServeCommand::LatenciesOf(const ModelSpec& spec) const {
  if (spec.platform == kEnsemblePlatform) return "of its steps: " + StepsOf(spec);
  const std::string_view label = spec.platform == "emulated" ? "EMULATED, " : "";
  if (split_) return fmt::format("{}measured on each share", label);
  if (!spec.profile.empty()) return fmt::format("{}{}", label, spec.profile.string());
  return fmt::format("{}{}", label,
                     Profiled(spec) ? profile_->provenance : "measured briefly at start");
}

std::string ServeCommand::LanesText() const {
  if (split_ && split_->on_device) return fmt::format("{}, split {}", o_.device, SplitText(o_));
  if (split_) {
    return fmt::format("{} core{}, split {}", split_->cores, split_->cores == 1 ? "" : "s",
                       SplitText(o_));
  }
  return fmt::format("{} lane{}{}{}", o_.lanes, o_.lanes == 1 ? "" : "s",
                     o_.slots == 1 ? "" : fmt::format(" of {} slots", o_.slots),
                     OnDevices(o_) ? " on " + o_.device : "");
}

void ServeCommand::PrintServed() const {
  const char* const row = "{:<16} {:>7}  {:<11} {:<12} {:<24} {:>8}  {}\n";
  fmt::print("tactus {} serves {} with {} on {}\n\n", kServerVersion, o_.folders->Text(), o_.policy,
             LanesText());
  bool emulated = false;
  fmt::print(fmt::runtime(row), "model", "version", "state", "exits", "accuracy", "SLO ms",
             "latencies");
  for (const ModelState& state : service_->Index()) {
    const auto model = service_->Find(state.name, state.version);
    if (!model) {
      fmt::print(fmt::runtime(row), state.name, state.version, state.state, "-", "-", "-",
                 state.reason);
      continue;
    }
    const ModelSpec& spec = **model;
    const double slo = spec.slo > Duration{} ? ToMillis(spec.slo) : o_.default_slo_ms;
    fmt::print(fmt::runtime(row), state.name, state.version, state.state, ExitsOf(spec),
               AccuracyOf(spec), fmt::format("{:g}", slo), LatenciesOf(spec));
    emulated = emulated || spec.platform == "emulated";
  }
  fmt::print("{}", AboutServed(o_.models.front(), service_->Index().empty(), emulated));
  if (const DeviceLayout layout = runtime_->layout(); layout.plan != nullptr) {
    fmt::print("\nlanes now: {}\n", LayoutText(*layout.plan, layout.models));
  }
  ports_->PrintPlaces(peer_port_ ? peer_port_->port() : 0);
}

void ServeCommand::Stop() {
  const milliseconds grace(static_cast<std::int64_t>(o_.grace_s * 1000));
  StopSignals::EndWithin(grace);
  std::optional<PredictorFile> learnt;
  if (!o_.save_predictor.empty()) learnt = PredictorHere();  // while the models are still there
  for (auto* each : {&idle_memory_, &processes_watch_}) each->reset();
  if (site_ != nullptr) site_->Leave();
  streams_->Stop();  // their watchers are connections
  routes_.reset();
  links_.reset();
  const auto peers = [&] {
    if (peer_port_ != nullptr) peer_port_->Stop(grace);
  };
  ports_->Stop(grace, peers, [&] {
    if (host_ != nullptr) host_->Abandon();
    runtime_->Abandon();
  });
  if (sampler_ != nullptr) sampler_->Stop();
  runtime_->EndChanges();
  reload_.reset();
  if (planning_ != nullptr) planning_->Stop();
  if (host_ != nullptr) host_->Stop(Duration{});
  runtime_->Stop(Duration{});  // the front ends have waited for their calls
  if (learnt) {
    const auto kept = KeepPredictor(std::move(*learnt), *policy_, o_.save_predictor);
    if (!kept) log_->error("--save-predictor: {}", kept.error().message);
  }
  ports_->StopMetrics();
  metrics_->Watch({});
  journals_.Close(log_);
}

int ServeCommand::Run() {
  std::jthread starting = signals_.EndAtOnce();
  auto access = AccessOf(o_, [log = log_](const std::string& line) { log->warn(line); });
  if (!access) return ReportBadInput(access.error());
  access_ = *std::move(access);
  const auto connections = MostConnections();
  if (!connections) return ReportBadInput(connections.error());
  connections_ = *connections;
  auto limits = LimitsOf(o_, connections_);
  if (!limits) return ReportBadInput(limits.error());
  limits_ = *std::move(limits);
  auto peer_tls = PeerTls::Open(o_.peer_tls);
  if (!peer_tls) return ReportBadInput(peer_tls.error());
  peer_tls_ = *std::move(peer_tls);
  auto objectives = ObjectivesOf(o_);
  if (!objectives) return ReportBadInput(objectives.error());
  objectives_ = *std::move(objectives);
  if (Status free = ServerPorts::CheckFree(o_); !free) return ReportBadInput(free.error());
  if (Status kept = ServedJournals::KeepOld(o_.journal); !kept) return ReportBadInput(kept.error());
  if (Status made = MakeRuntime(); !made) return ReportBadInput(made.error());
  starting = {};
  if (Status started = OpenPorts(); !started) return ReportBadInput(started.error());
  access_refresh_ = FollowAccess(access_);
  processes_watch_ = WatchProcesses(o_, *engines_, *runtime_, host_.get());
  idle_memory_ = GiveBackKeptMemory(*metrics_, *runtime_);
  if (planning_ != nullptr) planning_->Start();
  if (site_ != nullptr) site_->Start(*runtime_, peer_port_->place());
  if (!o_.plan.empty()) reload_ = TakePlanWhenWoken(o_.plan, *runtime_, log_);
  PrintServed();
  const char* const signal = signals_.Wait([this] {
    reload_ ? reload_->Wake() : log_->info("SIGHUP: there is no --plan to read again");
  });
  log_->info("{}: no new calls; those under way have {:g} s", signal, o_.grace_s);
  Stop();
  log_->info("stopped");
  return 0;
}

}  // namespace

void AddServe(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command =
      app.add_subcommand("serve", "Serve models over KServe v2 (HTTP and gRPC) by deadline");
  Declare(*options, *command);
  command->callback([options, &context] {
    KeepFreedMemory();
    context.exit_code = ServeCommand(WithFolders(WithALaneOnEach(*options))).Run();
  });
}

}  // namespace tactus
