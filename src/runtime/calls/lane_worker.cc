#include "runtime/calls/lane_worker.h"

#include <algorithm>

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
  order.no_batch = false;
  failed_together_ = false;
  order.apart.clear();
  order.suspects.clear();
  order.gather = order.infer = order.scatter = Duration{};
  order.report.started = clock_.Now();
  busy_since_.store(order.report.started);
}

// All of its rows. Or the call whose turn it is alone: whole, also where other batches have some of
// its rows.
void LaneWorker::HandToEngine(LaunchOrder& order) {
  inputs_.clear();
  if (RunsWhole(order)) {
    const PendingCall& call = *order.rows[apart_row_].pending;
    for (std::size_t r = 0; r < call.rows.size(); ++r) inputs_.push_back(call.inputs(r));
  } else {
    for (const LaunchOrder::Row& row : order.rows) {
      if (RunsNow(row)) inputs_.push_back(row.pending->inputs(row.row));
    }
  }
  answered_.store(false, std::memory_order_relaxed);
  run_expected_ns_.store((order.expected_end - order.decided).count(), std::memory_order_relaxed);
  run_begun_.store(order.apart.empty() ? order.report.started : clock_.Now(),
                   std::memory_order_release);
  const ModelHandle handle = order.model->handles[order.lane.value()];
  order.model->engine.Submit(handle, {order.id, order.model->id, order.exit, inputs_}, *this);
}

LaneWorker::Running LaneWorker::running() const {
  Running running;
  running.begun = run_begun_.load(std::memory_order_acquire);
  running.expected = Duration{run_expected_ns_.load(std::memory_order_relaxed)};
  return running;
}

Duration LaneWorker::busy() const {
  for (;;) {
    const std::uint32_t before = booking_.load();
    const Duration booked{busy_ns_.load()};
    const TimePoint since = busy_since_.load();
    if (before % 2 != 0 || booking_.load() != before) continue;
    return since == kNever ? booked : booked + std::max(clock_.Now() - since, Duration{});
  }
}

void LaneWorker::Book(Duration busy) {
  ++booking_;
  busy_ns_ += busy.count();
  busy_since_.store(kNever);
  ++booking_;
}

