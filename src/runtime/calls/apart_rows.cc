// What becomes of the rows of a batch that failed, once they ran apart (LaneWorker::NextApart), and
// of those under which lanes died.
#include <fmt/format.h>

#include "runtime/calls/dispatch_turns.h"

namespace tactus {
namespace {

// Deaths of lanes under a request, the last of them while it ran alone, until it is refused. The
// first may be chance: somebody killed the process, or memory ran out for a large batch.
constexpr std::uint32_t kDeathsToBlame = 2;

std::shared_ptr<const Error> BlameOf(const ModelSpec& model, const Error& last) {
  return std::make_shared<const Error>(
      Error{ErrorCode::kInternal,
            fmt::format("model '{}': {} times the lane died while it ran this request, at last "
                        "alone: {}; it is not run again",
                        model.name, kDeathsToBlame, last.message)});
}

}  // namespace

// After Dispatcher::Finish, which has put what the dead lane ran back into its queue. A journal has
// those refused as cancelled, so that a replay does the same.
void DispatchTurns::BlameSuspects(const LaunchOrder& order) {
  for (const LaunchOrder::Row& suspect : order.suspects) {
    CallRow& row = suspect.pending->rows[suspect.row];
    if (++row.deaths < kDeathsToBlame) continue;
    refusal_ = BlameOf(order.model->spec, *order.error);
    refused_as_ = Outcome::kError;
    const std::uint64_t first = suspect.pending->first_request.value();
    dispatcher_.Cancel(order.model->id, RequestId{first + suspect.row});
    refusal_ = nullptr;
  }
}

// A row of a batch that failed: it has an answer all the same if its call ran well alone.
void DispatchTurns::EndFailed(const LaunchOrder& order, CallRow& row) {
  if (order.apart.empty() || order.no_batch) {
    row.outcome = Outcome::kError;
    row.error = order.error;
    row.no_batch = order.no_batch;
    return;
  }
  const LaunchOrder::Apart& apart = order.apart[row.position];
  row.gather = apart.gather;
  row.infer = apart.infer;
  row.scatter = apart.scatter;
  if (apart.output != nullptr) {
    row.outcome = Outcome::kMet;
    row.output = apart.output;
    row.position = apart.position;
    row.batch = apart.batch;
  } else if (apart.error != nullptr) {
    row.outcome = Outcome::kError;
    row.error = apart.error;
    row.no_batch = apart.misshapen;
  } else {
    const bool stopping = order.abandoned.load(std::memory_order_relaxed);
    row.reason = stopping ? DropReason::kUnloaded : DropReason::kExpired;
    row.outcome = OutcomeOf(row.reason);
  }
}

// Calls that ran apart count as batches of their rows.
BatchRecord::Apart DispatchTurns::CountApart(LaunchOrder& order) {
  BatchRecord::Apart counts;
  if (order.apart.empty()) return counts;
  ModelCounters& counters = order.model->counters;
  for (const LaunchOrder::Apart& row : order.apart) {
    if (row.output == nullptr) {
      ++(row.error != nullptr ? counts.failed : counts.given_up);
      continue;
    }
    ++counts.answered;
    counters.inferences.fetch_add(1, std::memory_order_relaxed);
    if (!row.first) continue;
    counters.executions.fetch_add(1, std::memory_order_relaxed);
    ModelCounters::Batch& batch = counters.batches[row.batch];
    batch.compute_input.Add(row.gather);
    batch.compute_infer.Add(row.infer);
    batch.compute_output.Add(row.scatter);
  }
  if (counts.answered > 0) order.model->apart.Succeeded();
  order.apart.clear();  // the calls own the outputs now
  return counts;
}

}  // namespace tactus
