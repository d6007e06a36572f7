#include "runtime/runtime.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "engines/isolated/sharing_famine.h"
#include "platform/cpu_affinity.h"
#include "platform/memory_reserve.h"
#include "runtime/calls/call_rows.h"
#include "runtime/calls/dispatch_turns.h"
#include "runtime/calls/payload_slab.h"
#include "runtime/calls/reply_queue.h"
#include "runtime/layout/lane_layout.h"
#include "runtime/layout/lane_reviver.h"
#include "runtime/models/model_host.h"
#include "runtime/models/second_thoughts.h"
#include "service/deadline.h"

namespace tactus {
namespace {

// Between two attempts to load what a lane came back without, at most: a model that is why
// processes die costs one each time. Service is back within 5 s of the cause's end.
constexpr Duration kRestoreLongest = Seconds(4);
constexpr std::chrono::milliseconds kIdlePause{1};  // between two looks at what becomes idle

constexpr char kNoMemory[] =
    "the system gives the server no more memory (ulimit -v): try again later";

// Of the device that is split. Where no core is left for others, they share its cores.
std::vector<int> DeviceCores(const SplitOptions& split, const CpuAffinity& plan) {
  if (!plan.lanes.empty()) return plan.lanes[0];
  std::vector<int> cores = AllowedCores();
  const auto wanted = static_cast<std::size_t>(split.cores);
  if (cores.size() > wanted) cores.erase(cores.begin(), cores.end() - split.cores);
  return cores;
}

DispatchTurns::Options LoopOptions(const RuntimeOptions& options, const CpuAffinity& plan) {
  DispatchTurns::Options loop;
  loop.dispatcher = {options.queue_capacity, options.expiry, options.follow};
  loop.cores = plan.others;
  loop.spin = options.spin;
  if (options.split) {
    loop.plans = true;
    loop.lanes = LaneLayout::Lanes();
    return loop;
  }
  for (int i = 0; i < options.lanes; ++i) {
    LaneSpec lane;
    lane.device = DeviceId{static_cast<DeviceId::rep>(i % options.devices)};
    lane.slots = options.slots;
    lane.placement = CpuPlacement{.threads = options.threads, .cores = plan.lane(i), .process = i};
    loop.lanes.push_back(std::move(lane));
  }
  return loop;
}

ModelHost::Options HostOptions(const RuntimeOptions& options, const CpuAffinity& plan,
                               const RuntimeParts& parts, LaneLoader* loader) {
  ModelHost::Options host;
  host.lanes = LoopOptions(options, plan).lanes;
  host.default_slo = options.default_slo;
  host.engine_for = parts.engine_for;
  host.profile = parts.profile;
  host.profile_options = parts.profile_options;
  host.log = parts.log;
  host.policy = parts.policy.get();
  host.known_rows = parts.known_rows;
  if (options.split) {
    host.loader = loader;
    host.shares = options.split->shares;
  }
  return host;
}

}  // namespace

CpuAffinity CoresFor(const RuntimeOptions& options) {
  if (!options.cores.empty()) {
    return {std::vector(static_cast<std::size_t>(options.lanes), options.cores), options.cores};
  }
  if (!options.pin) return {};
  if (options.split) return AssignCores(AllowedCores(), 1, options.split->cores);
  return AssignCores(AllowedCores(), options.lanes, options.slots * options.threads);
}

struct Runtime::Body {
  Body(RuntimeOptions runtime_options, RuntimeParts runtime_parts)
      : options(runtime_options),
        parts(std::move(runtime_parts)),
        plan(CoresFor(options)),
        slab(options.call_capacity, options.pending_bytes),
        thoughts({.stop_batching =
                      [this](const ServedModel& model, const std::string& why) {
                        return repository->StopBatching(model, why);
                      },
                  .try_again =
                      [this](const ServedModel& model, const std::map<std::string, Shape>& shapes) {
                        repository->TryAgain(model, shapes);
                      },
                  .infer = [this](InferCall&& call,
                                  Status served) { InferWhole(std::move(call), served); }}),
        replies(
            {.cores = plan.others,
             .spin = options.spin,
             .not_batched =
                 [this](InferCall&& call, std::shared_ptr<ServedModel> model, Error why) {
                   thoughts.NotBatched(std::move(call), std::move(model), std::move(why));
                 },
             .shown =
                 [this](std::shared_ptr<ServedModel> model, std::map<std::string, Shape> shapes) {
                   thoughts.Shown(std::move(model), std::move(shapes));
                 }},
            slab, clock, parts.observer, calls),
        loop(Watched(LoopOptions(options, plan)), clock, *parts.policy, parts.journal, slab,
             replies),
        loader(LaneLayout::Lanes().size(), parts.log),
        host(WithRestorer(HostOptions(options, plan, parts, &loader)), clock, loop),
        reviver({.period = options.revive_after,
                 .longest = options.revive_longest,
                 .threads = options.revivers,
                 .revive = [this](LaneId lane) { return Revive(lane); },
                 .log = parts.log}),
        restorer({.period = options.revive_after,
                  .longest = std::max(options.revive_longest, kRestoreLongest),
                  .threads = options.revivers,
                  .revive = [this](LaneId lane) { return host.Restore(lane); },
                  .log = {}}),
        watch(options.watch, clock, loop, parts.log) {
    if (!options.split) return;
    layout.emplace(LaneLayout::Options{.cores = DeviceCores(*options.split, plan),
                                       .pinned = options.pin,
                                       .on_device = options.split->on_device,
                                       .longest_batch = LongestBatch(options.split->shares),
                                       .log = parts.log},
                   clock, loop, host, loader);
  }

