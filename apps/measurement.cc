#include "measurement.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "dispatch/journal_file.h"
#include "engines/engine_shelf.h"
#include "measured_inputs.h"
#include "metrics/recorder.h"
#include "policies/registry.h"
#include "runtime/core_plan.h"
#include "runtime/doorbell.h"
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

// Collects on the threads that answer; read after the runtime has stopped.
class Watch final : public Observer {
 public:
  explicit Watch(std::size_t expected) : recorder_(expected) {}

  void OnAnswered(const ModelSpec&, const RequestRecord& record, int) override { last = record; }
  // The reply follows on the same thread: it knows whether the answer was right.
  void Keep(std::int8_t correct) {
    last.correct = correct;
    const std::lock_guard lock(mutex_);
    recorder_.Add(last);
  }
  void OnBatch(const ModelSpec&, const BatchRecord& batch) override {
    if (batch.status != BatchStatus::kOk) return;
    const std::lock_guard lock(mutex_);
    launch_.push_back(batch.started - batch.decided);
    finish_.push_back(batch.learnt - batch.ended);
    slower_ += ToSeconds(batch.actual()) / ToSeconds(batch.predicted());
  }

  // In the scenario's time, whose start is `start`.
  std::vector<RequestRecord> TakeRecords(TimePoint start) {
    std::vector<RequestRecord> records = std::move(recorder_).Take();
    const Duration offset = start - kStart;
    for (RequestRecord& record : records) {
      record.arrival -= offset;
      record.deadline -= offset;
      record.started -= offset;
      record.ended -= offset;
    }
    return records;
  }
  Spread launch() { return SpreadOf(launch_); }
  Spread finish() { return SpreadOf(finish_); }
  double slower() const {
    return launch_.empty() ? 0 : slower_ / static_cast<double>(launch_.size());
  }

 private:
  static Spread SpreadOf(std::vector<Duration>& values) {
    Duration sum{};
    for (const Duration value : values) sum += value;
    const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(values.size()));
    return {sum / count, Percentile(values, 50), Percentile(values, 95)};
  }

  static inline thread_local RequestRecord last;

  std::mutex mutex_;
  Recorder recorder_;
  std::vector<Duration> launch_;
  std::vector<Duration> finish_;
  double slower_ = 0;
};

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

