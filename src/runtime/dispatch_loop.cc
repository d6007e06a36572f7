#include "runtime/dispatch_loop.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "runtime/core_plan.h"

namespace tactus {
namespace {

// Messages taken in one turn, so that a flood of arrivals does not keep a free lane waiting.
constexpr int kMessagesPerTurn = 512;

}  // namespace

DispatchLoop::DispatchLoop(Options options, const WallClock& clock, Policy& policy,
                           Journal* journal, PayloadSlab& slab, ReplyThread& replies)
    : options_(std::move(options)),
      clock_(clock),
      slab_(slab),
      replies_(replies),
      dispatcher_(options_.dispatcher, options_.lanes, policy, *this, journal),
      messages_(2 * slab.capacity() + 64) {
  for (std::size_t lane = 0; lane < options_.lanes.size(); ++lane) {
    const LaneId id{static_cast<LaneId::rep>(lane)};
    for (int slot = 0; slot < options_.lanes[lane].slots; ++slot) {
      std::vector<int> cores;
      if (lane < options_.lane_cores.size()) cores = options_.lane_cores[lane];
      workers_.push_back(std::make_unique<LaneWorker>(
          LaneWorkerOptions{id, slot, std::move(cores), options_.spin}, clock_, bell_));
      lane_of_.push_back(id);
    }
  }
}

DispatchLoop::~DispatchLoop() { Stop(); }

void DispatchLoop::Start() {
  for (auto& worker : workers_) worker->Start();
  thread_ = std::thread([this] { Run(); });
}

void DispatchLoop::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  bell_.Ring();
  thread_.join();
  for (auto& worker : workers_) worker->Stop();
}

void DispatchLoop::Submit(CallSlot& slot) {
  const Message message{Message::Kind::kArrive, slot.index, slot.generation};
  // The ring holds an arrival and a cancellation of every slot, and the dispatch thread never waits
  // for a front end, so a full ring empties.
  while (!messages_.TryPush(message)) std::this_thread::yield();
  bell_.Ring();
}

void DispatchLoop::Cancel(CallId call) {
  const auto index = static_cast<std::uint32_t>(call);
  const auto generation = static_cast<std::uint32_t>(call >> 32);
  if (index >= slab_.capacity() || generation == 0) return;
  CallSlot& slot = slab_.at(index);
  if (slot.cancelled_generation.exchange(generation, std::memory_order_relaxed) == generation) {
    return;  // asked before
  }
  while (!messages_.TryPush(Message{Message::Kind::kCancel, index, generation})) {
    if (stop_.load(std::memory_order_acquire)) return;
    std::this_thread::yield();
  }
  bell_.Ring();
}

void DispatchLoop::Configure(std::shared_ptr<const Deployment> deployment,
                             std::vector<ServedModel*> served) {
  Carry({std::move(deployment), std::move(served), false});
}

void DispatchLoop::AbandonRunning() { Carry({nullptr, {}, true}); }

void DispatchLoop::Carry(Control control) {
  std::unique_lock lock(control_mutex_);
  controls_.push_back(std::move(control));
  const std::uint64_t ticket = ++controls_posted_;
  control_waits_.store(true, std::memory_order_release);
  bell_.Ring();
  control_done_.wait(lock, [&] { return controls_carried_ >= ticket; });
}

void DispatchLoop::Run() {
  NameThisThread("dispatch");
  PinThisThread(options_.cores);
  SharpenTimers();
  while (!stop_.load(std::memory_order_acquire)) {
    if (control_waits_.load(std::memory_order_acquire)) TakeControl();
    now_ = clock_.Now();
    TakeFinished(now_);
    TakeMessages(now_);
    const TimePoint wake = configured_ ? dispatcher_.Step(now_) : kNever;
    pending_.store(dispatcher_.waiting() + running_rows_, std::memory_order_relaxed);
    AwaitWork(bell_, clock_, options_.spin, wake, [this] { return HasWork(); });
  }
}

bool DispatchLoop::HasWork() const {
  if (!messages_.Empty() || control_waits_.load(std::memory_order_acquire) ||
      stop_.load(std::memory_order_acquire)) {
    return true;
  }
  for (const auto& worker : workers_) {
    if (worker->HasFinished()) return true;
  }
  return false;
}

