// Changes which lanes there are while requests are served. One state machine for the simulator and
// the server: it says what is to be done, and is told what has been.
//
//   steady    -> a plan comes: Begin
//   preparing -> lanes that the plan has and the devices have not are made, load their models and
//                warm up in the background; the old layout serves. Each: Prepared
//   draining  -> the last one is ready: the new plan is read, new lanes open, old ones close and
//                finish what runs there. Each: Drained
//   steady
//
// Where a lane cannot be made (Failed), the transition is rolled back once all lanes have reported:
// the partial layout is removed, and the layout that served all the while stays.
//
// Requests wait with their model, not with a lane, so none is lost: what waits at the switch is
// divided among the new lanes. While old lanes finish their last batch, their device runs more than
// the plan has on it.
//
// Lanes are numbered device by device, twice as many as a device may have at once, so that the
// lanes of two layouts find room. A lane of the plan that is there already, with its share, is
// kept; the plan's devices are taken in the order that keeps most, among those of the same limits.
#pragma once

#include <memory>
#include <vector>

#include "base/expected.h"
#include "core/device_limits.h"
#include "core/plan.h"

namespace tactus {

struct TransitionStep {
  enum class Kind {
    kMake,    // a lane with this spec, and load and warm the models of its entries in next()
    kLoad,    // a lane that serves: the models of its entries in next() that it has not got
    kAdopt,   // next() is the plan now
    kOpen,    // the lane takes batches
    kClose,   // the lane takes none any more; Drained when the last one ended
    kUnload,  // of a lane that stays: models that next() has no more there, once none of them runs
    kRemove,  // the lane is gone, and its models with it
  };
  Kind kind;
  LaneId lane{};
  LaneSpec spec{};  // of kMake
};

class PlanTransition {
 public:
  using Steps = std::vector<TransitionStep>;

  explicit PlanTransition(std::vector<DeviceLimits> devices);
  explicit PlanTransition(int devices)
      : PlanTransition(std::vector<DeviceLimits>(static_cast<std::size_t>(devices))) {}

  // Every lane that may ever be, for a dispatcher; closed until a step opens it.
  std::vector<LaneSpec> AllLanes() const;

  // Takes up a plan; the steps may already be all there are. kInvalidArgument, and nothing happens,
  // for one that has more devices than there are or more lanes than one may have; kUnavailable
  // while another one is being taken up.
  Expected<Steps> Begin(const Plan& plan);
  // A lane of kMake or kLoad is ready.
  Steps Prepared(LaneId lane);
  // It cannot be: its device or its engine refuse it.
  Steps Failed(LaneId lane);
  // A lane of kClose has nothing left that runs.
  Steps Drained(LaneId lane);

  bool steady() const { return preparing_ == 0 && draining_ == 0; }
  // The plan that is being taken up, or that serves: its lanes are by LaneId, the closed ones
  // without entries. Null before the first.
  std::shared_ptr<const Plan> next() const { return next_; }

 private:
  enum class State { kFree, kMaking, kServing, kDraining };
  struct LaneState {
    State state = State::kFree;
    bool preparing = false;  // made, or given more models
    LanePlan serves;         // where kServing: what it was given last
  };

  // The index of device d's first lane; one more at the end: the number of lanes.
  std::size_t FirstOf(std::size_t device) const { return first_[device]; }
  std::size_t LanesOf(std::size_t device) const { return first_[device + 1] - first_[device]; }
  DeviceId DeviceOf(std::size_t index) const;
  bool Keeps(std::size_t index, const LanePlan& lane) const;
  int Kept(std::uint32_t device, const std::vector<const LanePlan*>& lanes) const;
  std::vector<std::uint32_t> ChooseDevices(
      const std::vector<std::vector<const LanePlan*>>& planned) const;
  void AssignLanes(std::uint32_t device, const std::vector<const LanePlan*>& lanes, Plan& next,
                   Steps& steps);
  Steps Settle();
  Steps Switch();
  Steps Abandon();

  std::vector<DeviceLimits> devices_;
  std::vector<std::size_t> first_;  // by device, and the end
  std::vector<LaneState> lanes_;    // by LaneId
  std::shared_ptr<const Plan> next_;
  std::shared_ptr<const Plan> serving_;  // the last that was adopted
  bool failed_ = false;                  // a lane of next_ cannot be made
  std::size_t preparing_ = 0;
  std::size_t draining_ = 0;
};

}  // namespace tactus