// The folder's model under the scenario's name, cut down to the scenario's exits, batch and SLO.
Expected<ModelSpec> SpecFor(const ScenarioModel& wanted, const Model& model,
                            const MeasureOptions& options) {
  if (options.models.empty()) {
    if (options.engine == "emulated") return MadeUpSpec(wanted.name, model);
    return InvalidArgument(
        "measure runs real models: say where they are with --models DIR, or "
        "choose --engine emulated");
  }
  const std::string& folder = wanted.profile_as.empty() ? wanted.name : wanted.profile_as;
  const auto versions = ListVersions(options.models / folder, "");
  if (!versions) return std::unexpected(versions.error());
  auto spec = ReadModelSpec(options.models / folder, versions->back(), "");
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

class RealTime {
 public:
  RealTime(const Experiment& experiment, const MeasureOptions& options)
      : scenario_(experiment.scenario), experiment_(experiment), options_(options) {}

  Expected<Measurement> Run();

 private:
  Status Prepare();
  Status OpenJournal();
  Status StartRuntime(ProfileFile selected);
  Status ServeModels();
  EngineOptions MakeEngineOptions() const;
  void SendAll(Real start);
  void Send(std::size_t model, Real intended);
  Measurement Collect(Real start);

  const Scenario& scenario_;
  const Experiment& experiment_;
  const MeasureOptions& options_;
  std::vector<Model> models_;
  std::vector<std::unique_ptr<Arrivals>> arrivals_;
  std::optional<EngineShelf> engines_;
  std::unique_ptr<JournalWriter> journal_;
  std::unique_ptr<Watch> watch_;
  std::shared_ptr<const Deployment> deployment_;
  std::vector<MeasuredInputs> inputs_;
  std::vector<std::shared_ptr<const ModelSpec>> specs_;
  std::vector<std::uint64_t> sent_;
  std::int64_t refused_ = 0;
  std::unique_ptr<Runtime> runtime_;
};

EngineOptions RealTime::MakeEngineOptions() const {
  EngineOptions made;
  made.onnxruntime_library = options_.onnxruntime_library;
  // The emulated device takes what the table of policies says.
  made.emulated.latencies =
      [deployment = deployment_](const ModelSpec& spec) -> Expected<ProfileTable::ModelRows> {
    const auto model = std::find_if(deployment->models.begin(), deployment->models.end(),
                                    [&](const Model& m) { return m.name == spec.name; });
    if (model == deployment->models.end()) {
      return NotFound(fmt::format("the scenario has no model '{}'", spec.name));
    }
    const ModelId id{static_cast<ModelId::rep>(model - deployment->models.begin())};
    ProfileTable::ModelRows rows{model->exit_count(), model->max_batch, {}};
    for (int e = 0; e < rows.exits; ++e) {
      for (int b = 1; b <= rows.max_batch; ++b) {
        const ExitId exit{static_cast<ExitId::rep>(e)};
        rows.latency.push_back(deployment->profile.Latency(id, exit, b, LaneClass{0}));
      }
    }
    return rows;
  };
  made.emulated.seed = scenario_.seed;
  return made;
}

Status RealTime::Prepare() {
  auto models = MakeModels(scenario_, experiment_.profile);
  if (!models) return std::unexpected(models.error());
  models_ = *std::move(models);
  auto selected = SelectProfile(scenario_, experiment_.profile);
  if (!selected) return std::unexpected(selected.error());
  auto deployment = MakeDeployment(scenario_, experiment_.profile);
  if (!deployment) return std::unexpected(deployment.error());
  deployment_ = *std::move(deployment);
  auto arrivals = MakeArrivals(scenario_, kStart + FromSeconds(scenario_.duration_s));
  if (!arrivals) return std::unexpected(arrivals.error());
  arrivals_ = *std::move(arrivals);
  engines_.emplace(options_.engine, MakeEngineOptions());
  if (Status opened = OpenJournal(); !opened) return opened;
  return StartRuntime(*std::move(selected));
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

Status RealTime::StartRuntime(ProfileFile selected) {
  auto policy = MakePolicy(scenario_.policy);
  if (!policy) return std::unexpected(policy.error());
  double total = 0;
  for (const double rate : Rates(scenario_)) total += rate;
  watch_ = std::make_unique<Watch>(static_cast<std::size_t>(1.1 * total * scenario_.duration_s));
  const DispatcherOptions dispatcher = MakeDispatcherOptions(scenario_);
  RuntimeOptions runtime;
  runtime.lanes = scenario_.lanes;
  runtime.slots = scenario_.slots;
  runtime.queue_capacity = dispatcher.queue_capacity;
  runtime.expiry = dispatcher.expiry;
  // Only the scenario's queues may refuse a request, as in the simulation.
  runtime.call_capacity = models_.size() * (dispatcher.queue_capacity + 1024);
  runtime.pending_bytes = std::size_t{1} << 40;
  runtime.pin = options_.pin;
  RuntimeParts parts;
  parts.policy = *std::move(policy);
  parts.engine_for = [this](std::string_view platform) { return engines_->For(platform); };
  parts.profile = std::move(selected);
  parts.profile_options = {.percentile = scenario_.percentile, .jitter_ms = scenario_.jitter_ms};
  parts.journal = journal_.get();
  parts.observer = watch_.get();
  runtime_ = std::make_unique<Runtime>(runtime, std::move(parts));
  runtime_->Start();
  return ServeModels();
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
  PinThisThread(
      PlanCores(options_.pin ? AllowedCores() : std::vector<int>{}, scenario_.lanes).others);
  SharpenTimers();
  std::vector<TimePoint> next;
  for (const auto& stream : arrivals_) next.push_back(stream->Next());
  for (;;) {
    const auto first = std::min_element(next.begin(), next.end());
    if (first == next.end() || *first >= kNever) return;
    const Real intended = start + (*first - kStart);
    std::this_thread::sleep_until(intended - kSpin);
    while (std::chrono::steady_clock::now() < intended) SpinPause();
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
  result.records = watch_->TakeRecords(origin);
  measured.engine = engines_->names();
  measured.emulated = engines_->emulated();
  measured.launch = watch_->launch();
  measured.finish = watch_->finish();
  measured.slower = watch_->slower();
  return measured;
}

Expected<Measurement> RealTime::Run() {
  if (Status ready = Prepare(); !ready) return std::unexpected(ready.error());
  std::jthread flusher;
  if (journal_ != nullptr) {
    flusher = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested() && journal_->Flush()) std::this_thread::sleep_for(kFlush);
    });
  }
  const Real start = std::chrono::steady_clock::now() + kLead;
  std::thread sender([this, start] { SendAll(start); });
  sender.join();
  while (runtime_->calls() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Measurement measured = Collect(start);
  if (journal_ != nullptr) {
    flusher.request_stop();
    flusher.join();
    if (Status closed = journal_->Close(); !closed) return std::unexpected(closed.error());
    measured.journal_complete = !journal_->stopped();
  }
  if (refused_ > 0) {
    return Internal(fmt::format("{} requests found no room in the runtime", refused_));
  }
  return measured;
}

}  // namespace

Expected<Measurement> Measure(const Experiment& experiment, const MeasureOptions& options) {
  return RealTime(experiment, options).Run();
}

}  // namespace tactus
