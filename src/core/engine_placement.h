// Where on its device an engine runs a lane's batches. Drivers make it and engines read it; whoever
// plans, decides or keeps a journal hands it on unread. A kind of device is an alternative here.
#pragma once

#include <variant>
#include <vector>

namespace tactus {

// A process of its own for one model, until it is unloaded: to try it where it can harm no other.
inline constexpr int kTrialProcess = -1;

// On a processor: on how many threads the engine runs one batch, and the cores that all batches of
// the lane share; empty: any.
struct CpuPlacement {
  int threads = 1;
  std::vector<int> cores = {};
  // Which process, if the engine runs in processes of its own.
  int process = 0;

  bool operator==(const CpuPlacement&) const = default;
};

// On a device that LaneSpec::device names: how much of it lies before the lane's share, as a
// fraction. Lanes whose parts do not overlap have no SM in common.
struct CudaPlacement {
  double offset = 0;

  bool operator==(const CudaPlacement&) const = default;
};

using EnginePlacement = std::variant<CpuPlacement, CudaPlacement>;

// The placement of an engine that runs on processors alone.
inline const CpuPlacement& OnCpu(const EnginePlacement& placement) {
  return std::get<CpuPlacement>(placement);
}
// The cores of the threads that feed a lane; empty: any.
inline std::vector<int> CoresOf(const EnginePlacement& placement) {
  const auto* cpu = std::get_if<CpuPlacement>(&placement);
  return cpu == nullptr ? std::vector<int>{} : cpu->cores;
}

}  // namespace tactus
