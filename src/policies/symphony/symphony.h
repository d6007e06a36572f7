// Symphony in O(log models + log lanes) an event, however many requests wait: the decisions of
// PlainSymphony, every one (symphony_test.cc compares them).
//
// What makes it possible: a candidate stays exact until its queue changes or its `latest` passes.
// So a model's candidates are made anew when its queue changed since the last question, and when
// Match comes upon one whose latest has passed; Match keeps them in order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/indexed_heap.h"
#include "core/policy.h"
#include "policies/match.h"
#include "policies/symphony/adaptive_lead.h"
#include "policies/symphony/arrival_rate.h"
#include "policies/symphony/lane_groups.h"
#include "policies/symphony/symphony_options.h"

namespace tactus {

class Symphony final : public Policy {
 public:
  Symphony(std::string name, SymphonyOptions options)
      : Policy({.name = std::move(name), .least = options.Least()}), options_(options) {}

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId m, const Request& request) override;
  void OnPopFront(ModelId m, int) override { Touch(m); }
  void OnQueueChange(ModelId m) override { Touch(m); }
  void OnLaneChange(const Lane& lane) override { match_.SetFree(lane.id, lane.HasFreeSlot()); }

 private:
  struct ModelState {
    ArrivalRate rate;
    CandidateOptions options;
    bool touched = false;   // its queue changed: it is in touched_
    bool retarget = false;  // its rate changed
  };
  // One candidate of a model, for the lanes of a group.
  struct Offer {
    int target = 1;
    SymphonyCandidate candidate;
  };

  void Touch(ModelId m) {
    if (models_[m.value()].touched) return;
    models_[m.value()].touched = true;
    touched_.push_back(m);
  }
  Offer& OfferOf(ModelId m, std::uint32_t group) {
    return offers_[m.value() * groups_.size() + group];
  }
  void SetTargets(const View& view, ModelId m);
  void SetLead(ModelId m);
  void Refresh(const View& view, ModelId m, std::uint32_t group, TimePoint now);
  void RefreshTouched(const View& view, TimePoint now);

  const SymphonyOptions options_;
  LaneGroups groups_;
  AdaptiveLead leads_;
  RevisionsSeen seen_;
  Match match_;
  std::vector<ModelState> models_;  // by ModelId
  std::vector<Offer> offers_;       // by model, then group
  std::vector<ModelId> touched_;
  IndexedHeap<TimePoint> lost_;  // models by when their head is lost on every lane
};

}  // namespace tactus
