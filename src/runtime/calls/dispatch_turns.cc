#include "runtime/calls/dispatch_turns.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "core/learner.h"
#include "core/prediction_errors.h"
#include "platform/cpu_affinity.h"
#include "runtime/calls/stuck_runs.h"

namespace tactus {
namespace {

// Messages taken in one turn, so that a flood of arrivals does not keep a free lane waiting.
constexpr int kMessagesPerTurn = 128;
// Turns that a front end's or a lane's thread takes in a row. Then the dispatcher's own thread,
// which has nothing else to do, takes over.
constexpr int kBorrowedTurns = 8;
constexpr int kOwnTurns = std::numeric_limits<int>::max();
// A front end runs a batch itself if waking the lane's thread and being woken by it would take
// longer; so many in a row, and it answers so many calls of others.
constexpr Duration kHandOver = Micros(20);
constexpr int kBorrowedRuns = 64;
constexpr int kBorrowedAnswers = 64;

// Aligned like the section behind it: mold 1.10 else writes, once in some hundred sizes, a program
// whose read-only part begins on a page that is not there.
alignas(8) thread_local bool in_turn = false;

std::size_t SlotsOf(const std::vector<LaneSpec>& lanes) {
  std::size_t slots = 0;
  for (const LaneSpec& lane : lanes) slots += static_cast<std::size_t>(lane.slots);
  return slots;
}

}  // namespace

DispatchTurns::DispatchTurns(Options options, const WallClock& clock, Policy& policy,
                             Journal* journal, PayloadSlab& slab, ReplyQueue& replies)
    : options_(std::move(options)),
      clock_(clock),
      slab_(slab),
      replies_(replies),
      predictions_(PredictionErrorsOf(policy)),
      dispatcher_(options_.dispatcher, options_.lanes, policy, *this, journal),
      messages_(2 * slab.capacity() + 64),
      finished_(SlotsOf(options_.lanes)) {
  for (std::size_t lane = 0; lane < options_.lanes.size(); ++lane) {
    const LaneId id{static_cast<LaneId::rep>(lane)};
    first_worker_.push_back(workers_.size());
    for (int slot = 0; slot < options_.lanes[lane].slots; ++slot) {
      workers_.push_back(std::make_unique<LaneWorker>(
          LaneWorkerOptions{id, slot, CoresOf(options_.lanes[lane].placement), options_.spin,
                            options_.dispatcher.expiry != Expiry::kNever, slab.answers()},
          clock_, static_cast<LaneWorker::Listener&>(*this)));
      lane_of_.push_back(id);
    }
  }
  first_worker_.push_back(workers_.size());
  stuck_lanes_.resize(options_.lanes.size());
}

DispatchTurns::~DispatchTurns() { Stop(); }

void DispatchTurns::Start() {
  thread_ = std::thread([this] { Run(); });
}

void DispatchTurns::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  bell_.Ring();
  thread_.join();
  AwaitHeld();
  for (auto& worker : workers_) worker->Stop();
}

void DispatchTurns::Submit(PendingCall& pending) {
  const Message message{Message::Kind::kArrive, pending.index, pending.generation};
  // The ring holds an arrival and a cancellation of every call, and no turn waits for a front end,
  // so a full ring empties.
  const bool held = HeldTurns::Hold(*this);
  while (!messages_.TryPush(message)) std::this_thread::yield();
  if (!held) TakeTurns();
}

void DispatchTurns::Cancel(CallId call) {
  const auto index = static_cast<std::uint32_t>(call);
  const auto generation = static_cast<std::uint32_t>(call >> 32);
  if (index >= slab_.capacity() || generation == 0) return;
  PendingCall& pending = slab_.at(index);
  if (pending.cancelled_generation.exchange(generation, std::memory_order_relaxed) == generation) {
    return;  // asked before
  }
  while (!messages_.TryPush(Message{Message::Kind::kCancel, index, generation})) {
    if (stop_.load(std::memory_order_acquire)) return;
    std::this_thread::yield();
  }
  HandOver();  // where a client's leaving is noticed is no place for work
}

