// What a server on this machine spends on calls beside running batches: a scenario's [front].
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/expected.h"

namespace tactus {

// Processor time of the server's I/O threads.
struct FrontCost {
  double call_us = 0;  // of a call, whatever its size
  double byte_ns = 0;  // for each byte of its body
};

struct FrontCostOptions {
  std::filesystem::path program;  // `tactus`
  std::string protocol = "http";  // or "grpc"
  int rounds = 3;
  double seconds = 1;  // of each size, in each round
};

// Serves a made-up model in a process of its own and calls it over loopback, with little and with
// much in turns; medians over the rounds. `progress` is told the part that is done. Unavailable
// where the server does not start.
Expected<FrontCost> MeasureFront(const FrontCostOptions& options,
                                 const std::function<void(double)>& progress);

}  // namespace tactus