  DispatchTurns::Options Watched(DispatchTurns::Options loop_options) {
    loop_options.lost = [this](LaneId lane, const Error& why) { reviver.Lost(lane, why); };
    return loop_options;
  }
  ModelHost::Options WithRestorer(ModelHost::Options host_options) {
    host_options.files_changed = [this](const ServedModel& model) {
      repository->FilesChanged(model);
    };
    host_options.left_out = [this](LaneId lane, const Error& why) { restorer.Lost(lane, why); };
    return host_options;
  }
  Status Revive(LaneId lane) {
    if (layout) {
      return Fail(ErrorCode::kUnimplemented,
                  "it is a part of a device, which comes back with the next plan that has it anew");
    }
    for (bool idle = false; !idle;) {
      bool open = false;
      loop.Change([&](Dispatcher& dispatcher) {
        const Lane& now = dispatcher.view().lanes[lane.value()];
        open = now.open;
        idle = now.running().empty();
      });
      if (open) return {};
      if (!idle) std::this_thread::sleep_for(kIdlePause);
    }
    return host.Reload(lane);
  }

  CallId Refuse(InferCall& call, ErrorCode code, std::string why) {
    // Of a step the pipeline's call says how it ended.
    if (parts.observer != nullptr && !call.step) {
      parts.observer->OnRefused(call.model != nullptr ? std::string_view(call.model->name) : "",
                                code);
    }
    InferReply reply;
    reply.status = Fail(code, std::move(why));
    reply.served.outcome = code == ErrorCode::kInvalidArgument    ? Outcome::kError
                           : code == ErrorCode::kDeadlineExceeded ? Outcome::kExpired
                                                                  : Outcome::kShed;
    reply.model = call.model;
    reply.refused = true;
    calls.fetch_sub(1, std::memory_order_release);
    const std::function<void(InferReply &&)> answer = std::move(call.reply);
    answer(std::move(reply));
    return 0;
  }

