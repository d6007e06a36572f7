#include "measurement/measurement.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "dispatch/journal_file.h"
#include "engines/engine_shelf.h"
#include "experiment/kept_predictor.h"
#include "measurement/measured_inputs.h"
#include "measurement/service_watch.h"
#include "placement/plan_question.h"
#include "platform/cpu_affinity.h"
#include "platform/doorbell.h"
#include "platform/repeated_task.h"
#include "policies/registry.h"
#include "profiling/machine.h"
#include "runtime/runtime.h"
#include "server/kserve/model_config.h"
#include "workload/arrivals.h"

namespace tactus {
namespace {

using Real = std::chrono::steady_clock::time_point;

// The last part of the way to an arrival is spun, because a sleeping thread wakes late.
constexpr std::chrono::microseconds kSpin{30};
// From the last preparation to the first arrival that is possible.
constexpr std::chrono::milliseconds kLead{50};
constexpr std::chrono::milliseconds kFlush{20};

// Without a folder an emulated model is one number in, one number out.
ModelSpec MadeUpSpec(const std::string& name, const Model& model) {
  ModelSpec spec;
  spec.name = name;
  spec.platform = "emulated";
  spec.max_batch = model.max_batch;
  spec.inputs = {{"input", DataType::kFp32, {-1, 1}}};
  spec.outputs = {{"output", DataType::kFp32, {-1, 1}}};
  for (const ModelExit& exit : model.exits) spec.exits.push_back({exit.name, {}, exit.accuracy});
  return spec;
}

// With all that its folder says, or who gives it.
Expected<ModelSpec> WholeSpec(const ScenarioModel& wanted, const std::string& folder,
                              const MeasureOptions& options) {
  if (options.given) return options.given->spec_of(wanted);
  const auto versions = ListVersions(options.models / folder, "");
  if (!versions) return std::unexpected(versions.error());
  return ReadModelSpec(options.models / folder, versions->back(), "");
}

// The model under the scenario's name, cut down to the scenario's exits, batch and SLO.
Expected<ModelSpec> SpecFor(const ScenarioModel& wanted, const Model& model,
                            const MeasureOptions& options) {
  if (options.models.empty() && !options.given) {
    if (options.engine == "emulated") return MadeUpSpec(wanted.name, model);
    return InvalidArgument(
        "measure runs real models: name their folder with --models DIR, or choose --engine "
        "emulated");
  }
  const std::string& folder = wanted.profile_as.empty() ? wanted.name : wanted.profile_as;
  auto spec = WholeSpec(wanted, folder, options);
  if (!spec) return spec;
  std::vector<ExitSpec> exits;
  for (const ModelExit& exit : model.exits) {
    const auto it = std::find_if(spec->exits.begin(), spec->exits.end(),
                                 [&](const ExitSpec& known) { return known.name == exit.name; });
    if (it == spec->exits.end()) {
      return InvalidArgument(fmt::format("model '{}' in {} has no exit '{}'", folder,
                                         options.models.string(), exit.name));
    }
    exits.push_back(*it);
  }
  if (model.max_batch > std::max(spec->max_batch, 1)) {
    return InvalidArgument(fmt::format("scenario's model '{}' has max_batch {}, its folder {}",
                                       wanted.name, model.max_batch, spec->max_batch));
  }
  spec->name = wanted.name;
  spec->exits = std::move(exits);
  if (spec->max_batch > 0) spec->max_batch = model.max_batch;
  return spec;
}

// Lanes are whole devices here, whatever parts of them a plan might use, and their machine is
// followed.
Scenario OnWholeDevices(Scenario scenario) {
  scenario.plan_shares.clear();
  if (scenario.follow == "auto") scenario.follow = "yes";
  return scenario;
}

class RealTime {
 public:
  RealTime(const Experiment& experiment, const MeasureOptions& options)
      : scenario_(OnWholeDevices(experiment.scenario)),
        experiment_(experiment),
        options_(options) {}

  Expected<Measurement> Run();

 private:
  Status Prepare();
  Status OpenJournal();
  Status StartRuntime();
  Status ServeModels();
  Status SplitDevice();
  Status ResumePolicy();
  std::string EngineNames() const;
  bool Emulated() const;
  PredictorFile PredictorHere() const;
  EngineOptions MakeEngineOptions() const;
  void SendAll(Real start);
  void Send(std::size_t model, Real intended);
  Measurement Collect(Real start);