void DispatchTurns::TakeTurns() {
  LaneWorker* here = nullptr;
  bool looked = Look(kBorrowedTurns, &here);
  for (int runs = 1; here != nullptr; ++runs) {
    here->RunHere();
    CHECK(finished_.TryPush(here), "a lane slot runs one batch at a time");
    here = nullptr;
    looked = Look(kBorrowedTurns, runs < kBorrowedRuns ? &here : nullptr) || looked;
  }
  if (looked) replies_.Serve([left = kBorrowedAnswers]() mutable { return left-- <= 0; });
}

void DispatchTurns::StartWorkers() {
  for (auto& worker : workers_) worker->Start();
}

void DispatchTurns::Configure(std::shared_ptr<const ServedModels> served_models,
                              std::vector<ServedModel*> served, std::shared_ptr<const Plan> plan) {
  // Where every engine is deferred the lanes need no threads, and there may be thousands of lanes.
  const auto needs_lanes = [](const ServedModel* model) {
    return model != nullptr && !model->traits.deferred;
  };
  if (std::any_of(served.begin(), served.end(), needs_lanes)) StartWorkers();
  Carry({.served_models = std::move(served_models),
         .served = std::move(served),
         .plan = std::move(plan)});
}

void DispatchTurns::Change(std::function<void(Dispatcher&)> change) {
  Carry({.change = std::move(change)});
}

void DispatchTurns::Pin(LaneId lane, const std::vector<int>& cores) {
  for (std::size_t i = first_worker_[lane.value()]; i < first_worker_[lane.value() + 1]; ++i) {
    workers_[i]->Pin(cores);
  }
}

void DispatchTurns::AbandonRunning() { Carry({.abandon_running = true}); }

void DispatchTurns::Carry(Control control) {
  std::unique_lock lock(control_mutex_);
  controls_.push_back(std::move(control));
  const std::uint64_t ticket = ++controls_posted_;
  control_waits_.store(true, std::memory_order_release);
  lock.unlock();
  if (Look(kBorrowedTurns)) replies_.Wake();
  lock.lock();
  control_done_.wait(lock, [&] { return controls_carried_ >= ticket; });
}

bool DispatchTurns::InTurn() { return in_turn; }

// The next batch, if there is one, runs when this returns.
void DispatchTurns::OnFinished(LaneWorker& worker) {
  const bool deferred = worker.order().model->traits.deferred;
  CHECK(finished_.TryPush(&worker), "a lane slot runs one batch at a time");
  Look(kBorrowedTurns);
  if (deferred) return replies_.Wake();  // its thread has the ends of other batches to tell
  // With nothing to run this thread may as well answer: a hand-over costs more than most replies.
  replies_.Serve([&worker] { return worker.HasNext(); });
}

void DispatchTurns::Run() {
  NameThisThread("dispatch");
  PinThisThread(options_.cores);
  SharpenTimers();
  while (!stop_.load(std::memory_order_acquire)) {
    // What was due may have been done by others, earlier.
    if (handed_over_.exchange(false, std::memory_order_acq_rel) || clock_.Now() >= wake_.load()) {
      if (Look(kOwnTurns)) replies_.Wake();
    }
    const TimePoint until = wake_.load();
    sleeps_until_.store(until);
    AwaitWork(bell_, clock_, Duration{}, until, [this, until] {
      return wake_.load() < until || handed_over_.load(std::memory_order_acquire) ||
             stop_.load(std::memory_order_acquire);
    });
    sleeps_until_.store(kStart);
  }
}

// Sees to it that what the caller has put into the rings is taken. True: by the caller, who now has
// to see to it that what its turns answered is.
// With `here` the caller takes upon itself to run the batch of the worker put there, if any.
bool DispatchTurns::Look(int most_turns, LaneWorker** here) {
  if (!combiner_.Take()) return false;
  in_turn = true;
  for (int turn = 1;; ++turn) {
    combiner_.Begin();
    here_ = here;
    const bool more = Turn();
    if (!more && combiner_.Release()) break;
    if (turn < most_turns) continue;
    combiner_.Drop();
    HandOver();
    break;
  }
  in_turn = false;
  return true;
}

