#include "sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "service/deadline.h"
#include "sim/devices/machine_drift.h"
#include "sim/devices/shared_devices.h"
#include "sim/devices/sim_device.h"
#include "sim/world/callers.h"
#include "sim/world/event_heap.h"
#include "sim/world/expected_requests.h"
#include "sim/world/front.h"
#include "sim/world/lane_scaler.h"
#include "sim/world/pipeline_requests.h"
#include "sim/world/plan_executor.h"
#include "sim/world/planning.h"
#include "sim/world/scenario_lanes.h"
#include "workload/pipelines.h"

namespace tactus {
namespace {

// How often somebody is told how far a run is, in questions to the dispatcher.
constexpr std::uint64_t kStepsBetweenTold = 1 << 14;

// One run: the world around a dispatcher.
class World final : public Outbox, public PipelineWorld {
 public:
  World(const Scenario& scenario, const ProfileFile& selected,
        std::shared_ptr<const ServedModels> served_models, std::vector<Pipeline> pipelines,
        std::vector<std::unique_ptr<Arrivals>> arrivals, std::vector<LaneSpec> lanes,
        std::unique_ptr<PlanExecutor> executor, Policy& policy, const SimulationOptions& options)
      : end_(kStart + FromSeconds(scenario.duration_s)),
        last_chance_(end_ + options.drain),
        decision_cost_(policy.traits().decision_cost.launch.value_or(
            FromMillis(scenario.decision_cost_us * 1e-3))),
        candidate_cost_(policy.traits().decision_cost.candidate.value_or(
            FromMillis(scenario.candidate_cost_us * 1e-3))),
        launch_overhead_(FromMillis(selected.launch_overhead_ms)),
        finish_overhead_(FromMillis(selected.finish_overhead_ms)),
        answer_overhead_(FromMillis(selected.answer_overhead_ms)),
        served_models_(std::move(served_models)),
        arrivals_(std::move(arrivals)),
        recorded_(options.recorded),
        callers_(scenario),
        front_(scenario),
        policy_(policy),
        executor_(std::move(executor)),
        planning_(options.plan != nullptr || executor_ != nullptr
                      ? std::nullopt
                      : Planning::For(policy.traits().planner, scenario, *served_models_)),
        device_(selected, scenario.seed, options.noise),
        drift_(scenario),
        tail_(scenario.tail),
        recorder_(RoomFor(scenario)),
        heap_(served_models_->models.size() + 2 * lanes.size() * scenario.slots),
        shared_(scenario, served_models_->models, lanes, policy.traits().suspends, heap_),
        in_shares_(!scenario.plan_shares.empty()),
        whole_(static_cast<LaneClass::rep>(scenario.plan_shares.size())),
        slots_per_lane_(scenario.slots),
        speeds_(SpeedsOf(scenario, lanes.size())),
        running_(lanes.size() * scenario.slots),
        lanes_(TotalsOf(scenario, lanes)),
        dead_since_(lanes.size(), kNever),
        scale_interval_(FromSeconds(scenario.scale_interval_s)),
        scaler_(MakeScaler(scenario)),
        tell_(options.on_progress),
        expected_(static_cast<std::size_t>(ExpectedRequests(scenario))),
        dispatcher_(MakeDispatcherOptions(scenario), std::move(lanes), policy, *this,
                    options.journal) {
    dispatcher_.Configure(served_models_);
    if (!pipelines.empty()) {
      pipeline_requests_.emplace(std::move(pipelines), RowDraw(scenario), *this, heap_);
    }
    if (planning_) dispatcher_.Adopt(planning_->First());
    if (executor_ != nullptr) {
      executor_->Start(dispatcher_, heap_);
    } else if (options.plan != nullptr) {
      dispatcher_.Adopt(options.plan);
    }
    for (const LaneFault& fault : scenario.lane_faults) {
      const auto lane = static_cast<std::uint32_t>(fault.lane);
      heap_.Push(kStart + FromSeconds(fault.at_s), EventClass::kLaneLost, lane);
      if (fault.back_s == 0) continue;
      heap_.Push(kStart + FromSeconds(fault.back_s), EventClass::kLaneBack, lane);
    }
    if (scale_interval_ == Duration{}) return;
    SetOpenLanes(static_cast<int>(lanes_.size()), scaler_.open());
    heap_.Push(kStart, EventClass::kAutoscale, 0);
  }