  const Scenario scenario_;
  const Experiment& experiment_;
  const MeasureOptions& options_;
  std::vector<Model> models_;
  std::vector<std::unique_ptr<Arrivals>> arrivals_;
  std::optional<EngineShelf> engines_;
  std::unique_ptr<JournalWriter> journal_;
  ProfileFile selected_;
  std::unique_ptr<ServiceWatch> watch_;
  std::shared_ptr<const ServedModels> served_models_;
  std::vector<MeasuredInputs> inputs_;
  std::vector<std::shared_ptr<const ModelSpec>> specs_;
  std::vector<std::uint64_t> sent_;
  std::vector<Duration> late_;  // of each call behind its intended arrival
  std::int64_t refused_ = 0;
  std::unique_ptr<Runtime> runtime_;
  Policy* policy_ = nullptr;  // the runtime's
  std::optional<PredictorFile> resumed_;
};

EngineOptions RealTime::MakeEngineOptions() const {
  EngineOptions made;
  made.onnxruntime_library = options_.onnxruntime_library;
  // The emulated device takes what the table of policies says.
  made.emulated.latencies =
      [served_models = served_models_](const ModelSpec& spec) -> Expected<ProfileTable::ModelRows> {
    const auto model = std::find_if(served_models->models.begin(), served_models->models.end(),
                                    [&](const Model& m) { return m.name == spec.name; });
    if (model == served_models->models.end()) {
      return NotFound(fmt::format("the scenario has no model '{}'", spec.name));
    }
    const ModelId id{static_cast<ModelId::rep>(model - served_models->models.begin())};
    ProfileTable::ModelRows rows{model->exit_count(), model->max_batch, {}};
    for (int e = 0; e < rows.exits; ++e) {
      for (int b = 1; b <= rows.max_batch; ++b) {
        const ExitId exit{static_cast<ExitId::rep>(e)};
        rows.latency.push_back(served_models->profile.Latency(id, exit, b, LaneClass{0}));
      }
    }
    return rows;
  };
  made.emulated.seed = scenario_.seed;
  return made;
}

Status RealTime::Prepare() {
  if (!scenario_.lane_kinds.empty()) {
    return InvalidArgument(fmt::format(
        "{}: [[lane_kinds]] are for `tactus simulate`: in real time lanes are as quick as this "
        "machine, all alike; leave them out",
        scenario_.name));
  }
  if (!scenario_.lane_faults.empty()) {
    return InvalidArgument(
        fmt::format("{}: [[lane_faults]] are for `tactus simulate` only: measure does not kill "
                    "lanes; leave them out",
                    scenario_.name));
  }
  if (scenario_.drift_factor != 1 || scenario_.drift_stall_ms > 0) {
    return InvalidArgument(
        fmt::format("scenario '{}' has a [drift], which only the simulator can make; a real "
                    "machine drifts by itself, so leave it out",
                    scenario_.name));
  }
  if (scenario_.plan_planner != "none") {
    return InvalidArgument(fmt::format(
        "{}: [plan] planner is for `tactus simulate`, and --planner for `tactus serve`: nothing "
        "splits the lanes that are measured; leave it out, --set plan.planner=none",
        scenario_.name));
  }
  if (auto without = CheckNoPipelines(scenario_); !without) return without;
  auto models = MakeModels(scenario_, experiment_.profile);
  if (!models) return std::unexpected(models.error());
  models_ = *std::move(models);
  auto selected = SelectProfile(scenario_, experiment_.profile);
  if (!selected) return std::unexpected(selected.error());
  auto served_models = MakeServedModels(scenario_, experiment_.profile);
  if (!served_models) return std::unexpected(served_models.error());
  served_models_ = *std::move(served_models);
  if (auto open = CheckOpenLoop(scenario_); !open) return open;
  auto arrivals = MakeArrivals(scenario_, kStart + FromSeconds(scenario_.duration_s));
  if (!arrivals) return std::unexpected(arrivals.error());
  arrivals_ = *std::move(arrivals);
  engines_.emplace(options_.engine, MakeEngineOptions());
  if (Status opened = OpenJournal(); !opened) return opened;
  selected_ = *std::move(selected);
  return StartRuntime();
}

Status RealTime::OpenJournal() {
  if (options_.journal.empty()) return {};
  auto created = JournalWriter::Create(options_.journal,
                                       {.policy = scenario_.policy,
                                        .source = "measured",
                                        .commit = BuildCommit(),
                                        .options = MakeDispatcherOptions(scenario_),
                                        .lanes = MakeLanes(scenario_)},
                                       WhenFull::kStop);
  if (!created) return std::unexpected(created.error());
  journal_ = *std::move(created);
  return {};
}

Status RealTime::StartRuntime() {
  auto policy = MakeRealTimePolicy(scenario_.policy);
  if (!policy) return std::unexpected(policy.error());
  double total = 0;
  for (const double rate : Rates(scenario_)) total += rate;
  watch_ = std::make_unique<ServiceWatch>(
      static_cast<std::size_t>(1.1 * total * scenario_.duration_s), selected_);
  const DispatcherOptions dispatcher = MakeDispatcherOptions(scenario_);
  RuntimeOptions runtime;
  runtime.lanes = scenario_.lanes;
  runtime.slots = scenario_.slots;
  runtime.queue_capacity = dispatcher.queue_capacity;
  runtime.expiry = dispatcher.expiry;
  runtime.follow = dispatcher.follow;
  // Only the scenario's queues may refuse a request, as in the simulation.
  runtime.call_capacity = models_.size() * (dispatcher.queue_capacity + 1024);
  runtime.pending_bytes = std::size_t{1} << 40;
  runtime.pin = options_.pin;
  if (options_.planned) runtime.split = options_.planned->split;
  RuntimeParts parts;
  policy_ = policy->get();
  if (Status resumed = ResumePolicy(); !resumed) return resumed;
  parts.policy = *std::move(policy);
  parts.engine_for = [this](std::string_view platform) -> Expected<Engine*> {
    return options_.given ? options_.given->engine : engines_->For(platform);
  };
  parts.profile = selected_;
  parts.profile_options = {.percentile = scenario_.percentile, .jitter_ms = scenario_.jitter_ms};
  parts.journal = journal_.get();
  parts.observer = watch_.get();
  runtime_ = std::make_unique<Runtime>(runtime, std::move(parts));
  runtime_->Start();
  if (Status served = ServeModels(); !served) return served;
  if (Status split = SplitDevice(); !split) return split;
  if (!resumed_) return {};
  return CheckPredictor(*resumed_, options_.predictor, PredictorHere());
}

Status RealTime::ResumePolicy() {
  Status fine =
      CheckPredictorFiles(options_.save_predictor, options_.predictor, options_.journal, *policy_);
  if (!fine || options_.predictor.empty()) return fine;
  auto resumed = ResumePredictor(options_.predictor, *policy_);
  if (!resumed) return std::unexpected(std::move(resumed.error()));
  resumed_ = *std::move(resumed);
  return {};
}

// For the rates of the scenario.
Status RealTime::SplitDevice() {
  if (!options_.planned) return {};
  auto question = runtime_->CurrentPlanQuestion();
  if (!question) return std::unexpected(question.error());
  const std::vector<double> rates = Rates(scenario_);
  for (PlannedModel& model : question->input.models) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (scenario_.models[i].name == model.name) model.rate_rps = rates[i];
    }
  }
  const auto plan = options_.planned->planner->Solve(question->input);
  if (!plan) return std::unexpected(plan.error());
  return runtime_->Adopt(*plan, NamesOf(question->input));
}

