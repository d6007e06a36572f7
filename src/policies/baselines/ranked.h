// The simple schedulers that EdgeServing is compared with: serve the queue that ranks first, all
// that fits in a batch, at an exit given by a rule. Work conserving; they drop nothing.
#pragma once

#include <string>
#include <utility>

#include "core/policy.h"

namespace tactus {

// Whether `a` is served before `b`; neither is empty. On a tie the lower ModelId is.
using QueueRank = bool (*)(const RequestQueue& a, const RequestQueue& b);
bool LongestQueueFirst(const RequestQueue& a, const RequestQueue& b);
bool EarliestDeadlineFirst(const RequestQueue& a, const RequestQueue& b);  // of the heads
bool EarliestArrivalFirst(const RequestQueue& a, const RequestQueue& b);   // of the heads

enum class ExitRule { kFinal, kShallowest, kDeepestFeasible };

class RankedPolicy final : public Policy {
 public:
  RankedPolicy(std::string name, QueueRank rank, ExitRule exit_rule, int batch)
      : Policy({.name = std::move(name)}), rank_(rank), exit_rule_(exit_rule), batch_(batch) {}

  Decision Decide(const View& view, TimePoint now) override;

 private:
  ExitId Exit(const View& view, ModelId m, int batch, const Lane& lane, TimePoint now) const;

  const QueueRank rank_;
  const ExitRule exit_rule_;
  const int batch_;
};

}  // namespace tactus
