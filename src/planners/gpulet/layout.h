// Devices, how they are split into gpu-lets, and who is in which: what the planners of this folder
// build step by step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planners/gpulet/duty_cycle.h"
#include "planners/gpulet/interference.h"

namespace tactus {

struct GpuLet {
  int device = 0;
  LaneClass lane_class;
  std::vector<LaneMember> members;  // empty: free
};

class Layout {
 public:
  // All devices whole and free. `interference`: nothing where lanes are taken not to disturb each
  // other. Both outlive the layout.
  // `expected`: a gpu-let that is alone on its device is filled as if the worst of these were its
  // neighbour. `neighbours_bear_it`: nobody is put beside whom those in the device's other gpu-let
  // could not keep their SLOs; else they are counted on to run as when they were put there.
  Layout(const PlanInput& input, const InterferenceModel* interference,
         const std::vector<ModelId>& expected = {}, bool neighbours_bear_it = true);

  const std::vector<GpuLet>& gpulets() const { return gpulets_; }
  // The free ones, smallest first.
  std::vector<int> Free() const;
  bool IsWhole(int i) const { return gpulets_[i].lane_class == input_.whole(); }

  // Gives a whole free one the share of `part`, and the rest to a new free one; false where no lane
  // class has the rest's share, and nothing happens.
  bool Split(int i, LaneClass part);
  // A free one and a free other on its device are one whole again.
  void RevertSplit(int i);

  // The most of `rate_rps` that the model can have of gpu-let i beside who is there, with every
  // SLO on the device kept that is looked at; nothing where the device has no memory for it.
  double Most(int i, ModelId model, double rate_rps) const;
  // The most that the model alone gets of such a gpu-let, beside the neighbours that are expected.
  double MostAlone(LaneClass lane, ModelId model) const;
  // To be called with what Most allows.
  void Add(int i, ModelId model, double rate_rps);

  // Where no device's memory is in the model's way: nothing. Else on how many it is, and on one of
  // them what for.
  std::string MemoryInTheWayOf(ModelId model) const;

  Plan ToPlan(std::uint64_t epoch) const;

 private:
  bool Serves(int device, ModelId model) const;
  bool HasMemoryFor(ModelId model, int device) const;
  // Who is in the device's other gpu-let, or expected there; nobody where i is whole.
  std::vector<LaneMember> InOther(int i) const;
  // What the members of the device's other gpu-let cost the model in gpu-let i.
  double Slowdown(int i, ModelId model, std::span<const LaneMember> beside) const;
  double Slowdown(LaneClass lane, ModelId model, LaneClass other,
                  std::span<const LaneMember> beside) const;
  // The class that has what `part` leaves of a device, or nothing.
  std::optional<LaneClass> ComplementOf(LaneClass part) const;
  // The other gpu-let of i's device, or nothing.
  std::optional<int> Beside(int i) const;
  // `members` of gpu-let i with the slowdowns that `beside` causes them, where that is looked at.
  std::vector<LaneMember> Slowed(int i, std::vector<LaneMember> members,
                                 std::span<const LaneMember> beside) const;

  const PlanInput& input_;
  const InterferenceModel* interference_;
  const bool neighbours_bear_it_;
  std::vector<LaneMember> expected_;  // in a free gpu-let beside one in use
  std::vector<GpuLet> gpulets_;
  std::vector<std::vector<Throughput>> uses_;  // by lane class, by model
  std::vector<double> held_mb_;                // by device; empty where memory is not looked at
};

}  // namespace tactus
