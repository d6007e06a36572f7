// The devices of a simulated system on which batches slow each other, wherever on it they run: in
// several slots of one lane, or in several lanes that are shares of one device. Each change of one
// is an event.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model.h"
#include "core/plan.h"
#include "core/priority_levels.h"
#include "sim/devices/shared_device.h"
#include "sim/world/event_heap.h"
#include "workload/scenario.h"

namespace tactus {

class SharedDevices {
 public:
  // A batch that ended. `lane_slot` is lane * slots + slot.
  struct Ended {
    std::size_t lane_slot = 0;
    TimePoint uploaded;
  };

  // None where the scenario says nothing of contention. `heap` outlives it. All lanes have the
  // scenario's slots. The priorities of `models` make the levels. `suspends`: sim/shared_device.h.
  SharedDevices(const Scenario& scenario, std::span<const Model> models,
                std::span<const LaneSpec> lanes, bool suspends, EventHeap& heap);

  bool empty() const { return devices_.empty(); }
  // Its weight is that of the level of its priority, whatever `work` says.
  void Begin(std::size_t lane_slot, TimePoint now, TimePoint at, const SharedWork& work);
  void Stop(std::size_t lane_slot, TimePoint now);
  // To be called for an event of class kDevice until it answers with nothing. Events that a later
  // change has overtaken bring nothing.
  std::optional<Ended> Take(const Event& change, TimePoint now);

 private:
  static constexpr std::uint64_t kNoEvent = ~std::uint64_t{0};
  struct Where {
    std::uint32_t device = 0;
    int slot = 0;
  };

  double Weight(int priority) const;
  void Schedule(std::uint32_t device);

  EventHeap& heap_;
  const double priority_weight_;
  const PriorityLevels levels_;
  std::vector<SharedDevice> devices_;                 // by DeviceId
  std::vector<std::uint64_t> changes_;                // by DeviceId: the event of its next change
  std::vector<std::vector<std::size_t>> lane_slots_;  // by DeviceId, by its slot
  std::vector<Where> where_;                          // by lane_slot
};

}  // namespace tactus
