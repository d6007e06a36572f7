// What becomes of the rows of a batch that failed, once they ran apart (LaneWorker::NextApart).
#include "runtime/calls/dispatch_turns.h"

namespace tactus {

// A row of a batch that failed: it has an answer all the same if it ran well alone.
void DispatchTurns::EndFailed(const LaunchOrder& order, CallRow& row) {
  if (order.apart.empty()) {
    row.outcome = Outcome::kError;
    row.error = order.error;
    return;
  }
  const LaunchOrder::Apart& apart = order.apart[row.position];
  row.gather = apart.gather;
  row.infer = apart.infer;
  row.scatter = apart.scatter;
  if (apart.output != nullptr) {
    row.outcome = Outcome::kMet;
    row.output = apart.output;
    row.position = 0;
    row.batch = 1;
  } else if (apart.error != nullptr) {
    row.outcome = Outcome::kError;
    row.error = apart.error;
  } else {
    const bool stopping = order.abandoned.load(std::memory_order_relaxed);
    row.reason = stopping ? DropReason::kUnloaded : DropReason::kExpired;
    row.outcome = OutcomeOf(row.reason);
  }
}

// Rows that ran apart count as batches of one.
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
    counters.executions.fetch_add(1, std::memory_order_relaxed);
    counters.inferences.fetch_add(1, std::memory_order_relaxed);
    counters.batches[1].compute_input.Add(row.gather);
    counters.batches[1].compute_infer.Add(row.infer);
    counters.batches[1].compute_output.Add(row.scatter);
  }
  if (counts.answered > 0) order.model->apart.Succeeded();
  order.apart.clear();  // the calls own the outputs now
  return counts;
}

}  // namespace tactus
