// Symphony as the paper states it: deferred batch scheduling, Algorithm 1 over all models at every
// question. A decision costs O(models * log batch); to be read beside the paper, and what the
// indexed version (symphony.h) is compared with.
//
//   UPDATECANDIDATE    MakeCandidate (candidate.h), made anew from the queue
//   ONMODELTIMER       the Wait until the earliest `exec`, then the free lane with the least id
//   ONGPUTIMER         the question after a Finish: the schedulable candidate with the least latest
//
// Lanes may differ: a model has a candidate for each group of equal lanes, and one that only slow
// lanes can no longer serve waits for a quick one.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/symphony/adaptive_lead.h"
#include "policies/symphony/arrival_rate.h"
#include "policies/symphony/lane_groups.h"
#include "policies/symphony/symphony_options.h"

namespace tactus {

class PlainSymphony final : public Policy {
 public:
  PlainSymphony(std::string name, SymphonyOptions options)
      : Policy({.name = std::move(name), .least = options.Least()}), options_(options) {}

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId m, const Request& request) override;

 private:
  struct Choice {
    SymphonyCandidate candidate;
    ModelId model;
    LaneId lane;
  };
  const Lane* FirstFree(const View& view, std::uint32_t group) const;
  // The candidate that goes now, if any; `wake` falls to when another becomes schedulable.
  std::optional<Choice> Choose(const View& view, TimePoint now, TimePoint& wake) const;
  // From when on the head of m is lost on every lane.
  TimePoint LostAfter(const View& view, ModelId m) const;

  const SymphonyOptions options_;
  LaneGroups groups_;
  AdaptiveLead leads_;
  RevisionsSeen seen_;
  std::vector<ArrivalRate> rates_;  // by ModelId
};

}  // namespace tactus
