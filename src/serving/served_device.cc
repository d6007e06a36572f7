#include "serving/served_device.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "check/doubts.h"
#include "dispatch/journal_file.h"
#include "experiment/kept_predictor.h"
#include "metrics/report.h"
#include "platform/cpu_affinity.h"
#include "profiling/machine.h"
#include "runtime/layout/lane_layout.h"
#include "runtime/models/model_profile.h"
#include "server/kserve/ensemble_config.h"
#include "serving/auto_lanes.h"
#include "serving/device.h"
#include "serving/isolation.h"
#include "serving/plans.h"
#include "serving/runtime_options.h"
#include "workload/profile_threads.h"

namespace tactus {

ServedDevice::ServedDevice(const ServeOptions& options, Parts parts)
    : o_(options),
      given_(std::move(parts.policy)),
      policy_(given_.get()),
      site_(parts.site),
      metrics_(parts.metrics),
      observer_(parts.observer),
      log_(std::move(parts.log)),
      engines_(o_.engine, [this] {
        EngineOptions engines = EngineOptionsOf(o_);
        Isolate(o_, engines);
        engines.emulated.latencies = [this](const ModelSpec& spec) { return EmulatedRows(spec); };
        return engines;
      }()) {}

Expected<std::unique_ptr<ServedDevice>> ServedDevice::Load(const ServeOptions& options,
                                                           Parts parts) {
  if (Status fit = CheckIsolation(options); !fit) return std::unexpected(std::move(fit.error()));
  std::unique_ptr<ServedDevice> device(new ServedDevice(options, std::move(parts)));
  if (Status fit = device->CheckOptions(); !fit) return std::unexpected(std::move(fit.error()));
  if (Status loaded = device->Load(); !loaded) return std::unexpected(std::move(loaded.error()));
  return device;
}

Status ServedDevice::CheckOptions() {
  Status fine = CheckPredictorFiles(o_.save_predictor, o_.predictor, o_.journal, *policy_);
  if (!fine) return fine;
  if (!o_.predictor.empty()) {
    auto resumed = ResumePredictor(o_.predictor, *policy_);
    if (!resumed) return std::unexpected(std::move(resumed.error()));
    resumed_ = *std::move(resumed);
  }
  if (Status fit = CheckModels(o_); !fit) return fit;
  if (Status there = CheckEngine(o_, engines_); !there) return there;
  if (Status loaded = LoadProfileFile(); !loaded) return loaded;
  return ReadShares();
}

Expected<Engine*> ServedDevice::MainEngine() {
  return engines_.For(o_.engine.empty() ? "onnxruntime_onnx" : o_.engine);
}

Status ServedDevice::LoadProfileFile() {
  if (o_.profile.empty()) return {};
  auto profile = LoadProfile(o_.profile);
  if (!profile) return std::unexpected(std::move(profile.error()));
  for (const std::string& warning : Warnings(*profile)) log_->warn("profile: {}", warning);
  profile_ = *std::move(profile);
  if (o_.engine == "emulated") return {};  // it stands for the profile's machine, whichever it is
  const auto engine = MainEngine();
  if (!engine) return std::unexpected(engine.error());
  const int threads = ThreadsOfProfile(o_, *profile_);
  const Status here =
      CheckMachine(*profile_, ThisMachine((*engine)->traits(), threads), o_.allow_other_machine);
  if (here && !o_.chosen_lanes.empty() && threads != o_.threads) {
    profile_ = AtThreads(*profile_, o_.threads);
  }
  return here;
}

Status ServedDevice::ReadShares() {
  if (Status fit = CheckPlanOptions(o_); !fit) return fit;
  if (!SplitsDevice(o_)) return {};
  const auto engine = MainEngine();
  if (!engine) return std::unexpected(engine.error());
  auto split = ReadSplit(o_, (*engine)->traits());
  if (!split) return std::unexpected(std::move(split.error()));
  split_ = *std::move(split);
  if (const auto doubt = SharesDoubt(split_->shares)) log_->warn(*doubt);
  return {};
}

JournalHeader ServedDevice::setting() const {
  const RuntimeOptions options = RuntimeOptionsOf(o_);
  return {.policy = o_.policy,
          .source = "served",
          .commit = BuildCommit(),
          .options = {options.queue_capacity, options.expiry, options.follow},
          .lanes = SplitsDevice(o_) ? LaneLayout::Lanes()
                                    : std::vector<LaneSpec>(static_cast<std::size_t>(o_.lanes),
                                                            LaneSpec{.slots = o_.slots})};
}

Status ServedDevice::Load() {
  const auto cores = static_cast<int>(AllowedCores().size());
  if (const auto doubt = CoresDoubt(o_, cores)) log_->warn(*doubt);
  RuntimeOptions options = RuntimeOptionsOf(o_);
  Isolate(o_, options);
  options.split = split_;
  if (!o_.journal.empty()) {
    if (Status opened = journals_.Open(o_.journal, setting(), log_); !opened) return opened;
  }
  auto policy = site_ ? site_->MakePolicy(std::move(given_)) : std::move(given_);
  runtime_ = std::make_unique<Runtime>(options, PartsOf(std::move(policy)));
  for (const std::string& each : o_.folders->Overlooked()) log_->warn(each);
  if (Status started = runtime_->Start(RepositoryOptionsOf(o_, log_)); !started) return started;
  for (const std::string& line : o_.chosen_lanes) log_->info("lanes: {}", line);
  if (Status host = StartHost(options); !host) return host;
  if (Status split = SplitDevice(); !split) return split;
  return resumed_ ? CheckPredictor(*resumed_, o_.predictor, PredictorHere()) : Status();
}

// Of the device's runtime; without a policy, of the host's.
RuntimeParts ServedDevice::PartsOf(std::unique_ptr<Policy> policy) {
  Observer& observer = policy == nullptr ? metrics_ : observer_;
  RuntimeParts parts{.policy = std::move(policy),
                     .engine_for = [this](std::string_view p) { return engines_.For(p); },
                     .profile = profile_,
                     .profile_options = {o_.percentile, o_.jitter_ms},
                     .observer = &observer,
                     .log = [log = log_](const std::string& line) { log->warn(line); },
                     .news = [log = log_](const std::string& line) { log->info(line); }};
  if (parts.policy == nullptr) return parts;
  parts.journal = journals_.dispatcher();
  if (site_ == nullptr) return parts;
  parts.place_granted = [site = site_](const GrantedPart& part, TimePoint deadline) {
    return site->Place(part, deadline);
  };
  return parts;
}

Status ServedDevice::StartHost(const RuntimeOptions& options) {
  if (!o_.engine.empty()) return {};
  auto host =
      HostLanes::Start(o_, options, RepositoryOptionsOf(o_, log_), *runtime_, PartsOf(nullptr));
  if (!host) return std::unexpected(std::move(host.error()));
  host_ = *std::move(host);
  return {};
}

Status ServedDevice::SplitDevice() {
  if (!split_) return {};
  if (!o_.planner.empty()) {
    auto planning =
        MakePlanning(o_, *runtime_,
                     {.ended =
                          [this] {
                            const CallTotals calls = metrics_.calls();
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
Expected<ProfileTable::ModelRows> ServedDevice::EmulatedRows(const ModelSpec& spec) const {
  const auto known = FindProfile(spec, profile_);
  if (!known) return std::unexpected(known.error());
  if (*known) return RowsOf(**known, spec, kMaxBatch, {.percentile = 0});
  return NotFound(fmt::format(
      "model '{}' is emulated and has no latencies: name a profile in its "
      "folder (parameters {{ key: \"profile\" }}), or serve with a --profile that has it",
      spec.name));
}

// What is emulated runs on the profile's machine, everything else on this one.
PredictorFile ServedDevice::PredictorHere() {
  const auto device = [&] {
    if (o_.engine == "emulated" && profile_) return profile_->machine;
    const auto engine = MainEngine();
    return engine ? ThisMachine((*engine)->traits()) : ThisMachine(o_.engine);
  };
  return PredictorOf(o_.policy, device(), runtime_->served_models()->models);
}

void ServedDevice::AddTo(RuntimeReading& reading) const {
  reading.journal_whole = journals_.whole();
  AddEngines(engines_, reading);
  if (planning_ != nullptr) reading.planning = planning_->reading();
}

// Whether the profile holds the model, and fits it.
bool ServedDevice::Profiled(const ModelSpec& spec) const {
  const ProfiledModel* known = profile_ ? profile_->Find(spec.name) : nullptr;
  if (known == nullptr) return false;
  Model model{.name = spec.name,
              .max_batch = std::min(std::max(1, spec.max_batch), known->max_batch)};
  for (const ExitSpec& exit : spec.exits) model.exits.push_back({exit.name, exit.accuracy});
  return MakeTable(*profile_, {&model, 1}, {o_.percentile, o_.jitter_ms}).has_value();
}

std::string ServedDevice::LatenciesOf(const ModelSpec& spec) const {
  if (spec.platform == kEnsemblePlatform) return "those of " + StepsOf(spec);
  const std::string_view label = spec.platform == "emulated" ? "EMULATED, " : "";
  if (split_) return fmt::format("{}measured on each share", label);
  if (!spec.profile.empty()) return fmt::format("{}{}", label, spec.profile.string());
  return fmt::format("{}{}", label,
                     Profiled(spec) ? profile_->provenance : "measured briefly at start");
}

std::string ServedDevice::LanesText() const {
  if (split_ && split_->on_device) return fmt::format("{}, split {}", o_.device, SplitText(o_));
  if (split_) {
    return fmt::format("{} core{}, split {}", split_->cores, split_->cores == 1 ? "" : "s",
                       SplitText(o_));
  }
  return fmt::format("{} lane{}{}{}{}", o_.lanes, o_.lanes == 1 ? "" : "s",
                     o_.slots == 1 ? "" : fmt::format(" of {} slots", o_.slots),
                     o_.threads == 1 ? "" : fmt::format(" of {} threads", o_.threads),
                     OnDevices(o_) ? " on " + o_.device : "");
}

void ServedDevice::Start() {
  watch_ = WatchProcesses(o_, engines_, *runtime_, host_.get());
  if (planning_ != nullptr) planning_->Start();
  if (!o_.plan.empty()) reload_ = TakePlanWhenWoken(o_.plan, *runtime_, log_);
}

bool ServedDevice::TakePlanAgain() {
  if (reload_ != nullptr) reload_->Wake();
  return reload_ != nullptr;
}

void ServedDevice::BeginStop() {
  if (!o_.save_predictor.empty()) learnt_ = PredictorHere();
  watch_.reset();
}

void ServedDevice::Abandon() {
  if (host_ != nullptr) host_->Abandon();
  runtime_->Abandon();
}

void ServedDevice::Stop() {
  runtime_->EndChanges();
  reload_.reset();
  if (planning_ != nullptr) planning_->Stop();
  if (host_ != nullptr) host_->Stop(Duration{});
  runtime_->Stop(Duration{});  // the front ends have waited for their calls
  if (!learnt_) return;
  if (const auto kept = KeepPredictor(*std::move(learnt_), *policy_, o_.save_predictor); !kept) {
    log_->error("--save-predictor: {}", kept.error().message);
  }
}

}  // namespace tactus