std::string RealTime::EngineNames() const {
  return options_.given ? options_.given->engine->traits().name : engines_->names();
}

bool RealTime::Emulated() const {
  return options_.given ? options_.given->engine->traits().emulated : engines_->emulated();
}

// What is emulated runs on the profile's machine, everything else on this one.
PredictorFile RealTime::PredictorHere() const {
  const Machine here = Emulated() ? experiment_.profile.machine : ThisMachine(EngineNames());
  return PredictorOf(scenario_.policy, here, models_);
}

// In the scenario's order, so that model ids mean the same as in the simulation.
Status RealTime::ServeModels() {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    auto spec = SpecFor(scenario_.models[i], models_[i], options_);
    if (!spec) return std::unexpected(spec.error());
    spec->slo = models_[i].slo;
    if (Status served = runtime_->Serve(*std::move(spec)); !served) return served;
    auto found = runtime_->Find(scenario_.models[i].name, -1);
    if (!found) return std::unexpected(found.error());
    auto inputs = MeasuredInputs::Make(**found, scenario_.seed);
    if (!inputs) return std::unexpected(inputs.error());
    specs_.push_back(*std::move(found));
    inputs_.push_back(*std::move(inputs));
  }
  sent_.assign(models_.size(), 0);
  return {};
}

void RealTime::Send(std::size_t model, Real intended) {
  const std::uint64_t k = sent_[model]++;
  InferCall call;
  call.model = specs_[model];
  call.inputs = inputs_[model].Row(k);
  call.keepalive = inputs_[model].keepalive();
  call.received = intended;
  call.reply = [this, model, k](InferReply&& reply) {
    if (reply.refused) return;  // it has no record; Send counts it
    watch_->Keep(inputs_[model].Correct(k, reply));
  };
  if (runtime_->Infer(std::move(call)) == 0) ++refused_;
}

