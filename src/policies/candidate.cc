#include "policies/candidate.h"

#include <algorithm>

namespace tactus {
namespace {

// The position of the first request from which a batch of `target` could run at `now`. Where
// another shape ends the batch before that, no head is to blame.
int FirstHead(const RequestQueue& queue, const BatchCosts& costs, int target, TimePoint now) {
  const TimePoint needed = now + costs(target);
  if (target <= 1 || queue.front().deadline >= needed) return 0;
  const int last = static_cast<int>(queue.size()) - target;
  if (last < 1 || queue.Batchable(target) < target || queue[last].deadline < needed) return 0;
  int low = 1;  // deadlines rise: the first that is late enough lies in [low, high]
  int high = last;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    (queue[middle].deadline < needed ? low = middle + 1 : high = middle);
  }
  return low;
}

// Requests from `head` on that may share a batch.
int Batchable(const RequestQueue& queue, int head, int limit) {
  if (head == 0) return queue.Batchable(limit);
  const int most = std::min(limit, static_cast<int>(queue.size()) - head);
  int n = 0;
  while (n < most && queue[head + n].shape == queue[head].shape) ++n;
  return n;
}

TimePoint EarliestArrival(const RequestQueue& queue, int head, int batch) {
  TimePoint first = queue[head].arrival;
  for (int i = 1; i < batch; ++i) first = std::min(first, queue[head + i].arrival);
  return first;
}

}  // namespace

std::optional<SymphonyCandidate> MakeCandidate(const RequestQueue& queue, const BatchCosts& costs,
                                               const CandidateOptions& options, int target,
                                               TimePoint now) {
  if (queue.empty()) return std::nullopt;
  const int head = options.gather == Gather::kWindow
                       ? FirstHead(queue, costs, std::min(target, costs.max_batch()), now)
                       : 0;
  const TimePoint deadline = queue[head].deadline;
  if (deadline - now < costs(1)) return std::nullopt;
  const int together = Batchable(queue, head, costs.max_batch());
  const int batch = costs.Largest(together, deadline - now);
  // Behind a head further back another shape may end the batch under the target; but that head
  // is the first one only as long as the target fits.
  const int judged_by = head > 0 ? std::max(batch, std::min(target, costs.max_batch())) : batch;
  const TimePoint latest = deadline - costs(judged_by);
  // Nothing can join a batch that is full, or that ends where another shape begins.
  const bool closed = batch == costs.max_batch() ||
                      (batch == together && queue.size() > static_cast<std::size_t>(head + batch));
  TimePoint exec{};
  if (!closed) {
    switch (options.schedulable) {
      case Schedulable::kEager:
        break;
      case Schedulable::kTimeout:
        exec = EarliestArrival(queue, head, batch) + options.timeout;
        break;
      case Schedulable::kFrontrun:
        exec = deadline - costs(batch + 1) - options.lead;
        break;
      case Schedulable::kLatest:
        exec = latest;
        break;
    }
  }
  // A timeout may lie beyond the point where the batch would be late; it goes then at the latest.
  return SymphonyCandidate{head, batch, std::min(exec, latest), latest};
}

int TargetBatch(const BatchCosts& costs, Duration slo, double rate, int lanes) {
  if (rate <= 0) return 1;
  for (int batch = costs.max_batch(); batch > 1; --batch) {
    const double cost = ToSeconds(costs(batch));
    const double busy = std::min(rate * cost / batch, static_cast<double>(std::max(lanes, 1)));
    const double wait = busy >= 1 ? cost / busy : batch / rate;
    if (cost + wait <= ToSeconds(slo)) return batch;
  }
  return 1;
}

}  // namespace tactus