  bool Run() {  // false: `tell_` ended it
    for (std::size_t m = 0; m < arrivals_.size(); ++m) PushArrival(m);
    TimePoint wake = kNever;
    TimePoint next_plan = planning_ ? kStart + policy_.traits().epoch : kNever;
    for (;;) {
      now_ = std::min(heap_.NextAt(), wake);
      if (now_ >= next_plan && next_plan < end_) {
        dispatcher_.Adopt(planning_->Next(policy_.traits().epoch));
        next_plan += policy_.traits().epoch;
      }
      if (now_ >= last_chance_ && dispatcher_.waiting() > 0) GiveUp();
      if (now_ == kNever) return true;
      while (heap_.NextAt() == now_) Take();
      if (pipeline_requests_) pipeline_requests_->Settle(now_);
      // A dispatcher that is still busy deciding looks again when it is done.
      if (now_ < decided_) {
        wake = decided_;
        continue;
      }
      wake = dispatcher_.Step(now_);
      ChargeCandidates();
      const bool tell = ++steps_ % kStepsBetweenTold == 0 && tell_;
      if (tell && !tell_(recorder_.records().size(), expected_)) return false;
      // What was cancelled for it may change what is best.
      if (pipeline_requests_ && pipeline_requests_->Settle(now_)) wake = now_;
    }
  }

  SimulationResult Result(const Scenario& scenario) && {
    SimulationResult result;
    result.models = served_models_->models;
    result.records = std::move(recorder_).Take();
    if (pipeline_requests_) {
      result.pipeline_requests = (*std::move(pipeline_requests_)).Take(last_);
    }
    if (scale_interval_ > Duration{}) {
      CountClosed(std::max(last_, end_));
      result.scaling = scaler_.history();
    }
    if (executor_ != nullptr) result.layout = executor_->history();
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
      BringBack(lane, std::max(last_, end_));
    result.lanes = std::move(lanes_);
    result.begin = kStart + FromSeconds(scenario.warmup_s);
    result.end = end_;
    result.skip = scenario.warmup_requests;
    result.last = last_;
    result.steps = steps_;
    return result;
  }

  void Launch(const Batch& batch) override {
    // Decisions follow one another on one thread: the third of an instant starts three costs later.
    ChargeCandidates();
    decided_ = std::max(decided_, now_) + decision_cost_;
    const std::size_t lane_slot = FreeSlot(batch.lane);
    Running& running = running_[lane_slot];
    running.id = batch.id;
    running.used = true;
    running.report = {};
    running.report.started = decided_ + launch_overhead_;
    const double speed = SpeedOf(batch);
    const Duration drawn = AtSpeed(
        speed, device_.Draw(batch.model, batch.exit, static_cast<int>(batch.requests.size()),
                            running.report.started));
    const Duration alone = front_.Stretched(drift_.Stretched(running.report.started, drawn), now_);
    if (!shared_.empty()) return Share(batch, lane_slot, alone, speed);
    running.report.ended = drift_.End(running.report.started, alone);
    running.event = heap_.Push(running.report.ended + finish_overhead_, EventClass::kFinish,
                               static_cast<std::uint32_t>(lane_slot));
  }

  void Abort(LaneId lane, BatchId batch) override {
    for (int s = 0; s < slots_per_lane_; ++s) {
      const std::size_t lane_slot = static_cast<std::size_t>(lane.value()) * slots_per_lane_ + s;
      Running& running = running_[lane_slot];
      if (!running.used || running.id != batch) continue;
      if (running.report.ended <= now_) return;  // it ended; its report is on the way
      if (!shared_.empty()) shared_.Stop(lane_slot, now_);
      running.report.status = BatchStatus::kAborted;
      running.report.started = std::min(running.report.started, now_);
      running.report.ended = now_;
      // Not at this very instant, whose events are done. The old event stays behind as a shell.
      running.event = heap_.Push(now_ + std::max(finish_overhead_, Nanos(1)), EventClass::kFinish,
                                 static_cast<std::uint32_t>(lane_slot));
    }
  }

  void Reject(ModelId model, const Request& request, DropReason reason) override {
    if (reason != DropReason::kCancelled) CountEnd(false);
    if (request.payload != 0) {
      recorder_.Reject(model, request, reason, now_);
      pipeline_requests_->Refused(request, reason, now_);
    } else {
      const Told told = Tell(model, request, false, now_);
      recorder_.Reject(model, told.request, reason, told.at);
      callers_.Ended(model.value(), false, told.at, heap_);
    }
    last_ = now_;
  }