void DispatchLoop::TakeControl() {
  const std::lock_guard lock(control_mutex_);
  control_waits_.store(false, std::memory_order_relaxed);
  now_ = clock_.Now();
  for (Control& control : controls_) {
    if (control.deployment != nullptr) {
      served_ = std::move(control.served);
      dispatcher_.Configure(std::move(control.deployment));
      configured_ = true;
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

void DispatchLoop::TakeFinished(TimePoint now) {
  for (auto& worker : workers_) {
    if (LaunchOrder* order = worker->TryFinished()) Finish(*order, now);
  }
}

void DispatchLoop::TakeMessages(TimePoint now) {
  Message message;
  for (int i = 0; i < kMessagesPerTurn && messages_.TryPop(message); ++i) {
    if (message.kind == Message::Kind::kArrive) {
      Admit(slab_.at(message.slot), now);
    } else {
      CancelCall(message);
    }
  }
}

// All rows of a call or none: half an answer is of no use to its client.
void DispatchLoop::Admit(CallSlot& slot, TimePoint now) {
  const ModelId model = slot.model->id;
  const std::size_t rows = slot.rows.size();
  slot.open_generation = slot.generation;
  slot.rows_waiting = static_cast<std::uint32_t>(rows);
  slot.rows_held = 0;
  slot.first_request = RequestId{next_request_};
  const std::size_t waiting = dispatcher_.view().queues[model.value()].size();
  if (waiting + rows > options_.dispatcher.queue_capacity) {
    return RefuseWhole(slot, DropReason::kQueueFull, now);
  }
  next_request_ += rows;
  Request request;
  // A front end may have stamped the call after this turn read the clock.
  request.arrival = std::min(slot.received, now);
  request.deadline = slot.deadline;
  request.shape = slot.shape_class;
  request.priority = slot.call.priority;
  const std::uint64_t first = slot.first_request.value();
  const std::uint32_t index = slot.index;
  for (std::uint32_t row = 0; row < rows; ++row) {
    request.id = RequestId{first + row};
    request.payload = PayloadSlab::Payload(index, row);
    dispatcher_.Arrive(model, request);  // after the last row the slot may be gone already
  }
}

void DispatchLoop::RefuseWhole(CallSlot& slot, DropReason reason, TimePoint now) {
  for (CallRow& row : slot.rows) {
    row.outcome = OutcomeOf(reason);
    row.reason = reason;
    row.ended = now;
  }
  slot.rows_waiting = 0;
  AnswerIfDone(slot);
}

void DispatchLoop::CancelCall(const Message& message) {
  CallSlot& slot = slab_.at(message.slot);
  if (slot.open_generation != message.generation) return;  // answered already
  const ModelId model = slot.model->id;
  const std::uint64_t first = slot.first_request.value();
  const std::size_t rows = slot.rows.size();
  for (std::size_t row = 0; row < rows && slot.open_generation == message.generation; ++row) {
    dispatcher_.Cancel(model, RequestId{first + row});
  }
}

void DispatchLoop::Launch(const Batch& batch) {
  LaneWorker* worker = nullptr;
  for (std::size_t i = 0; i < workers_.size() && worker == nullptr; ++i) {
    if (lane_of_[i] == batch.lane && !workers_[i]->order().busy) worker = workers_[i].get();
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
    CallSlot& slot = slab_.at(PayloadSlab::SlotOf(request.payload));
    const std::uint32_t row = PayloadSlab::RowOf(request.payload);
    slot.rows[row].position = static_cast<std::uint32_t>(order.rows.size());
    ++slot.rows_held;
    order.rows.push_back({&slot, row});
  }
  running_rows_ += order.rows.size();
  order.model->running.fetch_add(1, std::memory_order_relaxed);
  worker->Launch();
}

void DispatchLoop::Abort(LaneId lane, BatchId batch) {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    LaunchOrder& order = workers_[i]->order();
    if (lane_of_[i] == lane && order.busy && order.id == batch) return AbandonOrder(order);
  }
}

// A batch that its lane has not begun is not begun; one that runs is stopped if its engine can.
void DispatchLoop::AbandonOrder(LaunchOrder& order) {
  order.abandoned.store(true, std::memory_order_release);
  order.model->engine.Terminate(order.id);
}

void DispatchLoop::Reject(ModelId, const Request& request, DropReason reason) {
  CallSlot& slot = slab_.at(PayloadSlab::SlotOf(request.payload));
  CallRow& row = slot.rows[PayloadSlab::RowOf(request.payload)];
  row.outcome = OutcomeOf(reason);
  row.reason = reason;
  row.ended = now_;
  --slot.rows_waiting;
  AnswerIfDone(slot);
}

void DispatchLoop::Complete(const Batch& batch, const BatchReport& report) {
  LaunchOrder& order = *finishing_;
  for (const Request& request : batch.requests) {
    CallSlot& slot = slab_.at(PayloadSlab::SlotOf(request.payload));
    CallRow& row = slot.rows[PayloadSlab::RowOf(request.payload)];
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
        row.outcome = Outcome::kError;
        row.error = order.error;
        break;
      case BatchStatus::kAborted:  // stopped by AbandonRunning: the server is stopping
      case BatchStatus::kLost:
        row.outcome = OutcomeOf(DropReason::kUnloaded);
        row.reason = DropReason::kUnloaded;
        break;
    }
    --slot.rows_waiting;  // answered in Finish, when the batch lets go of its rows
  }
}

void DispatchLoop::Finish(LaunchOrder& order, TimePoint now) {
  ServedModel& model = *order.model;
  finishing_ = &order;
  dispatcher_.Finish(order.lane, order.id, order.report, now);
  finishing_ = nullptr;
  if (order.report.status == BatchStatus::kOk) {
    ModelCounters& counters = model.counters;
    counters.executions.fetch_add(1, std::memory_order_relaxed);
    counters.inferences.fetch_add(order.rows.size(), std::memory_order_relaxed);
    ModelCounters::Batch& batch = counters.batches[order.rows.size()];
    batch.compute_input.Add(order.gather);
    batch.compute_infer.Add(order.infer);
    batch.compute_output.Add(order.scatter);
  }
  running_rows_ -= order.rows.size();
  BatchEvent event{
      &model,
      {order.lane, order.exit, static_cast<int>(order.rows.size()), order.decided,
       order.expected_end, order.report.started, order.report.ended, now, order.report.status}};
  order.busy = false;
  for (const LaunchOrder::Row& row : order.rows) {
    --row.slot->rows_held;
    AnswerIfDone(*row.slot);
  }
  replies_.Report(event);
}

// A call is answered when every row has ended and no engine can still be reading its inputs.
void DispatchLoop::AnswerIfDone(CallSlot& slot) {
  if (slot.rows_waiting > 0 || slot.rows_held > 0 || slot.open_generation == 0) return;
  slot.open_generation = 0;
  replies_.Answer(slot);
}

}  // namespace tactus
