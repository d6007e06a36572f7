#include "runtime/calls/lane_worker.h"

#include <fmt/format.h>

#include "base/check.h"
#include "platform/cpu_affinity.h"

namespace tactus {

LaneWorker::LaneWorker(LaneWorkerOptions options, const WallClock& clock, Listener& listener)
    : options_(std::move(options)), clock_(clock), listener_(listener), cores_(options_.cores) {
  inputs_.reserve(kMaxBatch);
}

LaneWorker::~LaneWorker() { Stop(); }

void LaneWorker::Start() {
  const std::lock_guard lock(thread_mutex_);
  if (thread_.joinable()) return;
  thread_ = std::thread([this] { Run(); });
  PinThread(thread_.native_handle(), cores_);
}

void LaneWorker::Pin(std::vector<int> cores) {
  const std::lock_guard lock(thread_mutex_);
  cores_ = std::move(cores);
  if (thread_.joinable()) PinThread(thread_.native_handle(), cores_);
}

void LaneWorker::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  bell_.Ring();
  thread_.join();
}

void LaneWorker::Launch() {
  CHECK(launches_.TryPush(&order_), "a lane slot runs one batch at a time");
  bell_.Ring();
}

void LaneWorker::Run() {
  NameThisThread(fmt::format("lane{}.{}", options_.lane.value(), options_.slot));
  SharpenTimers();
  while (!stop_.load(std::memory_order_acquire)) {
    LaunchOrder* order = nullptr;
    if (launches_.TryPop(order)) {
      RunBatch(*order);
      listener_.OnFinished(*this);
      continue;
    }
    AwaitWork(bell_, clock_, options_.spin, kNever,
              [this] { return !launches_.Empty() || stop_.load(std::memory_order_acquire); });
  }
}

void LaneWorker::Submit() {
  Begin(order_);
  tell_ = true;
  HandToEngine(order_);
}

void LaneWorker::Begin(LaunchOrder& order) {
  order.output.reset();
  order.error.reset();
  order.gather = order.infer = order.scatter = Duration{};
  order.report.started = clock_.Now();
}

void LaneWorker::HandToEngine(LaunchOrder& order) {
  inputs_.clear();
  for (const LaunchOrder::Row& row : order.rows) inputs_.push_back(row.pending->inputs(row.row));
  answered_.store(false, std::memory_order_relaxed);
  const ModelHandle handle = order.model->handles[order.lane.value()];
  order.model->engine.Submit(handle, {order.id, order.model->id, order.exit, inputs_}, *this);
}

void LaneWorker::Count(const LaunchOrder& order) {
  busy_ns_.fetch_add((order.report.ended - order.report.started).count(),
                     std::memory_order_relaxed);
  batches_.fetch_add(1, std::memory_order_relaxed);
}

void LaneWorker::RunBatch(LaunchOrder& order) {
  Begin(order);
  if (order.abandoned.load(std::memory_order_acquire)) {
    order.report.ended = order.report.started;
    order.report.status = BatchStatus::kAborted;
    return;
  }
  HandToEngine(order);
  // An engine may report from a thread of its own, after Submit has returned.
  while (!answered_.load(std::memory_order_acquire)) {
    AwaitWork(answered_bell_, clock_, options_.spin, kNever,
              [this] { return answered_.load(std::memory_order_acquire); });
  }
  inputs_.clear();  // an engine's answer may own the inputs; this thread no longer does
  Count(order);
}

void LaneWorker::Done(BatchId batch, BatchResult&& result) noexcept {
  CHECK(batch == order_.id && !answered_.load(std::memory_order_relaxed),
        "an engine reports each batch exactly once");
  order_.report.ended = clock_.Now();
  order_.gather = result.gather;
  order_.infer = result.infer;
  order_.scatter = result.scatter;
  if (result.status && result.output != nullptr) {
    order_.report.status = BatchStatus::kOk;
    order_.output = std::move(result.output);
  } else if (!result.status && result.lane_lost) {
    order_.report.status = BatchStatus::kLost;
    order_.error = std::make_shared<const Error>(std::move(result.status.error()));
  } else if (!result.status && result.status.error().code == ErrorCode::kCancelled) {
    order_.report.status = BatchStatus::kAborted;
  } else {
    order_.report.status = BatchStatus::kFailed;
    order_.error = std::make_shared<const Error>(
        result.status ? Error{ErrorCode::kInternal, "the engine gave no output"}
                      : std::move(result.status.error()));
  }
  if (!tell_) {
    answered_.store(true, std::memory_order_release);
    return answered_bell_.Ring();
  }
  tell_ = false;
  answered_.store(true, std::memory_order_relaxed);
  inputs_.clear();
  Count(order_);
  listener_.OnFinished(*this);  // the next batch may be under way when this returns
}

}  // namespace tactus
