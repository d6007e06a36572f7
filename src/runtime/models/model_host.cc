#include "runtime/models/model_host.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/memory_guard.h"
#include "check/never_served.h"
#include "placement/plan_question.h"
#include "profiling/model_trial.h"
#include "profiling/quick_profile.h"
#include "runtime/models/model_profile.h"

namespace tactus {
namespace {

// How often a thread that waits for a model to become idle looks again. Only unloads wait so.
constexpr std::chrono::milliseconds kDrainingPause{1};

// What a batch counts as that could not be tried. Short, so that nothing is refused for it; what
// the first batches take corrects it (docs/reference/following.md).
constexpr Duration kUnprofiled = Millis(1);

std::unexpected<Error> Stopping() {
  return Fail(ErrorCode::kUnavailable, "the server is stopping");
}

ProfileTable::ModelRows Unprofiled(const ModelSpec& spec, int max_batch) {
  ProfileTable::ModelRows rows;
  rows.exits = static_cast<int>(spec.exits.size());
  rows.max_batch = max_batch;
  rows.latency.assign(static_cast<std::size_t>(rows.exits) * static_cast<std::size_t>(max_batch),
                      kUnprofiled);
  return rows;
}

void LeaveOut(ServedModel& model, const Error& why) {
  model.left_out_why.store(std::make_shared<const std::string>(why.message));
}

bool FixedShapes(const ModelSpec& spec) {
  const std::size_t first = spec.max_batch > 0 ? 1 : 0;
  for (const TensorSpec& input : spec.inputs) {
    if (input.optional) return false;  // a row that leaves it out is of another shape
    if (input.any_shape) return false;
    for (std::size_t i = first; i < input.dims.size(); ++i) {
      if (input.dims[i] < 0) return false;
    }
  }
  return true;
}

}  // namespace

ModelHost::ModelHost(Options options, const WallClock& clock, DispatchTurns& loop)
    : options_(std::move(options)),
      clock_(clock),
      loop_(loop),
      lane_mutexes_(options_.lanes.size()) {}

Status ModelHost::CheckSlots(const ModelSpec& spec, const EngineTraits& traits) const {
  for (const LaneSpec& lane : options_.lanes) {
    if (lane.slots > traits.max_slots) {
      return InvalidArgument(fmt::format(
          "model '{}': the engine {} runs {} batch{} at once in a lane, not {}: serve with fewer "
          "slots or leave the model out",
          spec.name, traits.name, traits.max_slots, traits.max_slots == 1 ? "" : "es", lane.slots));
    }
  }
  return {};
}

std::vector<LaneSpec> ModelHost::LanesAtFirst(const EngineTraits& traits) const {
  if (options_.loader == nullptr && !traits.isolated) return options_.lanes;
  std::vector<LaneSpec> first(1);
  if (traits.isolated) {
    first[0] = options_.lanes[0];
    CpuPlacement placement = OnCpu(first[0].placement);
    placement.process = kTrialProcess;
    first[0].placement = std::move(placement);
  }
  return first;
}

Status ModelHost::MoveToLanes(ServedModel& model) const {
  const ModelHandle first = model.handles[0];
  ModelSpec spec = model.spec;
  auto handles = LoadOnLanes(spec, model.engine, options_.lanes);
  model.engine.Unload(first);
  if (!handles) return std::unexpected(std::move(handles.error()));
  model.handles = *std::move(handles);
  return {};
}

Expected<ProfileTable::ModelRows> ModelHost::FindRows(const ServedModel& served, ModelHandle handle,
                                                      BatchId first, int& max_batch) {
  const ModelSpec& spec = served.spec;
  if (options_.loader != nullptr) {
    auto rows = RowsOf(options_.shares, spec, max_batch, options_.profile_options);
    if (rows) max_batch = rows->max_batch;
    return rows;
  }
  if (auto rows = options_.known_rows ? options_.known_rows(spec) : std::nullopt) {
    max_batch = std::min(max_batch, rows->max_batch);
    return *std::move(rows);
  }
  const auto known = FindProfile(spec, options_.profile);
  if (!known) return std::unexpected(known.error());
  const bool shares = options_.lanes.front().slots > 1;
  if (*known) {
    const Model model = DescribeModel(spec, options_.default_slo, max_batch);
    const ProfileFile alone = ProfileOf(**known, spec, options_.profile);
    if (Status slo = CheckSlo(alone, model, options_.profile_options); !slo) {
      return std::unexpected(slo.error());
    }
    auto rows = RowsOf(**known, spec, max_batch, options_.profile_options);
    if (rows) {
      const auto assumed = UseWarning(spec.name, &**known);
      if (shares && assumed) Say(*assumed);
      if (rows->max_batch < max_batch) {
        Say(fmt::format("model '{}': batches of at most {}, as far as its profile goes", spec.name,
                        rows->max_batch));
      }
      max_batch = rows->max_batch;
      return rows;
    }
    Say(fmt::format("model '{}': its profile does not fit: {}", spec.name, rows.error().message));
  }
  auto rows = [&] {
    const auto turn = quiet_.Measure();
    return QuickProfile(served.engine, handle, spec, max_batch, clock_, first);
  }();
  if (!rows) {
    Say(fmt::format(
        "model '{}' serves unprofiled, its batches are taken to last {:g} ms until some have run: "
        "{}",
        spec.name, ToMillis(kUnprofiled), rows.error().message));
    return Unprofiled(spec, max_batch);
  }
  Say(fmt::format(
      "model '{}' has no profile: measured quickly, batch 1 takes {:.3f} ms at its "
      "last exit{}; `tactus profile` measures it properly",
      spec.name, ToMillis(rows->latency[static_cast<std::size_t>(rows->exits - 1) * max_batch]),
      shares ? ", and it is assumed to use half of every resource while it shares a lane" : ""));
  const Duration quickest = *std::min_element(rows->latency.begin(), rows->latency.end());
  const Duration slo = spec.slo > Duration{} ? spec.slo : options_.default_slo;
  if (quickest > slo) {
    Say(fmt::format(
        "model '{}' cannot meet its SLO: its quickest batch takes {:.3f} ms and the SLO is {:g} "
        "ms, "
        "so requests are refused; profile it with `tactus profile` on a quiet machine, or raise "
        "slo_ms in its config.pbtxt",
        spec.name, ToMillis(quickest), ToMillis(slo)));
  }
  return rows;
}

void ModelHost::WarnIfNeverServed(const ServedModel& served) const {
  if (options_.loader != nullptr) return;  // which lanes there will be, only plans know
  const ServedModels alone{{served.model}, ProfileTable(1, {&served.rows, 1})};
  const auto why = ExplainNeverServed(options_.policy->traits(), alone, options_.lanes, ModelId{0});
  if (why) Say(*why);
}

Expected<Engine*> ModelHost::EngineFor(const std::string& platform) {
  const Expected<Engine*> engine = options_.engine_for(platform);
  if (!engine) return engine;
  const std::lock_guard lock(mutex_);
  if (abandoned()) return Stopping();
  engines_.insert(*engine);
  return engine;
}

// What an abandoned engine says of a model is no fault of the model.
Expected<std::shared_ptr<ServedModel>> ModelHost::Prepare(ModelSpec spec) {
  auto prepared = PrepareHere(std::move(spec));
  if (!prepared && abandoned()) return Stopping();
  return prepared;
}

Expected<std::shared_ptr<ServedModel>> ModelHost::PrepareHere(ModelSpec spec) {
  spec.load = loads_.fetch_add(1) + 1;
  const Expected<Engine*> engine = EngineFor(spec.platform);
  if (!engine) return std::unexpected(engine.error());
  const EngineTraits traits = (*engine)->traits();
  if (Status fit = CheckSlots(spec, traits); !fit) return std::unexpected(fit.error());
  if (!traits.deferred) loop_.StartWorkers();  // while a model that lacks them can still be refused
  // Batch ids of the upper half, a million for the trial of each model and one for its measurement:
  // the dispatcher counts from 0.
  const BatchId first{(std::uint64_t{1} << 63) | (measured_models_.fetch_add(1) << 21)};
  auto tried = [&] {
    const auto turn = quiet_.Try();
    return LoadTried(std::move(spec), **engine, LanesAtFirst(traits), first);
  }();
  if (!tried) return std::unexpected(std::move(tried.error()));
  for (const std::string& line : tried->said) Say(line);
  for (const std::string& line : {tried->sizes, tried->rows}) {
    if (!line.empty()) Say(line);
  }
  // Whatever the model is made for: nobody is to take these answers for the model's own.
  if (traits.emulated) tried->spec.platform = "emulated";
  auto model = std::make_shared<ServedModel>(std::move(tried->spec), **engine);
  model->handles = std::move(tried->handles);
  model->untried = tried->untried;
  model->fixed_shapes = FixedShapes(model->spec);
  int max_batch = std::min(model->rows_per_batch(), kMaxBatch);
  Expected<ProfileTable::ModelRows> rows =
      model->spec.exits.empty()
          ? InvalidArgument(fmt::format("model '{}' has no exit to run", model->spec.name))
          : WithMemory(fmt::format("model '{}': a batch to measure it with", model->spec.name),
                       [&] {
                         return FindRows(*model, model->handles[0],
                                         BatchId{first.value() + (1u << 20)}, max_batch);
                       });
  if (!rows) {
    for (const ModelHandle handle : model->handles) model->engine.Unload(handle);
    return std::unexpected(rows.error());
  }
  model->rows = *std::move(rows);
  model->model = DescribeModel(model->spec, options_.default_slo, max_batch);
  model->counters.ratios = std::vector<std::atomic<std::uint32_t>>(LaneClasses());
  if (options_.loader != nullptr) {
    const ModelHandle first = model->handles[0];
    model->handles.assign(options_.lanes.size(), {});
    options_.loader->Add(model);
    model->engine.Unload(first);  // engines share what both have loaded
  } else if (traits.isolated) {
    if (Status moved = MoveToLanes(*model); !moved) return std::unexpected(moved.error());
  }
  WarnIfNeverServed(*model);
  return model;
}

void ModelHost::Publish(const std::shared_ptr<ServedModel>& model) {
  const std::lock_guard lock(mutex_);
  std::size_t id = 0;
  while (id < published_.size() && published_[id] != nullptr) ++id;
  if (id == published_.size()) {
    published_.emplace_back();
    described_.emplace_back();
    leaving_.push_back(false);
  }
  model->id = ModelId{static_cast<ModelId::rep>(id)};
  published_[id] = model;
  described_[id] = model->model;
  Deploy();
}

void ModelHost::PublishTogether(const std::function<void()>& publish) {
  const auto set = [this](bool together) {
    const std::lock_guard lock(mutex_);
    together_ = together;
    if (!together) Deploy();
  };
  set(true);
  publish();
  set(false);
}

void ModelHost::Deploy() {
  if (together_) return;
  auto served_models = std::make_shared<ServedModels>();
  std::vector<ProfileTable::ModelRows> rows(published_.size());
  std::vector<ServedModel*> served(published_.size(), nullptr);
  for (std::size_t i = 0; i < published_.size(); ++i) {
    // A model that is gone keeps its description, so that journals say whose id it was.
    Model& model = served_models->models.emplace_back(described_[i]);
    model.loaded = published_[i] != nullptr && !leaving_[i];
    if (!model.loaded) continue;
    rows[i] = published_[i]->rows;
    served[i] = published_[i].get();
  }
  served_models->profile = ProfileTable(static_cast<int>(LaneClasses()), rows);
  served_models_ = served_models;
  loop_.Configure(std::move(served_models), std::move(served), PlanHere());
}

void ModelHost::SetPlan(std::shared_ptr<const Plan> plan, std::vector<std::string> models) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
  plan_models_ = std::move(models);
  Deploy();
}

