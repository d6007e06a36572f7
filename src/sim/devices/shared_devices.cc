#include "sim/devices/shared_devices.h"

#include <algorithm>
#include <cmath>

namespace tactus {

SharedDevices::SharedDevices(const Scenario& scenario, std::span<const Model> models,
                             std::span<const LaneSpec> lanes, bool suspends, EventHeap& heap)
    : heap_(heap), priority_weight_(scenario.priority_weight), levels_(models) {
  if (scenario.capacity.empty()) return;
  for (const LaneSpec& lane : lanes) {
    const std::uint32_t device = lane.device.value();
    if (lane_slots_.size() <= device) lane_slots_.resize(device + 1);
    for (int s = 0; s < scenario.slots; ++s) {
      lane_slots_[device].push_back(where_.size());
      where_.push_back({device, static_cast<int>(lane_slots_[device].size()) - 1});
    }
  }
  SharedDeviceOptions options;
  std::copy_n(scenario.capacity.begin(), kResources, options.contention.capacity.begin());
  options.contention.crosstalk = scenario.crosstalk;
  options.suspends = suspends;
  options.preemption = FromMillis(scenario.preemption_ms);
  for (const auto& lane_slots : lane_slots_) {
    devices_.emplace_back(options, static_cast<int>(lane_slots.size()));
  }
  changes_.assign(devices_.size(), kNoEvent);
}

void SharedDevices::Begin(std::size_t lane_slot, TimePoint now, TimePoint at,
                          const SharedWork& work) {
  const Where where = where_[lane_slot];
  SharedWork weighted = work;
  weighted.contender.weight = Weight(work.priority);
  devices_[where.device].Begin(where.slot, now, at, weighted);
  Schedule(where.device);
}

// Of hundreds of levels the last would have 0, and nothing to share out among themselves.
double SharedDevices::Weight(int priority) const {
  constexpr double kLeast = 1e-200;
  return std::max(std::pow(priority_weight_, -levels_.LevelOf(priority)), kLeast);
}

void SharedDevices::Stop(std::size_t lane_slot, TimePoint now) {
  const Where where = where_[lane_slot];
  devices_[where.device].Stop(where.slot, now);
  Schedule(where.device);
}

std::optional<SharedDevices::Ended> SharedDevices::Take(const Event& change, TimePoint now) {
  const std::uint32_t device = change.subject;
  if (changes_[device] != change.sequence) return std::nullopt;
  const int slot = devices_[device].Advance(now);
  if (slot != SharedDevice::kNone) {
    return Ended{lane_slots_[device][slot], devices_[device].uploaded(slot)};
  }
  Schedule(device);
  return std::nullopt;
}

// The event before it, if any, stays behind as a shell.
void SharedDevices::Schedule(std::uint32_t device) {
  const TimePoint next = devices_[device].next();
  changes_[device] = next == kNever ? kNoEvent : heap_.Push(next, EventClass::kDevice, device);
}

}  // namespace tactus
