// A policy is one pure question, asked after every event and again after every decision until it
// answers Wait:
//
//   while (!std::holds_alternative<Wait>(d = policy.Decide(view, now))) CarryOut(d);
//
// The world is updated before the next question, so no lane is spent twice, and a test of a policy
// is a table: a View, an instant, the expected Decision. Answers depend on the sequence of calls
// and on nothing else. Decide and the On... calls must not block, allocate, lock, log or read a
// clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "core/decision.h"
#include "core/learned_state.h"
#include "core/view.h"

namespace tactus {

struct BatchReport;
struct PredictionErrors;

// What deciding takes, for drivers that charge for it: the simulator. In real time it takes what it
// takes.
struct DecisionCost {
  std::optional<Duration> launch;     // each decision that launches a batch
  std::optional<Duration> candidate;  // each candidate of Policy::examined()
};

class Policy {
 public:
  virtual ~Policy() = default;

  virtual std::string_view name() const = 0;

  virtual Decision Decide(const View& view, TimePoint now) = 0;

  // The set of models or lanes, or the profile, is new. Called before the first question and at
  // every change after it; size indices here. May allocate.
  virtual void Prepare(const View&) {}

  // A policy that reads plans names its planner here; a driver that knows it hands over a first
  // plan at the start and a new one every epoch. Until then, and in drivers that do not, view.plan
  // is null and the policy must do without.
  virtual std::string_view planner() const { return {}; }
  virtual Duration epoch() const { return kNever - kStart; }
  virtual void OnPlan(const View&) {}  // view.plan is new. May allocate.

  // To keep an index. OnQueueChange covers every change that is not one of the two below it.
  virtual void OnArrive(ModelId, const Request&) {}   // it was just pushed
  virtual void OnPopFront(ModelId, int /*count*/) {}  // the first `count` are about to leave
  virtual void OnQueueChange(ModelId) {}

  // A batch began or ended there, or it was opened or closed. Prepare stands for all lanes.
  virtual void OnLaneChange(const Lane&) {}

  // Whether it counts on a device that stops batches of lower priority between their kernels and
  // goes on with them later (XSched). Only the simulator's can; read once, at the start.
  virtual bool suspends() const { return false; }

  // The least that it counts on for a request of m, from its decision to the end of its batch on
  // the best of the lanes, with the delays and batch sizes of its options: it gives up whatever has
  // less time left, or leaves it lying. Duration::max() where no batch size would do; nothing where
  // it serves requests however late they are. A function of its arguments and of its options alone:
  // may be asked at any time, on any thread.
  virtual std::optional<Duration> LeastService(const View&, ModelId) const { return std::nullopt; }

  // How many candidates it has looked at so far, for drivers that charge for deciding: what the
  // algorithm would have to look at, not what this code happens to.
  virtual std::uint64_t examined() const { return 0; }

  // Set once, by whoever makes the policy; a driver has its own figure for what is not set.
  const DecisionCost& decision_cost() const { return decision_cost_; }
  void SetDecisionCost(const DecisionCost& cost) { decision_cost_ = cost; }

  // Of its predictions of what batches would cost each other, where it makes any.
  virtual const PredictionErrors* prediction_errors() const { return nullptr; }

  // To learn. `report` says how long the batch took.
  virtual void OnBatchDone(LaneId, const RunningBatch&, const BatchReport&, TimePoint) {}

  // What it has learnt so far, to be kept; nothing where it does not learn. May allocate.
  virtual std::optional<LearnedState> Learned() const { return std::nullopt; }
  // Goes on from what another of its kind has learnt, instead of from its own beginning; an error,
  // and no change, where `learned` is not of its form. Before the first question. May allocate.
  virtual Status Resume(const LearnedState& /*learned*/) {
    return InvalidArgument("policy '" + std::string(name()) + "' learns nothing");
  }

 private:
  DecisionCost decision_cost_;
};

}  // namespace tactus