// The loop's own thread takes the next turn.
void DispatchTurns::HandOver() {
  handed_over_.store(true, std::memory_order_release);
  bell_.Ring();
}

// True if there is more to take.
bool DispatchTurns::Turn() {
  if (control_waits_.load(std::memory_order_acquire)) TakeControl();
  now_ = clock_.Now();
  TakeFinished(now_);
  const bool more = TakeMessages(now_);
  SetWake(configured_ ? dispatcher_.Step(now_) : kNever);
  pending_.store(dispatcher_.waiting() + running_rows_, std::memory_order_relaxed);
  return more;
}

// Sequentially consistent, as in Run: either this sees how long the thread means to sleep, or the
// thread sees the new instant before it does.
void DispatchTurns::SetWake(TimePoint wake) {
  wake_.store(wake);
  if (wake < sleeps_until_.load()) bell_.Ring();
}

void DispatchTurns::TakeControl() {
  const std::lock_guard lock(control_mutex_);
  control_waits_.store(false, std::memory_order_relaxed);
  now_ = clock_.Now();
  for (Control& control : controls_) {
    if (control.served_models != nullptr) {
      served_ = std::move(control.served);
      dispatcher_.Configure(std::move(control.served_models));
      configured_ = true;
    }
    if (control.plan != nullptr) dispatcher_.Adopt(std::move(control.plan));
    if (control.change) {
      control.change(dispatcher_);
      RefuseWaiting();  // no lane may have a model any more
    }
    if (!control.abandon_running) continue;
    for (auto& worker : workers_) {
      if (worker->order().busy) AbandonOrder(worker->order());
    }
  }
  controls_carried_ += controls_.size();
  controls_.clear();
  control_done_.notify_all();
}

void DispatchTurns::TakeFinished(TimePoint now) {
  LaneWorker* worker = nullptr;
  while (finished_.TryPop(worker)) Finish(worker->order(), now);
}

// True if there may be more.
bool DispatchTurns::TakeMessages(TimePoint now) {
  Message message;
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    if (!messages_.TryPop(message)) return false;
    if (message.kind == Message::Kind::kArrive) {
      Admit(slab_.at(message.call), now);
    } else {
      CancelCall(message);
    }
  }
  return true;
}

// All rows of a call or none: half an answer is of no use to its client.
void DispatchTurns::Admit(PendingCall& pending, TimePoint now) {
  const ModelId model = pending.model->id;
  const std::size_t rows = pending.rows.size();
  pending.open_generation = pending.generation;
  pending.rows_waiting = static_cast<std::uint32_t>(rows);
  pending.rows_held = 0;
  pending.first_request = RequestId{next_request_};
  const std::size_t waiting = dispatcher_.view().queues[model.value()].size();
  if (waiting + rows > options_.dispatcher.queue_capacity) {
    return RefuseWhole(pending, DropReason::kQueueFull, now);
  }
  if (auto why = NoLaneFor(*pending.model)) {
    return RefuseWhole(pending, DropReason::kShed, now, std::move(why));
  }
  next_request_ += rows;
  Request request;
  // A front end may have stamped the call after this turn read the clock.
  request.arrival = std::min(pending.received, now);
  request.deadline = pending.deadline - Reserve(pending);
  request.shape = pending.shape_class;
  request.priority = pending.call.priority;
  const std::uint64_t first = pending.first_request.value();
  const std::uint32_t index = pending.index;
  for (std::uint32_t row = 0; row < rows; ++row) {
    request.id = RequestId{first + row};
    request.payload = PayloadSlab::Payload(index, row);
    dispatcher_.Arrive(model, request);  // after the last row the call may be gone already
  }
}

Duration DispatchTurns::Reserve(const PendingCall& pending) const {
  constexpr int kMostOf = 8;  // one part in so many of the call's time
  if (pending.deadline == kNever) return {};
  const Duration time = std::max(pending.deadline - pending.received, Duration{});
  return std::min(std::chrono::duration_cast<Duration>(replies_.overruns().Most()), time / kMostOf);
}

