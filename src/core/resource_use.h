// What a batch asks of a device beside time: how much of each resource it keeps busy while it runs
// alone, and how long its input takes to get there (Strait, Section 3.2).
#pragma once

#include <array>
#include <cstddef>

#include "base/serving_time.h"

namespace tactus {

// The memory hierarchy and the pipelines that Strait measures.
enum class Resource : std::size_t { kL1, kL2, kDram, kTensor, kFma };
inline constexpr std::size_t kResources = 5;
inline constexpr std::array<const char*, kResources> kResourceNames = {"l1", "l2", "dram", "tensor",
                                                                       "fma"};

// By Resource: the share of the device's peak throughput, in [0, 1] for one batch; sums of several
// batches may exceed 1.
using Throughput = std::array<double, kResources>;

constexpr Throughput operator+(Throughput a, const Throughput& b) {
  for (std::size_t r = 0; r < kResources; ++r) a[r] += b[r];
  return a;
}
constexpr Throughput operator-(Throughput a, const Throughput& b) {
  for (std::size_t r = 0; r < kResources; ++r) a[r] -= b[r];
  return a;
}
constexpr Throughput operator*(double factor, Throughput a) {
  for (double& share : a) share *= factor;
  return a;
}
// The resource that is busiest.
constexpr double Peak(const Throughput& a) {
  double peak = 0;
  for (const double share : a) peak = share > peak ? share : peak;
  return peak;
}

struct ResourceUse {
  Throughput throughput{};  // time-weighted mean over the batch's kernels
  Duration transfer{};      // of its input, P95, part of the profiled latency

  bool operator==(const ResourceUse&) const = default;
};

// For a model whose profile does not say: half of everything, so that two such batches just fill a
// device, and no transfer.
inline constexpr ResourceUse kAssumedUse{.throughput = {0.5, 0.5, 0.5, 0.5, 0.5}};

}  // namespace tactus