  // A call that a batch failed, of the model that serves without batches by now; or its error. It
  // is counted as under way already.
  void InferWhole(InferCall&& call, const Status& served) {
    const std::string name = call.model->name;
    const auto now = repository->Find(name, call.model->version);
    if (served && now) {
      call.model = *now;
      call.begun = true;
      Infer(std::move(call));
    } else {
      const Error why = served ? now.error() : served.error();
      Refuse(call, why.code, why.message);
      calls.fetch_add(1);  // Refuse takes off what Infer added
    }
    calls.fetch_sub(1, std::memory_order_release);
  }

  CallId Infer(InferCall&& call);
  // Calls are refused then, but for one at a time: runs make engines give back what lies idle.
  bool LacksMemory() const { return MemoryReserve::Spent() && loop.pending() > 0; }

  const RuntimeOptions options;
  RuntimeParts parts;
  const CpuAffinity plan;
  const WallClock clock;
  std::atomic<std::int64_t> calls{0};
  std::atomic<bool> accepting{false};
  std::atomic<bool> stopped{false};
  std::mutex stop_mutex;
  PayloadSlab slab;
  SecondThoughts thoughts;
  ReplyQueue replies;
  DispatchTurns loop;
  LaneLoader loader;  // of a split device
  ModelHost host;
  std::optional<LaneLayout> layout;
  LaneReviver reviver;
  LaneReviver restorer;  // of models that a lane came back without
  RunWatch watch;
  std::unique_ptr<ModelRepository> repository;
};

Runtime::Runtime(RuntimeOptions options, RuntimeParts parts) {
  CHECK(options.lanes > 0 && options.devices > 0 && options.slots > 0 && options.threads > 0,
        "a runtime needs a lane, a slot in it and a thread");
  CHECK(parts.policy != nullptr && parts.engine_for, "a runtime needs a policy and engines");
  body_ = std::make_unique<Body>(options, std::move(parts));
}

Runtime::~Runtime() { Stop(Duration{}); }

Status Runtime::Start(RepositoryOptions repository) {
  CHECK(body_->repository == nullptr, "a runtime starts once");
  body_->repository =
      std::make_unique<ModelRepository>(std::move(repository), body_->options.unload_grace,
                                        body_->host, body_->parts.log, body_->parts.news);
  body_->reviver.Start();
  body_->restorer.Start();
  body_->replies.Start();
  body_->loop.Start();
  if (body_->layout) body_->layout->Start();
  body_->watch.Start();
  body_->accepting.store(true);
  return body_->repository->Open();
}

void Runtime::Start() {
  const Status started = Start(RepositoryOptions{.control = ModelControl::kExplicit});
  CHECK(started.has_value(), "an empty repository can always be read");
}

Status Runtime::Serve(ModelSpec spec) { return body_->repository->Serve(std::move(spec)); }

Status Runtime::Adopt(const Plan& plan, const std::vector<std::string>& models) {
  if (body_->layout) return body_->layout->Adopt(plan, models);
  return Fail(ErrorCode::kUnimplemented, "lanes that were set at the start follow no plan");
}

void Runtime::EndChanges() {
  if (body_->layout) body_->layout->EndChanges();
}

DeviceLayout Runtime::layout() const {
  return body_->layout ? body_->layout->layout() : DeviceLayout{};
}

Expected<PlanQuestion> Runtime::CurrentPlanQuestion() const {
  if (!body_->layout) {
    return Fail(ErrorCode::kUnimplemented, "lanes that were set at the start follow no plan");
  }
  const auto served = body_->host.served();
  std::vector<LoadedModel> models;
  for (const auto& each : served) models.push_back({each->model, each->spec});
  return MakePlanQuestion(models, *body_->options.split, body_->parts.profile_options);
}

Status Runtime::ReviveLane(LaneId lane) { return body_->Revive(lane); }

void Runtime::LaneDied(LaneId lane, const Error& why) {
  if (body_->loop.LoseIdle(lane)) body_->reviver.Lost(lane, why);
}

void Runtime::SetLaneSilent(LaneId lane, bool silent) {
  if (body_->loop.SetSilent(lane, silent) == silent || !body_->parts.log) return;
  body_->parts.log(
      silent ? fmt::format("lane {}: the engine's process gives no sign of life; no batch goes "
                           "there until it does or is replaced",
                           lane.value())
             : fmt::format("lane {}: the engine's process gives signs of life", lane.value()));
}

void Runtime::Nudge() { body_->loop.Nudge(); }

void Runtime::Abandon() {
  if (body_->repository == nullptr || body_->stopped.load()) return;
  body_->accepting.store(false);
  body_->reviver.Close();
  body_->restorer.Close();
  body_->host.RefuseAll();
  if (body_->calls.load() > 0) body_->loop.AbandonRunning();
  body_->host.AbandonEngines();
}

void Runtime::Stop(Duration grace) {
  const std::lock_guard once(body_->stop_mutex);
  if (body_->repository == nullptr || body_->stopped.load()) return;
  body_->accepting.store(false);
  const TimePoint end = body_->clock.Now() + grace;
  while (body_->calls.load() > 0 && body_->clock.Now() < end) {
    std::this_thread::sleep_for(kIdlePause);
  }
  Abandon();
  body_->reviver.Stop();
  body_->restorer.Stop();
  body_->watch.Stop();
  if (body_->layout) body_->layout->Stop();
  body_->repository->Close();
  Abandon();  // what was loaded meanwhile
  while (body_->calls.load() > 0) std::this_thread::sleep_for(kIdlePause);
  body_->repository->RetireAll();
  body_->loop.Stop();
  body_->replies.Stop();
  body_->thoughts.Stop();
  body_->stopped.store(true);
}

Expected<std::shared_ptr<const ModelSpec>> Runtime::Find(std::string_view model,
                                                         std::int64_t version) const {
  return body_->repository->Find(model, version);
}

CallId Runtime::Body::Infer(InferCall&& call) {
  // Counted before `accepting` is read: Stop clears it first and then waits for the count.
  calls.fetch_add(1);
  if (!accepting.load()) {
    // Triton's words: clients look for them.
    return Refuse(call, ErrorCode::kUnavailable,
                  "Server is stopping, scheduler for model has stopped accepting new "
                  "inference requests");
  }
  // Whatever --expiry says: it would be the most urgent of all, and nobody waits for it.
  if (call.limit.IsOver(std::max(clock.Now() - clock.At(call.received), Duration{}))) {
    return Refuse(call, ErrorCode::kDeadlineExceeded,
                  "the deadline had passed when the request arrived");
  }
  if (LacksMemory()) {
    return Refuse(call, ErrorCode::kResourceExhausted, kNoMemory);
  }
  std::shared_ptr<ServedModel> model = repository->Acquire(call.model.get());
  if (model == nullptr) {  // since Find
    if (call.model != nullptr) model = repository->AcquireInstead(*call.model);
    if (model == nullptr) {
      return Refuse(call, ErrorCode::kUnavailable, "the model was unloaded just now");
    }
    call.model = {model, &model->spec};
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      call.inputs[i].name = call.model->inputs[i].name;
    }
  }
  PendingCall* pending = slab.Acquire(InputBytes(call), call.begun);
  if (pending == nullptr) {
    model->outstanding.fetch_sub(1, std::memory_order_release);
    return Refuse(call, ErrorCode::kResourceExhausted,
                  fmt::format("the server is full: it holds at most {} calls (--call-capacity) and "
                              "{} bytes of inputs and answers (--pending-mb)",
                              options.call_capacity, options.pending_bytes));
  }
  pending->call = std::move(call);
  pending->model = std::move(model);
  if (Status filled = FillRows(*pending); !filled) {
    InferCall refused = std::move(pending->call);
    pending->model->outstanding.fetch_sub(1, std::memory_order_release);
    slab.Release(*pending);
    return Refuse(refused, filled.error().code, filled.error().message);
  }
  pending->model->counters.offered.fetch_add(pending->rows.size(), std::memory_order_relaxed);
  pending->received = clock.At(pending->call.received);
  const Duration slo = pending->call.due_by_limit ? TimeLimit::kLongest : pending->model->model.slo;
  pending->deadline = DeadlineOf(pending->received, slo, pending->call.limit, pending->call.way);
  if (pending->call.granted && parts.place_granted) {
    const RowsPlace place = parts.place_granted(*pending->call.granted, pending->deadline);
    if (place.group != 0) pending->shape_class = place.group;
    pending->deadline = place.deadline;
  }
  const CallId id = pending->id();
  loop.Submit(*pending);
  return id;
}