void DispatchTurns::RefuseWhole(PendingCall& pending, DropReason reason, TimePoint now,
                                std::shared_ptr<const Error> error) {
  for (CallRow& row : pending.rows) {
    row.outcome = OutcomeOf(reason);
    row.reason = reason;
    row.error = error;
    row.ended = now;
  }
  pending.rows_waiting = 0;
  AnswerIfDone(pending);
}

void DispatchTurns::CancelCall(const Message& message) {
  PendingCall& pending = slab_.at(message.call);
  if (pending.open_generation != message.generation) return;  // answered already
  const ModelId model = pending.model->id;
  const std::uint64_t first = pending.first_request.value();
  const std::size_t rows = pending.rows.size();
  for (std::size_t row = 0; row < rows && pending.open_generation == message.generation; ++row) {
    dispatcher_.Cancel(model, RequestId{first + row});
  }
}

void DispatchTurns::Launch(const Batch& batch) {
  LaneWorker* worker = nullptr;
  const std::size_t end = first_worker_[batch.lane.value() + 1];
  for (std::size_t i = first_worker_[batch.lane.value()]; i < end && worker == nullptr; ++i) {
    if (!workers_[i]->order().busy) worker = workers_[i].get();
  }
  CHECK(worker != nullptr, "the dispatcher launches into free slots only");
  LaunchOrder& order = worker->order();
  order.busy = true;
  order.abandoned.store(false, std::memory_order_relaxed);
  order.id = batch.id;
  order.lane = batch.lane;
  order.exit = batch.exit;
  order.model = served_[batch.model.value()];
  order.decided = batch.start;
  order.expected_end = batch.expected_end;
  order.rows.clear();
  for (const Request& request : batch.requests) {
    PendingCall& pending = slab_.at(PayloadSlab::IndexOf(request.payload));
    const std::uint32_t row = PayloadSlab::RowOf(request.payload);
    pending.rows[row].position = static_cast<std::uint32_t>(order.rows.size());
    pending.expected_end = batch.expected_end;
    ++pending.rows_held;
    order.rows.push_back({&pending, row});
  }
  running_rows_ += order.rows.size();
  order.model->running.fetch_add(1, std::memory_order_relaxed);
  if (order.model->traits.deferred) {
    worker->Submit();
  } else if (here_ != nullptr && *here_ == nullptr && !order.model->traits.isolated &&
             order.model->recent_batch <= kHandOver) {
    // A process may hang: then its lane's thread waits for it, and no thread of a front end.
    *here_ = worker;
  } else {
    worker->Launch();
  }
}

void DispatchTurns::Abort(LaneId lane, BatchId batch) {
  for (std::size_t i = first_worker_[lane.value()]; i < first_worker_[lane.value() + 1]; ++i) {
    LaunchOrder& order = workers_[i]->order();
    if (order.busy && order.id == batch) return AbandonOrder(order);
  }
}

// A batch that its lane has not begun is not begun; one that runs is stopped if its engine can.
void DispatchTurns::AbandonOrder(LaunchOrder& order) {
  order.abandoned.store(true, std::memory_order_release);
  order.model->engine.Terminate(order.id);
}

void DispatchTurns::Reject(ModelId, const Request& request, DropReason reason) {
  PendingCall& pending = slab_.at(PayloadSlab::IndexOf(request.payload));
  CallRow& row = pending.rows[PayloadSlab::RowOf(request.payload)];
  row.reason = refusal_ != nullptr ? DropReason::kShed : reason;
  row.outcome = refusal_ != nullptr ? refused_as_ : OutcomeOf(row.reason);
  row.error = refusal_;
  row.ended = now_;
  --pending.rows_waiting;
  AnswerIfDone(pending);
}

