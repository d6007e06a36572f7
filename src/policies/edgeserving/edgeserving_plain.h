// EdgeServing as the paper states it: Algorithm 1, one function an equation.
//
//   Eq. 3  urgency of a waiting request          Urgency (core/feasible.h)
//   Eq. 4  stability score of all queues         StabilityScore
//   Eq. 5  batch: all that fit                   MakeCandidate
//   Eq. 6  deepest exit that meets the deadline  MakeCandidate, DeepestFeasibleExit
//   (core/feasible.h) Eq. 7  the queue whose service scores least  PlainEdgeServing::Decide
//
// A decision costs one exponential for each waiting request and candidate. edgeserving.h takes the
// same decisions in O(models); this version is what it is tested against, and what to read first.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/policy.h"

namespace tactus {

struct EdgeServingOptions {
  // Largest batch, beside what model and profile allow. 1 is the paper's ablation without batching.
  int batch = 1 << 20;
  // C of Eq. 3: no request counts more, so that those that are lost anyway do not drown the others.
  double clip = 10;
  // False: always the final exit (the paper's "All-Final+Deadline-Aware").
  bool early_exits = true;
};

// What serving one queue now would mean.
struct EdgeServingCandidate {
  ModelId model;
  ExitId exit;
  int batch = 0;
  LaneId lane;
  Duration latency{};
};

// Eq. 5 and 6. Nothing when the queue is empty or no lane that serves the model has a free slot.
std::optional<EdgeServingCandidate> MakeCandidate(const View& view, ModelId m,
                                                  const EdgeServingOptions& options, TimePoint now);

// Eq. 4 over the state that Section V-C predicts: the candidate's batch has left, and every other
// waiting request is older by its latency.
double StabilityScore(const View& view, const EdgeServingCandidate& candidate, double clip,
                      TimePoint now);

// Scores closer than this, relatively, are ties, and the model with the lower id wins. Sums differ
// in their last digits with the order in which they are taken; no decision may hang on that.
inline constexpr double kScoreTie = 1e-7;
inline double LeastToBeat(double best) { return best * (1 - kScoreTie); }

inline Decision ToDispatch(const EdgeServingCandidate& c) {
  return Dispatch{.model = c.model, .exit = c.exit, .batch = c.batch, .lane = c.lane};
}

class PlainEdgeServing final : public Policy {
 public:
  PlainEdgeServing(std::string name, EdgeServingOptions options)
      : Policy({.name = std::move(name)}), options_(options) {}

  Decision Decide(const View& view, TimePoint now) override;

 private:
  const EdgeServingOptions options_;
};

}  // namespace tactus
