// Workers that are alike are one lane class: policies plan and batch over all of its lanes together
// (Symphony, Section 4: any of an application's devices may take any batch), and what their batches
// really take is followed together.
#pragma once

#include <span>

#include "site/messages.h"

namespace tactus {

// Latencies of workers that are alike differ by this factor at most.
inline constexpr double kAlike = 1.15;

struct ClassedWorker {
  LaneClass lane_class;
  const WorkerIntroduction* worker = nullptr;
};

// The class of a new worker's lanes: one whose workers share a model with it and are all alike it
// in what they share, else the first that nobody is of.
LaneClass ClassFor(const WorkerIntroduction& worker, std::span<const ClassedWorker> others);

}  // namespace tactus
