// Runs a plan, whoever made it (gpu-lets: planners/gpulet): each lane has its models, each of them
// a planned batch, and takes them in turn, round and round. In its turn a model runs what was sent
// to this lane and waits, up to the planned batch; a model of which nothing waits is passed over,
// so a lane never idles beside a request of its own, and one whose batches fill the lane runs them
// back to back. As a round of planned batches takes no longer than the plan's cycle, a request
// waits for at most a cycle before its own batch runs, which is what the plan was held to
// (core/planner.h): the paper's duty cycle is the longest round, and its windows are the order in a
// round.
//
// A model on several lanes is divided among them by what the plan lets each of them sustain. Heads
// are given up that no lane of the model could answer in time any more, or that would hold a batch
// under its planned size. A model that has a lane to itself may run larger batches than planned.
//
// With strict windows it is the plan's windows that say when: for plans that keep batches apart
// which would slow each other. A lane may idle then beside a request of its own.
//
// With deferred windows a batch besides waits in its window for what may still join it: it starts
// once the planned size is there, or when one more could no longer join without the batch ending
// after its window or after its head's deadline.
//
// What waits for a lane that closes or dies goes to the others that have its model. Without a plan
// every lane runs every model that it serves. What a decision costs does not grow with the lanes:
// only those are looked at where something changed.
//
// With other defaults this is Nexus (Shen et al., SOSP 2019), as Symphony's Section 2.2 states it:
// batches may exceed their planned size where the head's deadline allows it, whoever else has the
// lane, and front ends route without coordination, so that what reaches a lane is uneven. Its best
// documented setting is one front end (8 cost it 11 to 45 %, Symphony, Section 5.1); none, where
// lanes share each model's queue, goes beyond it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id_set.h"
#include "base/indexed_heap.h"
#include "core/policy.h"
#include "policies/lane_turns.h"
#include "policies/model_routes.h"

namespace tactus {

struct PlannedOptions {
  // A batch may exceed its planned size where the head's deadline allows it.
  bool grow = false;
  // A model that has a lane to itself may run larger batches there.
  bool grow_alone = true;
  // Who sends each request to a lane that runs its model: so many, by weighted round robin, each on
  // its own (policies/model_routes.h). 0: nobody; lanes take what they can from the model's queue.
  int front_ends = 1;
  // kOrder: they are the order of turns. kStrict: a batch starts only inside a window that the plan
  // has for its model there, and ends within it by the profile. kDefer: the same, as late in the
  // window as the head's deadline allows. Cycles begin when the plan is adopted, on all lanes at
  // once.
  enum class Windows { kOrder, kStrict, kDefer };
  Windows windows = Windows::kOrder;
  // How often a driver without a plan of its own (a scenario's, a file's) makes one, Nexus's way.
  Duration epoch = Seconds(10);
};

class Planned final : public Policy {
 public:
  Planned(std::string name, PlannedOptions options)
      : Policy({.name = std::move(name),
                .least = LeastService{},
                .planner = "nexus",
                .epoch = options.epoch}),
        options_(options) {}

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override { TakePlan(view); }
  void OnPlan(const View& view) override {
    adopted_.reset();
    TakePlan(view);
  }
  void OnArrive(ModelId m, const Request& request) override;
  void OnPopFront(ModelId m, int count) override;
  void OnQueueChange(ModelId m) override;
  void OnLaneChange(const Lane& lane) override;

 private:
  struct ModelState : ModelRoutes {
    Duration quickest{};       // alone, on the best lane that runs it
    bool touched = false;      // its queue changed: it is in touched_
    bool count_again = false;  // in a way that we were not told
  };
  struct PlannedLane : LaneTurns {
    bool free = false;
    bool open = true;
    TimePoint look = kNever;  // when to look again, as a window opens or a batch need not wait
                              // any longer; kNever: not known
    TimePoint held = kNever;  // until when a batch that waits in its window leaves it to others
  };

  void TakePlan(const View& view);
  void AddTurn(const View& view, const Lane& lane, const PlanEntry& entry, Duration cycle);
  void SetQuickest(const View& view, ModelId m);
  void Touch(ModelId m);
  void Refresh(const View& view);
  void SetOpen(PlannedLane& lane, bool open);
  std::uint64_t front_ends() const { return static_cast<std::uint64_t>(options_.front_ends); }
  // How many requests of its model a route's lane may take.
  int Claims(const ModelRoutes::Route& route) const {
    return options_.front_ends > 0 ? route.claims : std::numeric_limits<int>::max();
  }
  std::optional<Decision> Run(const View& view, const Lane& lane, TimePoint now);
  // How long a batch of this turn may take from now on; 0: it has no window now, or waits in it.
  Duration RoomOf(const View& view, const Lane& lane, const LaneTurns::Turn& turn, TimePoint now);
  bool HasWindow(const View& view, const Lane& lane, const LaneTurns::Turn& turn) const {
    return options_.windows != PlannedOptions::Windows::kOrder && view.plan != nullptr &&
           turn.length > Duration{} && view.plan->lanes[lane.id.value()].cycle > Duration{};
  }
  // Until when a batch waits in a window that closes at `end`: so late that one more may still
  // join; `now`: it is due. kNever: it cannot end in time any more, not even alone.
  TimePoint WaitsUntil(const View& view, const Lane& lane, const LaneTurns::Turn& turn,
                       TimePoint now, TimePoint end) const;

  const PlannedOptions options_;
  RevisionsSeen seen_;
  std::vector<ModelState> models_;  // by ModelId
  std::vector<PlannedLane> lanes_;  // by LaneId
  IdSet ready_;                     // free lanes that may have something to run
  IndexedHeap<TimePoint> lost_;     // models by the last instant at which their head can be met
  IndexedHeap<TimePoint> windows_;  // lanes by when to look again, where windows say when
  std::optional<TimePoint>
      adopted_;  // when the plan's cycles began; nothing before the first question
  std::vector<ModelId> touched_;
  // The model and route whose claims the pop after a decision uses up.
  ModelId popping_;
  std::uint32_t popping_route_ = 0;
};

}  // namespace tactus
