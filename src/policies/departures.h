// What the policies that look for misses share: which requests leave a queue by the policy's own
// word. Those that leave without it are lost to their deadline, or were cancelled with it near.
#pragma once

#include <span>
#include <utility>

#include "core/decision.h"
#include "policies/priority_order.h"

namespace tactus {

class Departures {
 public:
  enum class Kind { kLaunched, kGivenUp, kLost };

  // `view` names queues that live until the next Prepare.
  void Prepare(const View& view) { queues_ = view.queues; }

  // At each question, before its answer: whether the highest level has missed since the last.
  bool NextQuestion() {
    answer_ = {};
    return std::exchange(missed_, false);
  }
  // The answer, which the dispatcher is about to carry out.
  Dispatch Answer(const Dispatch& dispatch) {
    answer_ = {dispatch.model, dispatch.batch, Kind::kLaunched};
    return dispatch;
  }
  Drop Answer(const Drop& drop) {
    answer_ = {drop.model, drop.count, Kind::kGivenUp};
    return drop;
  }

  // Says, for Policy::OnPopFront, how the model's first `count` requests leave. What is lost with
  // the highest level is a miss.
  Kind Leave(ModelId m, int count, const PriorityOrder& order) {
    const auto answer = std::exchange(answer_, {});
    if (answer.model == m && answer.count == count) return answer.kind;
    missed_ |= order.LevelOfFirst(queues_[m.value()], m, count) == 0;
    return Kind::kLost;
  }
  void Miss() { missed_ = true; }

 private:
  struct Leaving {
    ModelId model;
    int count = 0;
    Kind kind = Kind::kLost;
  };

  std::span<const RequestQueue> queues_;  // by ModelId
  Leaving answer_;                        // decided, and not yet carried out
  bool missed_ = false;                   // by the highest level, since the last question
};

}  // namespace tactus
