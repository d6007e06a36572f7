// What of a device beside the processor decides how long a batch takes there, as profiles keep it.
#pragma once

#include <cstdint>
#include <string>

namespace tactus {

struct DeviceFacts {
  std::string name;    // "NVIDIA H200"
  std::string uuid;    // of this very device: kept, and decides nothing
  int capability = 0;  // 10 times the major and the minor number: 90 is 9.0
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  int driver = 0;             // the newest CUDA that the driver knows, 1000 times the major number
                              // and 10 times the minor one: 13000
  int power_limit_watts = 0;  // 0: unknown

  bool operator==(const DeviceFacts&) const = default;
};

}  // namespace tactus
