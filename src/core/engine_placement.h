// Where on its device an engine runs a lane's batches. Drivers make it and engines read it; whoever
// plans, decides or keeps a journal hands it on unread. A kind of device is an alternative here.
#pragma once

#include <variant>
#include <vector>

namespace tactus {

// On a processor: on how many threads the engine runs one batch, and the cores that all batches of
// the lane share; empty: any.
struct CpuPlacement {
  int threads = 1;
  std::vector<int> cores = {};

  bool operator==(const CpuPlacement&) const = default;
};

using EnginePlacement = std::variant<CpuPlacement>;

// Of an engine that runs on processors alone.
inline const CpuPlacement& OnCpu(const EnginePlacement& placement) {
  return std::get<CpuPlacement>(placement);
}

}  // namespace tactus
