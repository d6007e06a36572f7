// Nexus (Shen et al., SOSP 2019), as Symphony's Section 2.2 states it: every epoch a planner
// (planners/nexus) says which models each lane runs and in batches of what size; front ends send
// each request to one of the lanes that run its model; a lane runs its models in turn, eagerly, in
// batches that may be smaller than planned, and gives up heads that would hold a batch under its
// planned size (window drop).
//
// Front ends route by weighted round robin (policies/model_routes.h), each on its own, so that what
// reaches a lane is uneven.
//
// Best documented setting: one front end (8 cost it 11 to 45 %, Symphony, Section 5.1). frontends=0
// goes beyond it: lanes share each model's queue. Without a plan every lane runs every model.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/lane_turns.h"
#include "policies/lost_heads.h"
#include "policies/model_routes.h"

namespace tactus {

struct NexusOptions {
  int front_ends = 1;
  bool grow = true;  // a batch may exceed its planned size where the head's deadline allows it
  Duration epoch = Seconds(10);
};

class Nexus final : public Policy {
 public:
  Nexus(std::string name, NexusOptions options)
      : Policy({.name = std::move(name),
                .least = LeastService{},
                .planner = "nexus",
                .epoch = options.epoch}),
        options_(options) {}

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnPlan(const View& view) override;
  void OnArrive(ModelId m, const Request& request) override;
  void OnPopFront(ModelId m, int count) override;
  void OnQueueChange(ModelId m) override { models_[m.value()].count_again = true; }
  void OnLaneChange(const Lane& lane) override;

 private:
  struct ModelState : ModelRoutes {
    bool count_again = false;  // the queue changed in a way that we were not told
  };
  void TakePlan(const View& view);
  void AddTurn(const View& view, const Lane& lane, const PlanEntry& entry);
  void CountAgain(const View& view);
  // Of the model's requests, those that the turn's lane may take.
  int Mine(const LaneTurns::Turn& turn) const;

  const NexusOptions options_;
  LostHeads lost_;
  std::vector<ModelState> models_;  // by ModelId
  std::vector<LaneTurns> lanes_;    // by LaneId
  std::vector<bool> open_;          // by LaneId
  // Whose claims the pop that follows a decision uses up.
  ModelId popping_;
  std::uint32_t popping_route_ = 0;
};

}  // namespace tactus