// `mutex_` is held. Null: no plan.
std::shared_ptr<const Plan> ModelHost::PlanHere() const {
  if (plan_ == nullptr) return nullptr;
  const auto served_there = [&](LaneId lane, const std::string& name) -> std::optional<ModelId> {
    for (std::size_t m = 0; m < published_.size(); ++m) {
      const ServedModel* model = leaving_[m] ? nullptr : published_[m].get();
      if (model == nullptr || model->spec.name != name) continue;
      if (options_.loader->Has(lane, *model)) return ModelId{static_cast<ModelId::rep>(m)};
    }
    return std::nullopt;
  };
  return std::make_shared<const Plan>(Renumbered(*plan_, plan_models_, served_there));
}

// All models of engines in this process, or none.
Status ModelHost::LoadAnew(const std::vector<std::shared_ptr<ServedModel>>& models,
                           const LaneSpec& lane, Handles& handles) {
  for (std::size_t m = 0; m < models.size(); ++m) {
    if (models[m] == nullptr || models[m]->traits.isolated) continue;
    ModelSpec spec = models[m]->spec;
    auto handle = LoadOnLane(spec, models[m]->engine, lane);
    if (!handle) {
      for (std::size_t l = 0; l < m; ++l) {
        if (handles[l].value != 0) models[l]->engine.Unload(std::exchange(handles[l], {}));
      }
      return std::unexpected(handle.error());
    }
    handles[m] = *handle;
  }
  return {};
}

