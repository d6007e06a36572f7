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
#include <string>
#include <utility>

#include "base/expected.h"
#include "core/decision.h"
#include "core/policy_traits.h"
#include "core/view.h"

namespace tactus {

class Policy {
 public:
  explicit Policy(PolicyTraits traits) : traits_(std::move(traits)) {}
  virtual ~Policy() = default;

  const PolicyTraits& traits() const { return traits_; }
  const std::string& name() const { return traits_.name; }
  // Once, by whoever makes the policy.
  void SetDecisionCost(const DecisionCost& cost) { traits_.decision_cost = cost; }

  virtual Decision Decide(const View& view, TimePoint now) = 0;

  // The set of models or lanes, or the profile, has changed. Called before the first question and
  // at every change after it; size indices here. May allocate.
  virtual void Prepare(const View&) {}
  virtual void OnPlan(const View&) {}  // view.plan has changed. May allocate.

  // To keep an index. OnQueueChange covers every change that is not one of the two below it.
  virtual void OnArrive(ModelId, const Request&) {}   // it was just pushed
  virtual void OnPopFront(ModelId, int /*count*/) {}  // the first `count` are about to leave
  virtual void OnQueueChange(ModelId) {}

  // A batch began or ended on the lane, or it was opened or closed. Prepare covers all lanes.
  virtual void OnLaneChange(const Lane&) {}

  // How many candidates it has examined so far, for drivers that charge for decisions. It counts
  // what the algorithm must examine, not what this implementation does.
  std::uint64_t examined() const { return examined_; }

 protected:
  void CountExamined(std::uint64_t candidates = 1) { examined_ += candidates; }

 private:
  PolicyTraits traits_;
  std::uint64_t examined_ = 0;
};

}  // namespace tactus
