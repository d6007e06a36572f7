// A policy may be a Learner as well: it is told how each of its batches went. A driver asks once,
// before the first event, whether it is one.
#pragma once

#include <optional>
#include <string>

#include "core/learned_state.h"
#include "core/policy.h"

namespace tactus {

struct BatchReport;
struct PredictionErrors;

class Learner {
 public:
  virtual ~Learner() = default;

  // `report` says how long the batch took. It has left its lane; Policy::OnLaneChange follows. Must
  // not block, allocate, lock, log or read a clock.
  virtual void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                           TimePoint now) = 0;

  // What it has learnt so far, to be kept; nothing where it keeps nothing. May allocate.
  virtual std::optional<LearnedState> Learned() const { return std::nullopt; }

  // Goes on from what another of its kind has learnt, instead of from its own beginning; an error,
  // and no change, where `learned` is not of its form. Before the first question. May allocate.
  virtual Status Resume(const LearnedState& /*learned*/) {
    return InvalidArgument("this policy keeps nothing that it learns");
  }

  // How far its predictions of what batches cost each other were off; null: it makes none.
  virtual const PredictionErrors* prediction_errors() const { return nullptr; }
};

// The policy as a learner; null where it is none.
inline Learner* LearnerOf(Policy& policy) { return dynamic_cast<Learner*>(&policy); }
inline const Learner* LearnerOf(const Policy& policy) {
  return dynamic_cast<const Learner*>(&policy);
}

// The same of any policy; nothing, or an error, where it is no learner.
inline std::optional<LearnedState> LearnedBy(const Policy& policy) {
  const Learner* learner = LearnerOf(policy);
  return learner != nullptr ? learner->Learned() : std::nullopt;
}
inline Status ResumePolicy(Policy& policy, const LearnedState& learned) {
  Learner* learner = LearnerOf(policy);
  if (learner != nullptr) return learner->Resume(learned);
  return InvalidArgument("policy '" + policy.name() + "' learns nothing");
}
inline const PredictionErrors* PredictionErrorsOf(const Policy& policy) {
  const Learner* learner = LearnerOf(policy);
  return learner != nullptr ? learner->prediction_errors() : nullptr;
}

}  // namespace tactus