void DispatchTurns::Complete(const Batch& batch, const BatchReport& report) {
  LaunchOrder& order = *finishing_;
  for (const Request& request : batch.requests) {
    PendingCall& pending = slab_.at(PayloadSlab::IndexOf(request.payload));
    CallRow& row = pending.rows[PayloadSlab::RowOf(request.payload)];
    row.exit = batch.exit;
    row.batch = static_cast<std::uint32_t>(order.rows.size());
    row.started = report.started;
    row.ended = report.ended;
    row.gather = order.gather;
    row.infer = order.infer;
    row.scatter = order.scatter;
    switch (report.status) {
      case BatchStatus::kOk:
        row.outcome = Outcome::kMet;
        row.output = order.output;
        break;
      case BatchStatus::kFailed:
        EndFailed(order, row);
        break;
      case BatchStatus::kAborted:  // stopped by AbandonRunning: the server is stopping
        if (order.stuck) {
          row.reason = DropReason::kExpired;
          row.outcome = OutcomeOf(row.reason);
          row.error = StoppedErrorOf(order.model->spec);
          break;
        }
        [[fallthrough]];
      case BatchStatus::kLost:
        row.outcome = OutcomeOf(DropReason::kUnloaded);
        row.reason = DropReason::kUnloaded;
        break;
    }
    --pending.rows_waiting;  // answered in Finish, when the batch lets go of its rows
  }
}

void DispatchTurns::Followed(ModelId model, LaneClass lane_class, double ratio) {
  ServedModel* served = served_[model.value()];
  if (served != nullptr) served->counters.SetRatio(lane_class, ratio);
}

void DispatchTurns::Finish(LaunchOrder& order, TimePoint now) {
  ServedModel& model = *order.model;
  const Duration took = order.report.ended - order.report.started;
  model.recent_batch = std::max(took, model.recent_batch - model.recent_batch / 16);
  finishing_ = &order;
  const std::int64_t predicted = predictions_ != nullptr ? predictions_->kernel.count() : 0;
  dispatcher_.Finish(order.lane, order.id, order.report, now);
  finishing_ = nullptr;
  if (!order.suspects.empty()) BlameSuspects(order);
  if (order.report.status == BatchStatus::kOk) {
    model.apart.Succeeded();
    ModelCounters& counters = model.counters;
    counters.executions.fetch_add(1, std::memory_order_relaxed);
    counters.inferences.fetch_add(order.rows.size(), std::memory_order_relaxed);
    ModelCounters::Batch& batch = counters.batches[order.rows.size()];
    batch.compute_input.Add(order.gather);
    batch.compute_infer.Add(order.infer);
    batch.compute_output.Add(order.scatter);
  }
  const std::uint32_t cut_jpegs = order.output != nullptr ? order.output->cut_jpegs : 0;
  // The calls own it now; a lane without work would keep its last answer for ever.
  order.output.reset();
  running_rows_ -= order.rows.size();
  BatchEvent event{
      &model,
      {order.lane, order.exit, static_cast<int>(order.rows.size()), order.decided,
       order.expected_end, order.report.started, order.report.ended, now, order.report.status}};
  event.record.apart = CountApart(order);
  event.record.cut_jpegs = cut_jpegs;
  if (predictions_ != nullptr && predictions_->kernel.count() > predicted) {
    event.record.predicted_slowdown = predictions_->newest.predicted;
    event.record.measured_slowdown = predictions_->newest.actual;
  }
  EndStuck(order);
  order.busy = false;
  LetGo(order);
  replies_.Report(event);
  if (event.record.status != BatchStatus::kLost || !options_.lost) return;
  options_.lost(order.lane, *order.error);
}

// Steps of pipelines that end with one batch are answered in a row.
void DispatchTurns::LetGo(const LaunchOrder& order) {
  PendingCall* steps = nullptr;
  PendingCall* last = nullptr;
  for (const LaunchOrder::Row& row : order.rows) {
    --row.pending->rows_held;
    if (!Close(*row.pending)) continue;
    if (!row.pending->call.step) {
      replies_.Answer(*row.pending);
      continue;
    }
    (last == nullptr ? steps : last->next_step) = row.pending;
    last = row.pending;
  }
  if (steps != nullptr) replies_.Answer(*steps);
}

void DispatchTurns::AnswerIfDone(PendingCall& pending) {
  if (Close(pending)) replies_.Answer(pending);
}

// A call is answered when every row has ended and no engine can still be reading its inputs.
bool DispatchTurns::Close(PendingCall& pending) {
  if (pending.rows_waiting > 0 || pending.rows_held > 0 || pending.open_generation == 0) {
    return false;
  }
  pending.open_generation = 0;
  return true;
}

}  // namespace tactus