void RealTime::SendAll(Real start) {
  PinThisThread(AssignCores(options_.pin ? AllowedCores() : std::vector<int>{}, scenario_.lanes,
                            scenario_.slots)
                    .others);
  SharpenTimers();
  std::vector<TimePoint> next;
  for (const auto& stream : arrivals_) next.push_back(stream->Next());
  for (;;) {
    const auto first = std::min_element(next.begin(), next.end());
    if (first == next.end() || *first >= kNever) return;
    const Real intended = start + (*first - kStart);
    std::this_thread::sleep_until(intended - kSpin);
    Real now = std::chrono::steady_clock::now();
    for (; now < intended; now = std::chrono::steady_clock::now()) SpinPause();
    late_.push_back(now - intended);
    const auto model = static_cast<std::size_t>(first - next.begin());
    Send(model, intended);
    *first = arrivals_[model]->Next();
  }
}

Measurement RealTime::Collect(Real start) {
  Measurement measured;
  SimulationResult& result = measured.result;
  result.last = runtime_->At(std::chrono::steady_clock::now()) - (runtime_->At(start) - kStart);
  result.models = models_;
  result.begin = kStart + FromSeconds(scenario_.warmup_s);
  result.end = kStart + FromSeconds(scenario_.duration_s);
  result.skip = scenario_.warmup_requests;
  for (const LaneLoad& lane : runtime_->lane_loads()) {
    result.lanes.push_back({lane.busy, lane.batches});
  }
  const TimePoint origin = runtime_->At(start);
  runtime_->Stop(Duration{});
  measured.answer = watch_->answer();
  result.records = watch_->TakeRecords(origin);
  measured.engine = EngineNames();
  measured.emulated = Emulated();
  measured.launch = watch_->launch();
  measured.finish = watch_->finish();
  measured.late = SpreadOf(std::move(late_));
  measured.service_ratio = watch_->service_ratios();
  measured.service_trace = watch_->service_trace(origin, kServiceWindow);
  if (const PredictionErrors* errors = PredictionErrorsOf(*policy_)) {
    measured.prediction = SummaryOf(*errors);
    measured.predictions = watch_->predictions();
  }
  return measured;
}

Expected<Measurement> RealTime::Run() {
  if (Status ready = Prepare(); !ready) return std::unexpected(ready.error());
  RepeatedTask flusher;
  if (journal_ != nullptr) {
    flusher.Start("journal",
                  [this] { return journal_->Flush() ? kFlush : RepeatedTask::kUntilWoken; });
  }
  const Real start = std::chrono::steady_clock::now() + kLead;
  std::thread sender([this, start] { SendAll(start); });
  sender.join();
  while (runtime_->calls() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Measurement measured = Collect(start);
  if (!options_.save_predictor.empty()) {
    const Status kept = KeepPredictor(PredictorHere(), *policy_, options_.save_predictor);
    if (!kept) return std::unexpected(kept.error());
  }
  if (journal_ != nullptr) {
    flusher.Stop();
    if (Status closed = journal_->Close(); !closed) return std::unexpected(closed.error());
    measured.journal_complete = !journal_->stopped();
  }
  if (refused_ > 0) {
    return Internal(fmt::format("{} requests found no room in the runtime", refused_));
  }
  return measured;
}

}  // namespace

ProfileFile WithOverheads(const Experiment& experiment, const Measurement& measured) {
  ProfileFile profile = experiment.profile;
  profile.launch_overhead_ms = ToMillis(measured.launch.p50);
  profile.finish_overhead_ms = ToMillis(measured.finish.p50);
  profile.answer_overhead_ms = ToMillis(measured.answer.p50);
  profile.service_window_ms = ToMillis(kServiceWindow);
  profile.service_trace = measured.service_trace;
  for (ProfiledModel& model : profile.models) {
    double sum = 0;
    int sharing = 0;
    for (std::size_t m = 0; m < measured.service_ratio.size(); ++m) {
      if (model.name != experiment.scenario.models[m].profile_as) continue;
      sum += measured.service_ratio[m];
      ++sharing;
    }
    if (sharing > 0) model.service_ratio = sum / sharing;
  }
  return profile;
}

Expected<Measurement> Measure(const Experiment& experiment, const MeasureOptions& options) {
  return RealTime(experiment, options).Run();
}

}  // namespace tactus
