#include "policies/symphony/candidate.h"

#include <algorithm>

#include "core/feasible.h"

namespace tactus {
namespace {

Duration FinalLatency(const View& view, ModelId m, LaneClass c, int batch) {
  return view.profile.Latency(m, FinalExit(view.profile, m), batch, c);
}

TimePoint SchedulableFrom(const View& view, ModelId m, LaneClass c, int batch,
                          const CandidateOptions& options, TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  const TimePoint deadline = queue.front().deadline;
  switch (options.schedulable) {
    case Schedulable::kEager:
      return now;
    case Schedulable::kTimeout: {
      TimePoint first = queue.front().arrival;
      for (int i = 1; i < batch; ++i) first = std::min(first, queue[i].arrival);
      return first + options.timeout;
    }
    // A full batch cannot grow, so there is nothing to wait for.
    case Schedulable::kFrontrun:
      return batch == LargestBatch(view, m) ? now : deadline - FinalLatency(view, m, c, batch + 1);
    case Schedulable::kLatest:
      return deadline - FinalLatency(view, m, c, batch);
  }
  return now;
}

}  // namespace

std::optional<SymphonyCandidate> MakeCandidate(const View& view, ModelId m, LaneClass c,
                                               const CandidateOptions& options, TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  if (queue.empty()) return std::nullopt;
  const Duration slack = queue.front().deadline - now;
  int batch = queue.Batchable(LargestBatch(view, m));
  while (batch > 0 && FinalLatency(view, m, c, batch) > slack) --batch;
  if (batch == 0) return std::nullopt;
  const TimePoint latest = queue.front().deadline - FinalLatency(view, m, c, batch);
  // A timeout may lie beyond the point where the batch would be late; it goes then at the latest.
  const TimePoint exec = std::min(SchedulableFrom(view, m, c, batch, options, now), latest);
  return SymphonyCandidate{batch, std::max(now, exec), latest};
}

int StaggeredBatch(const View& view, ModelId m, LaneClass c, double rate) {
  if (rate <= 0) return 1;
  const Duration slo = view.models[m.value()].slo;
  int batch = 1;
  while (batch < LargestBatch(view, m) &&
         FinalLatency(view, m, c, batch + 1) + FromSeconds((batch + 1) / rate) <= slo) {
    ++batch;
  }
  return batch;
}

int HeadsToDrop(const View& view, ModelId m, LaneClass c, int target, TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  const Duration latency = FinalLatency(view, m, c, target);
  const auto wanted = static_cast<std::size_t>(target);
  for (std::size_t i = 0; i + wanted <= queue.size(); ++i) {
    if (queue[i].deadline >= now + latency) return static_cast<int>(i);
  }
  return 0;
}

}  // namespace tactus