  void Complete(const Batch& batch, const BatchReport& report) override {
    const TimePoint answered = now_ + answer_overhead_;
    last_ = answered;
    for (const Request& request : batch.requests) {
      if (request.payload != 0) {
        recorder_.Complete(batch, report, request, answered);
        CountEnd(answered <= request.deadline);
        pipeline_requests_->Answered(request, answered);
        continue;
      }
      const Told told = Tell(batch.model, request, true, answered);
      recorder_.Complete(batch, report, told.request, told.at);
      CountEnd(told.at <= told.request.deadline);
      callers_.Ended(batch.model.value(), true, told.at, heap_);
      last_ = told.at;
    }
  }

 private:
  static constexpr std::uint64_t kNoEvent = ~std::uint64_t{0};
  struct Running {
    BatchId id;
    BatchReport report;
    std::uint64_t event = 0;
    bool used = false;
  };

  static Duration AtSpeed(double speed, Duration latency) {
    if (speed == 1) return latency;
    return std::max(Duration{std::llround(static_cast<double>(latency.count()) / speed)}, Nanos(1));
  }

  // Of the lane, and on a part of a device by what the profile says of that part.
  double SpeedOf(const Batch& batch) const {
    const double speed = speeds_[batch.lane.value()];
    const LaneClass lane_class = dispatcher_.view().lanes[batch.lane.value()].lane_class;
    if (!in_shares_ || lane_class == whole_) return speed;
    const auto latency = [&](LaneClass c) {
      return ToSeconds(served_models_->profile.Latency(batch.model, batch.exit,
                                                       static_cast<int>(batch.requests.size()), c));
    };
    return speed * latency(whole_) / latency(lane_class);
  }

  // Its device says when it ends, for nobody can tell before its neighbours are known. What takes
  // longer on a part of the device asks for so much less of it at a time.
  void Share(const Batch& batch, std::size_t lane_slot, Duration alone, double speed) {
    ResourceUse use = device_.Use(batch.model, batch.exit, static_cast<int>(batch.requests.size()));
    for (double& part : use.throughput) part *= speed;
    SharedWork work;
    work.transfer = std::min(use.transfer, alone - Nanos(1));
    work.kernel = alone - work.transfer;
    work.contender = {.use = use.throughput, .luck = device_.DrawLuck(batch.model, tail_)};
    work.priority = served_models_->models[batch.model.value()].priority;
    Running& running = running_[lane_slot];
    running.event = kNoEvent;
    running.report.ended = kNever;
    shared_.Begin(lane_slot, now_, running.report.started, work);
  }

  void TakeChange(const Event& change) {
    while (const auto ended = shared_.Take(change, now_)) {
      Running& running = running_[ended->lane_slot];
      running.report.upload = ended->uploaded - running.report.started;
      running.report.ended = now_;
      running.event = heap_.Push(now_ + finish_overhead_, EventClass::kFinish,
                                 static_cast<std::uint32_t>(ended->lane_slot));
    }
  }

  static std::size_t RoomFor(const Scenario& scenario) {
    constexpr double kMost = 1 << 24;  // beyond it the recorder grows as it goes
    return static_cast<std::size_t>(std::min(kMost, 1.1 * ExpectedRequests(scenario) + 1024));
  }

  void CountEnd(bool in_time) {
    ++(in_time ? totals_.good : totals_.bad);
    if (executor_ != nullptr) executor_->Ended(in_time);
  }

  // For what the policy looked at since the last time.
  void ChargeCandidates() {
    if (candidate_cost_ == Duration{}) return;
    const std::uint64_t examined = policy_.examined();
    if (examined == charged_) return;
    decided_ =
        std::max(decided_, now_) + static_cast<std::int64_t>(examined - charged_) * candidate_cost_;
    charged_ = examined;
  }

  RequestId NextRequest() override { return RequestId{next_request_++}; }

  void Send(ModelId model, const Request& request) override {
    if (planning_) planning_->Count(model);
    if (executor_ != nullptr) executor_->Arrived(model);
    dispatcher_.Arrive(model, request);
  }

  void Cancel(ModelId model, RequestId request) override { dispatcher_.Cancel(model, request); }