CallId Runtime::Infer(InferCall&& call) { return body_->Infer(std::move(call)); }

void Runtime::Cancel(CallId call) { body_->loop.Cancel(call); }

bool Runtime::Live() const { return body_->repository != nullptr && !body_->stopped.load(); }

bool Runtime::Ready() const {
  const bool models = !body_->options.strict_readiness || body_->repository->Ready();
  return body_->accepting.load() && models && !body_->loop.AllHeld() && !body_->LacksMemory() &&
         !SharingFamine::Lasts();
}

Status Runtime::ModelReady(std::string_view model, std::int64_t version) const {
  Status loaded = body_->repository->ModelReady(model, version);
  if (!loaded) return loaded;
  if (body_->LacksMemory()) return Fail(ErrorCode::kResourceExhausted, kNoMemory);
  if (SharingFamine::Lasts()) {
    return Fail(ErrorCode::kResourceExhausted,
                "the system gives no memory to share with engines' processes (ulimit -n, -f, -v)");
  }
  if (!body_->loop.AllHeld()) return loaded;
  return Fail(ErrorCode::kUnavailable,
              fmt::format("model '{}': no lane runs batches for now: each is held by a run that "
                          "takes far longer than its profile, or its engine is dead or gives no "
                          "sign of life",
                          model));
}

