// What tells how much of a device its batches use: its peaks, and counters of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/resource_use.h"

namespace tactus {

// The most that a device does, measured: what shares of it are shares of.
struct DevicePeaks {
  double fmas = 0;  // multiply-adds of 32-bit floats, per second
  double l2_bytes = 0;
  double memory_bytes = 0;
  std::uint64_t cache_bytes = 0;  // that its L2 cache holds
};

// Counters of a device between two looks at them. All that runs there counts, whoever's it is.
class DeviceCounters {
 public:
  // By Resource, the mean share of the peak since Begin; none: the device does not count it.
  using Reading = std::array<std::optional<double>, kResources>;

  virtual ~DeviceCounters() = default;
  virtual std::string source() const = 0;  // what counts and what, for a profile
  virtual Duration least() const = 0;      // from Begin to Read
  virtual Status Begin() = 0;
  virtual Expected<Reading> Read() = 0;
};

// What an engine is besides that can tell them of the device that it runs on.
class DeviceMeter {
 public:
  virtual ~DeviceMeter() = default;
  // Measured while nothing else runs there.
  virtual Expected<DevicePeaks> MeasurePeaks() = 0;
  // The engine outlives them.
  virtual Expected<std::unique_ptr<DeviceCounters>> OpenCounters() = 0;
};

}  // namespace tactus