  TimePoint PipelineEnded(std::uint32_t pipeline, std::uint32_t call, bool answered,
                          TimePoint at) override {
    const std::uint32_t source = models() + pipeline;
    if (front_.costs()) {
      EndCall(call, answered, at);
      at = answered ? front_.Answer(at) : front_.Refuse(source, true, SloOf(source), at);
    }
    callers_.Ended(source, answered, at, heap_);
    return at;
  }

  std::uint32_t models() const { return static_cast<std::uint32_t>(served_models_->models.size()); }

  Duration SloOf(ModelId model) const { return served_models_->models[model.value()].slo; }

  Duration SloOf(std::uint32_t source) const {
    return source < models() ? SloOf(ModelId{source}) : pipeline_requests_->slo(source - models());
  }

  // A client's call, from when it is sent to its end, where the front costs.
  struct Call {
    std::uint32_t source = 0;  // as of an arrival
    TimePoint sent;
    Front::Read read;
  };

  // A call has come, and the server reads it.
  void Read(std::uint32_t source) {
    if (free_calls_.empty()) {
      free_calls_.push_back(static_cast<std::uint32_t>(calls_.size()));
      calls_.emplace_back();
    }
    const std::uint32_t place = free_calls_.back();
    free_calls_.pop_back();
    calls_[place] = {source, now_, front_.Take(source, SloOf(source), now_)};
    heap_.Push(calls_[place].read.done, EventClass::kRead, place);
  }

  void BeginCall(std::uint32_t place) {
    const Call& call = calls_[place];
    Begin(call.source, call.sent, call.read.begun, place);
  }

  // `begun`: when the server saw its header; `call`: its place in calls_.
  void Begin(std::uint32_t source, TimePoint sent, TimePoint begun, std::uint32_t call) {
    const TimePoint deadline = DeadlineOf(begun, SloOf(source), {}, front_.BothWays());
    if (source >= models()) {
      return pipeline_requests_->Arrive(source - models(), sent, deadline, now_, call);
    }
    const RequestId id = NextRequest();
    if (front_.costs()) {
      call_of_.resize(id.value() + 1);
      call_of_.back() = call;
    }
    Send(ModelId{source}, {.id = id, .arrival = begun, .deadline = deadline});
  }

  // By its header.
  void Refuse(std::uint32_t place) {
    const Call call = calls_[place];
    free_calls_.push_back(place);
    CountEnd(false);
    const TimePoint told = front_.Refuse(call.source, false, SloOf(call.source), now_);
    if (call.source < models()) {
      const Request request{.arrival = call.sent, .deadline = call.sent + SloOf(call.source)};
      recorder_.Reject(ModelId{call.source}, request, DropReason::kShed, told);
    } else {
      pipeline_requests_->RefuseUnread(call.source - models(), call.sent, told);
    }
    callers_.Ended(call.source, false, told, heap_);
  }

  // A call of the front has its answer, or its refusal; it is not there from now on.
  Call EndCall(std::uint32_t place, bool answered, TimePoint at) {
    const Call call = calls_[place];
    if (call.read.place) front_.Leave(call.source, *call.read.place, answered, at);
    free_calls_.push_back(place);
    return call;
  }

  // The end of a client's request, at `at` as the server has it; as the client has it.
  struct Told {
    Request request;
    TimePoint at;
  };
  Told Tell(ModelId model, const Request& request, bool answered, TimePoint at) {
    if (!front_.costs()) return {request, at};
    const Call call = EndCall(call_of_[request.id.value()], answered, at);
    Told told{request,
              answered ? front_.Answer(at) : front_.Refuse(model.value(), true, SloOf(model), at)};
    told.request.arrival = call.sent;
    told.request.deadline = call.sent + SloOf(model);
    return told;
  }

  void Arrive(std::uint32_t source) {
    if (!recorded_.empty()) Send(ModelId{source}, recorded_.Next(source, NextRequest()));
    if (recorded_.empty()) front_.costs() ? Read(source) : Begin(source, now_, now_, 0);
    PushArrival(source);
  }

  // Of a model's requests or, behind the models, of a pipeline's.
  void PushArrival(std::size_t source) {
    const TimePoint at = arrivals_[source]->Next();
    if (at < end_) heap_.Push(at, EventClass::kArrival, static_cast<std::uint32_t>(source));
  }