std::vector<ModelState> Runtime::Index() const { return body_->repository->Index(); }

Status Runtime::Load(const std::string& model, const std::string& config) {
  return body_->repository->Load(model, config);
}

Status Runtime::Unload(const std::string& model) { return body_->repository->Unload(model); }

Expected<std::vector<ModelStatistics>> Runtime::Statistics(std::string_view model,
                                                           std::int64_t version) const {
  return body_->repository->Statistics(model, version);
}

std::size_t Runtime::pending() const { return body_->loop.pending(); }

std::size_t Runtime::calls() const {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, body_->calls.load()));
}

std::size_t Runtime::input_bytes() const { return body_->slab.input_bytes(); }

std::size_t Runtime::answer_bytes() const { return body_->slab.answers()->load(); }

Duration Runtime::uptime() const { return body_->clock.Now() - kStart; }

TimePoint Runtime::At(std::chrono::steady_clock::time_point real) const {
  return body_->clock.At(real);
}

std::vector<LaneLoad> Runtime::lane_loads() const {
  std::vector<LaneLoad> loads(body_->loop.lanes());
  const auto& workers = body_->loop.workers();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    LaneLoad& load = loads[body_->loop.lane_of(i).value()];
    load.busy += workers[i]->busy();
    load.batches += workers[i]->batches();
  }
  for (std::size_t lane = 0; lane < loads.size(); ++lane) {
    const auto stuck = body_->loop.stuck(LaneId{static_cast<LaneId::rep>(lane)});
    loads[lane].stuck_runs = stuck.runs;
    loads[lane].stuck = stuck.now;
    loads[lane].held = stuck.held;
    loads[lane].deaths = stuck.deaths;
  }
  return loads;
}

std::map<std::string, std::uint64_t> Runtime::offered() const {
  std::map<std::string, std::uint64_t> offered;
  for (const auto& model : body_->host.served()) {
    offered[model->spec.name] += model->counters.offered.load(std::memory_order_relaxed);
  }
  return offered;
}

std::shared_ptr<const ServedModels> Runtime::served_models() const {
  return body_->host.served_models();
}

}  // namespace tactus
