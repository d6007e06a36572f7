#include "policies/edgeserving/edgeserving_plain.h"

#include <algorithm>

#include "core/feasible.h"

namespace tactus {

std::optional<EdgeServingCandidate> MakeCandidate(const View& view, ModelId m,
                                                  const EdgeServingOptions& options,
                                                  TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  if (queue.empty()) return std::nullopt;
  const Lane* lane = FirstFreeLane(view.lanes, m);
  if (lane == nullptr) return std::nullopt;
  const int batch = queue.Batchable(std::min(LargestBatch(view, m), options.batch));
  // The head has the earliest deadline, so it is the paper's longest wait among the batch.
  const ExitId exit = options.early_exits
                          ? DeepestFeasibleExit(view.profile, m, batch, lane->lane_class,
                                                queue.front().deadline, now)
                          : FinalExit(view.profile, m);
  return EdgeServingCandidate{.model = m,
                              .exit = exit,
                              .batch = batch,
                              .lane = lane->id,
                              .latency = view.profile.Latency(m, exit, batch, lane->lane_class)};
}

double StabilityScore(const View& view, const EdgeServingCandidate& candidate, double clip,
                      TimePoint now) {
  const TimePoint then = now + candidate.latency;
  double score = 0;
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const RequestQueue& queue = view.queues[i];
    const Duration slo = view.models[i].slo;
    const std::size_t served = i == candidate.model.value() ? candidate.batch : 0;
    for (std::size_t k = served; k < queue.size(); ++k) {
      score += Urgency(queue[k].deadline, slo, then, clip);
    }
  }
  return score;
}

Decision PlainEdgeServing::Decide(const View& view, TimePoint now) {
  std::optional<EdgeServingCandidate> best;
  double best_score = 0;
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    const auto candidate = MakeCandidate(view, m, options_, now);
    if (!candidate) continue;
    const double score = StabilityScore(view, *candidate, options_.clip, now);
    if (best && score >= LeastToBeat(best_score)) continue;
    best = candidate;
    best_score = score;
  }
  if (!best) return Wait{};
  return ToDispatch(*best);
}

}  // namespace tactus