  void Take() {
    const Event event = heap_.top();
    heap_.Pop();
    if (event.kind == EventClass::kArrival) return Arrive(event.subject);
    if (event.kind == EventClass::kRead) {
      return calls_[event.subject].read.unread ? Refuse(event.subject) : BeginCall(event.subject);
    }
    if (event.kind == EventClass::kStage) return pipeline_requests_->Start(event.subject, now_);
    if (event.kind == EventClass::kDevice) return TakeChange(event);
    if (event.kind == EventClass::kLaneLost) return Lose(LaneId{event.subject});
    if (event.kind == EventClass::kLaneBack) {
      BringBack(event.subject, now_);
      return dispatcher_.SetLaneOpen(LaneId{event.subject}, true);
    }
    if (event.kind == EventClass::kAutoscale) return Autoscale();
    if (event.kind == EventClass::kReplan) return executor_->Replan(now_, end_);
    if (event.kind == EventClass::kLanePrepared) {
      return executor_->Prepared(LaneId{event.subject}, now_);
    }
    if (event.kind == EventClass::kLaneReady) {
      const int before = scaler_.open();
      TakeTotals();
      scaler_.Ready(totals_);
      return SetOpenLanes(before, scaler_.open());
    }
    Running& running = running_[event.subject];
    if (!running.used || running.event != event.sequence) return;  // a shell: it was aborted
    const LaneId lane{static_cast<LaneId::rep>(event.subject / slots_per_lane_)};
    Finish(lane, running);
    if (executor_ != nullptr) executor_->Finished(lane, now_);
  }

  void Finish(LaneId lane, Running& running) {
    running.used = false;
    lanes_[lane.value()].busy += running.report.ended - running.report.started;
    totals_.busy += running.report.ended - running.report.started;
    ++lanes_[lane.value()].batches;
    dispatcher_.Finish(lane, running.id, running.report, now_);
  }

  // What has ended is reported all the same; what runs is lost with the lane.
  void Lose(LaneId lane) {
    for (int s = 0; s < slots_per_lane_; ++s) {
      const std::size_t lane_slot = static_cast<std::size_t>(lane.value()) * slots_per_lane_ + s;
      Running& running = running_[lane_slot];
      if (!running.used || running.report.ended <= now_) continue;
      if (!shared_.empty()) shared_.Stop(lane_slot, now_);
      running.event = kNoEvent;
      running.report.started = std::min(running.report.started, now_);
      running.report.ended = now_;
      running.report.status = BatchStatus::kLost;
      Finish(lane, running);
    }
    dispatcher_.SetLaneOpen(lane, false);
    dead_since_[lane.value()] = std::min(dead_since_[lane.value()], now_);
  }

  void BringBack(std::uint32_t lane, TimePoint at) {
    if (dead_since_[lane] == kNever) return;
    lanes_[lane].closed += at - std::exchange(dead_since_[lane], kNever);
  }

  void Autoscale() {
    TakeTotals();
    const int before = scaler_.open();
    const int asked = scaler_.Advise(now_, totals_);
    for (int i = 0; i < asked; ++i) {
      heap_.Push(now_ + scaler_.start_delay(), EventClass::kLaneReady, 0);
    }
    SetOpenLanes(before, scaler_.open());
    if (now_ + scale_interval_ < end_)
      heap_.Push(now_ + scale_interval_, EventClass::kAutoscale, 0);
  }

  // What the scaler reads.
  void TakeTotals() {
    CountClosed(now_);
    totals_.at = now_;
    totals_.batches.clear();
    for (const LaneTotals& lane : lanes_) totals_.batches.push_back(lane.batches);
  }

  // Lanes [0, open) take batches.
  void SetOpenLanes(int before, int open) {
    CountClosed(now_);
    for (int lane = before; lane < open; ++lane) {
      dispatcher_.SetLaneOpen(LaneId{static_cast<LaneId::rep>(lane)}, true);
    }
    for (int lane = open; lane < before; ++lane) {
      dispatcher_.SetLaneOpen(LaneId{static_cast<LaneId::rep>(lane)}, false);
    }
    open_ = open;
  }

  // Books the time since the last change of the open lanes.
  void CountClosed(TimePoint until) {
    const Duration span = until - counted_;
    counted_ = until;
    totals_.available += span * open_;
    for (std::size_t lane = open_; lane < lanes_.size(); ++lane) lanes_[lane].closed += span;
  }