void LaneWorker::Count(const LaunchOrder& order) {
  Book(order.report.ended - order.report.started);
  batches_.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<const BatchOutput> LaneWorker::Counted(
    std::shared_ptr<const BatchOutput> output) const {
  output->held = HeldBytes(options_.answers, output->bytes());
  return output;
}

void LaneWorker::RunBatch(LaunchOrder& order) {
  Begin(order);
  if (order.abandoned.load(std::memory_order_acquire)) {
    order.report.ended = order.report.started;
    order.report.status = BatchStatus::kAborted;
    return Book({});
  }
  BeginApart(order);
  if (!order.apart.empty() && !SkipToCall(order)) return Book({});  // nobody waits for any of them
  do {
    HandToEngine(order);
    // An engine may report from a thread of its own, after Submit has returned.
    while (!answered_.load(std::memory_order_acquire)) {
      AwaitWork(answered_bell_, clock_, options_.spin, kNever,
                [this] { return answered_.load(std::memory_order_acquire); });
    }
  } while (NextApart(order));
  inputs_.clear();  // an engine's answer may own the inputs; this thread no longer does
  Count(order);
}

void LaneWorker::Done(BatchId batch, BatchResult&& result) noexcept {
  CHECK(batch == order_.id && !answered_.load(std::memory_order_relaxed),
        "an engine reports each batch exactly once");
  order_.report.ended = clock_.Now();
  run_begun_.store(kNever, std::memory_order_relaxed);
  order_.apart.empty() ? Take(std::move(result)) : TakeApart(std::move(result));
  if (!tell_) {
    answered_.store(true, std::memory_order_release);
    return answered_bell_.Ring();
  }
  if (NextApart(order_)) return HandToEngine(order_);
  tell_ = false;
  answered_.store(true, std::memory_order_relaxed);
  inputs_.clear();
  Count(order_);
  listener_.OnFinished(*this);  // the next batch may be under way when this returns
}

void LaneWorker::Take(BatchResult&& result) {
  order_.gather = result.gather;
  order_.infer = result.infer;
  order_.scatter = result.scatter;
  if (result.status && result.output != nullptr) {
    order_.report.status = BatchStatus::kOk;
    order_.output = Counted(std::move(result.output));
  } else if (!result.status && result.lane_lost) {
    order_.report.status = BatchStatus::kLost;
    order_.error = std::make_shared<const Error>(std::move(result.status.error()));
    if (result.suspect) order_.suspects.assign(order_.rows.begin(), order_.rows.end());
  } else if (!result.status && result.status.error().code == ErrorCode::kCancelled) {
    order_.report.status = BatchStatus::kAborted;
  } else {
    order_.report.status = BatchStatus::kFailed;
    order_.no_batch = result.misshapen;
    order_.error = std::make_shared<const Error>(
        result.status ? Error{ErrorCode::kInternal, "the engine gave no output"}
                      : std::move(result.status.error()));
  }
}

// The batch has failed, whatever becomes of its calls; only a lane that dies is more than that.
void LaneWorker::TakeApart(BatchResult&& result) {
  if (!result.status && result.lane_lost) {
    order_.report.status = BatchStatus::kLost;
    order_.error = std::make_shared<const Error>(std::move(result.status.error()));
    for (const LaunchOrder::Row& row : order_.rows) {
      if (result.suspect && RunsNow(row)) order_.suspects.push_back(row);
    }
    return order_.apart.clear();
  }
  LaunchOrder::Apart apart{.misshapen = result.misshapen,
                           .batch = static_cast<std::uint32_t>(inputs_.size()),
                           .gather = result.gather,
                           .infer = result.infer,
                           .scatter = result.scatter};
  if (result.status && result.output != nullptr) {
    apart.output = Counted(std::move(result.output));
  } else if (result.status || result.status.error().code != ErrorCode::kCancelled) {
    apart.error = result.status ? order_.error
                                : std::make_shared<const Error>(std::move(result.status.error()));
  }
  const bool whole = RunsWhole(order_);
  std::uint32_t position = 0;
  for (std::size_t i = apart_row_; i < order_.rows.size(); ++i) {
    if (!RunsNow(order_.rows[i])) continue;
    apart.first = i == apart_row_;
    apart.position = whole ? order_.rows[i].row : position++;
    order_.apart[i] = apart;
  }
}

// A batch with a row under which the lane died before counts as failed from the first: its calls
// run apart at once, so that if the lane dies again it is known of which.
void LaneWorker::BeginApart(LaunchOrder& order) {
  const auto suspect = [](const LaunchOrder::Row& row) {
    return row.pending->rows[row.row].deaths > 0;
  };
  if (std::ranges::none_of(order.rows, suspect)) return;
  order.report.status = BatchStatus::kFailed;
  order.report.ended = order.report.started;
  order.error = std::make_shared<const Error>(
      Error{ErrorCode::kInternal, "the lane died under one of the batch's requests before"});
  order.apart.resize(order.rows.size());
  apart_row_ = 0;
}

// One bad row fails its whole batch: where a batch has failed that was not one call, each of its
// calls runs once alone, so that only those that brought a bad row hear of an error. All rows of a
// call run together, as its client sent them: what is no batch may give other answers row by row.
// Not where the batch's shape was wrong: that no row brought. True: the next begins at apart_row_.
bool LaneWorker::NextApart(LaunchOrder& order) {
  if (order.report.status != BatchStatus::kFailed || order.no_batch) return false;
  if (order.apart.empty()) {
    const PendingCall& first = *order.rows[0].pending;
    const auto its = [&](const LaunchOrder::Row& row) { return row.pending == &first; };
    if (order.rows.size() == first.rows.size() && std::ranges::all_of(order.rows, its))
      return false;
    failed_together_ = true;
    if (!order.model->engine.traits().runs_apart) return false;
    if (!order.model->apart.Pass(order.report.ended)) return false;
    order.apart.resize(order.rows.size());
    apart_row_ = 0;
  } else {
    ++apart_row_;
  }
  if (SkipToCall(order)) return true;
  const bool assumed = order.model->spec.batch_origin == BatchOrigin::kAssumed;
  const auto well = [](const LaunchOrder::Apart& row) { return row.output != nullptr; };
  order.no_batch = assumed && failed_together_ && std::ranges::all_of(order.apart, well);
  return false;
}

// From apart_row_ on, to a row whose call has not run yet; false: there is none.
bool LaneWorker::SkipToCall(const LaunchOrder& order) {
  for (; apart_row_ < order.rows.size(); ++apart_row_) {
    const LaunchOrder::Apart& row = order.apart[apart_row_];
    const bool ran = row.output != nullptr || row.error != nullptr;
    if (!ran && WorthRunning(order, *order.rows[apart_row_].pending)) return true;
  }
  return false;
}

bool LaneWorker::RunsWhole(const LaunchOrder& order) const {
  if (order.apart.empty()) return false;
  const auto most = static_cast<std::size_t>(std::max(order.model->spec.max_batch, 1));
  return order.rows[apart_row_].pending->rows.size() <= most;
}

bool LaneWorker::RunsNow(const LaunchOrder::Row& row) const {
  return order_.apart.empty() || row.pending == order_.rows[apart_row_].pending;
}

bool LaneWorker::WorthRunning(const LaunchOrder& order, const PendingCall& pending) const {
  if (order.abandoned.load(std::memory_order_acquire)) return false;
  const std::uint32_t cancelled = pending.cancelled_generation.load(std::memory_order_relaxed);
  if (cancelled == pending.generation) return false;
  return !options_.gives_up_late || order.report.ended <= pending.deadline;
}

}  // namespace tactus