// One that cannot be had is left out, and where the process died of it the others are loaded anew.
void ModelHost::LoadIsolatedAnew(const std::vector<std::shared_ptr<ServedModel>>& models,
                                 LaneId lane, Handles& handles) const {
  std::vector<std::shared_ptr<ServedModel>> left = models;
  for (auto& model : left) {
    if (model != nullptr && !model->traits.isolated) model = nullptr;
  }
  for (std::size_t m = 0; m < left.size(); ++m) {
    if (left[m] == nullptr || handles[m].value != 0) continue;
    ModelSpec spec = left[m]->spec;
    auto handle = LoadOnLane(spec, left[m]->engine, options_.lanes[lane.value()]);
    if (handle) {
      handles[m] = *handle;
      continue;
    }
    Say(
        fmt::format("model '{}' cannot be had on lane {} again: {}; the lane goes on without it, "
                    "and it is tried again",
                    left[m]->spec.name, lane.value(), handle.error().message));
    LeaveOut(*left[m], handle.error());
    const Engine& engine = left[m]->engine;
    left[m] = nullptr;
    for (std::size_t l = 0; l < m; ++l) {
      if (left[l] == nullptr || &left[l]->engine != &engine) continue;
      left[l]->engine.Unload(std::exchange(handles[l], {}));
    }
    m = static_cast<std::size_t>(-1);  // begins anew with those that were unloaded
  }
}