  // Nobody will serve what still waits: unload everything, which ends it as shed.
  void GiveUp() {
    now_ = std::min(now_, last_chance_);
    auto nothing = std::make_shared<ServedModels>(*served_models_);
    for (Model& model : nothing->models) model.loaded = false;
    dispatcher_.Configure(std::move(nothing));
    now_ = heap_.NextAt();
  }

  std::size_t FreeSlot(LaneId lane) const {
    std::size_t lane_slot = static_cast<std::size_t>(lane.value()) * slots_per_lane_;
    while (running_[lane_slot].used) ++lane_slot;
    return lane_slot;
  }

  const TimePoint end_;
  const TimePoint last_chance_;
  const Duration decision_cost_;
  const Duration candidate_cost_;
  const Duration launch_overhead_;
  const Duration finish_overhead_;
  const Duration answer_overhead_;
  const std::shared_ptr<const ServedModels> served_models_;
  std::vector<std::unique_ptr<Arrivals>> arrivals_;
  RecordedTurns recorded_;
  Callers callers_;
  Front front_;
  std::vector<Call> calls_;
  std::vector<std::uint32_t> free_calls_;  // places in calls_
  std::vector<std::uint32_t> call_of_;     // by RequestId, where the front costs: place in calls_
  Policy& policy_;
  const std::unique_ptr<PlanExecutor> executor_;  // null: lanes stay what they are
  std::optional<Planning> planning_;
  SimDevice device_;
  const MachineDrift drift_;
  const double tail_;
  Recorder recorder_;
  EventHeap heap_;
  SharedDevices shared_;                               // empty without contention
  std::optional<PipelineRequests> pipeline_requests_;  // where there are pipelines
  const bool in_shares_;
  const LaneClass whole_;  // where devices are split
  const int slots_per_lane_;
  const std::vector<double> speeds_;  // by LaneId
  std::vector<Running> running_;      // lane by lane, `slots_per_lane_` each
  std::vector<LaneTotals> lanes_;
  std::vector<TimePoint> dead_since_;  // by LaneId; kNever: it lives
  const Duration scale_interval_;      // 0: lanes stay
  LaneScaler scaler_;
  ServiceTotals totals_;
  int open_ = 0;
  TimePoint counted_ = kStart;
  TimePoint now_ = kStart;
  TimePoint decided_ = kStart;  // until then the dispatcher's thread is busy
  TimePoint last_ = kStart;
  std::uint64_t next_request_ = 0;
  std::uint64_t steps_ = 0;
  const SimulationProgress tell_;  // how far it is; may be empty
  const std::size_t expected_;
  std::uint64_t charged_ = 0;  // of policy_.examined()
  Dispatcher dispatcher_;
};

}  // namespace

Expected<SimulationResult> Simulate(const Scenario& scenario, const ProfileFile& profile,
                                    Policy& policy, const SimulationOptions& options) {
  if (Status fits = CheckRequests(scenario, kMostSimulatedRequests); !fits) {
    return std::unexpected(fits.error());
  }
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  const ProfileFile& known = options.counted_on != nullptr ? *options.counted_on : profile;
  auto served_models = MakeServedModels(scenario, known, options.on_share);
  if (!served_models) return std::unexpected(served_models.error());
  auto arrivals = RecordedOr(scenario, options.recorded);
  if (!arrivals) return std::unexpected(arrivals.error());
  auto pipelines = MakePipelines(scenario, *selected);
  if (!pipelines) return std::unexpected(pipelines.error());
  const auto can = CheckPlanning(scenario, **served_models, MakeLanes(scenario), policy, options);
  if (!can) return std::unexpected(can.error());
  std::unique_ptr<PlanExecutor> executor;
  if (!policy.traits().planner.empty()) {
    auto made = PlanExecutor::For(scenario, profile, options);
    if (!made) return std::unexpected(made.error());
    executor = std::move(*made);
  }
  World world(scenario, *selected, std::move(*served_models), std::move(*pipelines),
              std::move(*arrivals), SimulatedLanes(scenario, policy, options.plan.get()),
              std::move(executor), policy, options);
  if (!world.Run()) return Fail(ErrorCode::kCancelled, "the simulation was given up");
  return std::move(world).Result(scenario);
}

}  // namespace tactus