int ModelHost::PutOnLane(const std::vector<std::shared_ptr<ServedModel>>& models, LaneId lane,
                         Handles& handles, bool opens) {
  // A model that came meanwhile was loaded on this lane too; one that leaves takes its handle with
  // it, and ours goes.
  const std::lock_guard lock(mutex_);
  int without = 0;
  loop_.Change([&](Dispatcher& dispatcher) {
    for (std::size_t m = 0; m < models.size(); ++m) {
      if (models[m] == nullptr || published_[m] != models[m] || leaving_[m]) continue;
      if (!opens && handles[m].value == 0) {
        without += models[m]->handles[lane.value()].value == 0 ? 1 : 0;
        continue;
      }
      ModelHandle& on_lane = models[m]->handles[lane.value()];
      const int had = on_lane.value != 0 ? 1 : 0;
      std::swap(on_lane, handles[m]);
      const int has = on_lane.value != 0 ? 1 : 0;
      models[m]->lanes_without.fetch_add(had - has, std::memory_order_relaxed);
      if (had != has) dispatcher.SetLaneHolds(lane, models[m]->id, has != 0);
      without += 1 - has;
    }
    if (opens) loop_.OpenAnew(lane);
  });
  return without;
}

Status ModelHost::Restore(LaneId lane) {
  const std::lock_guard one_at_a_time(lane_mutexes_[lane.value()]);
  std::vector<std::shared_ptr<ServedModel>> models;
  {
    const std::lock_guard lock(mutex_);
    models = published_;
    for (std::size_t m = 0; m < models.size(); ++m) {
      const bool lacks = models[m] != nullptr && !leaving_[m] && models[m]->traits.isolated &&
                         models[m]->handles[lane.value()].value == 0;
      if (!lacks) models[m] = nullptr;
    }
  }
  std::vector<ModelHandle> handles(models.size());
  Error why;
  for (std::size_t m = 0; m < models.size(); ++m) {
    if (models[m] == nullptr) continue;
    why = {ErrorCode::kUnavailable, "a model is left out"};
    LaneSpec trial = options_.lanes[lane.value()];
    CpuPlacement placement = OnCpu(trial.placement);
    placement.process = kTrialProcess;
    trial.placement = std::move(placement);
    for (const LaneSpec& where : {trial, options_.lanes[lane.value()]}) {
      ModelSpec spec = models[m]->spec;
      const auto handle = LoadOnLane(spec, models[m]->engine, where);
      if (handles[m].value != 0) models[m]->engine.Unload(std::exchange(handles[m], {}));
      if (!handle) {
        why = handle.error();
        LeaveOut(*models[m], why);
        break;
      }
      handles[m] = *handle;
    }
    if (handles[m].value == 0 && why.code == kFilesChanged && options_.files_changed) {
      options_.files_changed(*models[m]);
    }
  }
  const Handles loaded = handles;
  const int without = PutOnLane(models, lane, handles, false);
  for (std::size_t m = 0; m < models.size(); ++m) {
    if (handles[m].value != 0) {
      models[m]->engine.Unload(handles[m]);  // its model has gone meanwhile
    } else if (loaded[m].value != 0) {
      Say(fmt::format("model '{}' is on lane {} again", models[m]->spec.name, lane.value()));
    }
  }
  return without == 0 ? Status() : std::unexpected(why);
}

Status ModelHost::Reload(LaneId lane) {
  const std::lock_guard one_at_a_time(lane_mutexes_[lane.value()]);
  std::vector<std::shared_ptr<ServedModel>> models;
  {
    const std::lock_guard lock(mutex_);
    models = published_;
  }
  std::vector<ModelHandle> handles(models.size());  // new ones; then those that are to go
  const auto unload = [&] {
    for (std::size_t m = 0; m < models.size(); ++m) {
      if (handles[m].value != 0) models[m]->engine.Unload(handles[m]);
    }
  };
  const LaneSpec& spec = options_.lanes[lane.value()];
  if (Status loaded = LoadAnew(models, spec, handles); !loaded) return loaded;
  LoadIsolatedAnew(models, lane, handles);
  const int without = PutOnLane(models, lane, handles, true);
  unload();
  if (without > 0 && options_.left_out) {
    options_.left_out(lane, {ErrorCode::kUnavailable, "models were left out"});
  }
  return {};
}

void ModelHost::AwaitIdle(const ServedModel& model, Duration grace) const {
  const TimePoint end = clock_.Now() + grace;
  while (model.outstanding.load(std::memory_order_acquire) > 0 && clock_.Now() < end) {
    std::this_thread::sleep_for(kDrainingPause);
  }
}

void ModelHost::Retire(const std::shared_ptr<ServedModel>& model, Duration grace) {
  AwaitIdle(*model, grace);
  {
    const std::lock_guard lock(mutex_);
    const bool leaves = leaving_[model->id.value()];
    leaving_[model->id.value()] = true;
    if (!leaves) Deploy();
  }
  // Whatever waited is refused by now; what runs ends with its batch.
  while (model->outstanding.load(std::memory_order_acquire) > 0 ||
         model->running.load(std::memory_order_acquire) > 0) {
    std::this_thread::sleep_for(kDrainingPause);
  }
  if (options_.loader != nullptr) {
    options_.loader->Remove(*model);
  } else {
    for (const ModelHandle handle : model->handles) model->engine.Unload(handle);
  }
  const std::lock_guard lock(mutex_);
  published_[model->id.value()] = nullptr;
  leaving_[model->id.value()] = false;
}

void ModelHost::RefuseAll() {
  const std::lock_guard lock(mutex_);
  leaving_.assign(published_.size(), true);
  Deploy();
}

void ModelHost::AbandonEngines() {
  const std::lock_guard lock(mutex_);
  abandoned_.store(true);
  for (Engine* engine : engines_) engine->Abandon();
}

std::shared_ptr<const ServedModels> ModelHost::served_models() const {
  const std::lock_guard lock(mutex_);
  return served_models_;
}

std::vector<std::shared_ptr<const ServedModel>> ModelHost::served() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const ServedModel>> served;
  for (std::size_t m = 0; m < published_.size(); ++m) {
    if (published_[m] != nullptr && !leaving_[m]) served.push_back(published_[m]);
  }
  return served;
}

}  // namespace tactus
