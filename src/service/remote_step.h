// Steps of pipelines that run on other nodes, as their sender counts them.
#pragma once

#include <cstdint>
#include <string>

#include "base/serving_time.h"

namespace tactus {

// What became of a step's calls at another node, since the start.
struct RemoteStep {
  std::string pipeline;
  std::string step;
  std::string node;
  std::uint64_t answered = 0;
  std::uint64_t failed = 0;  // also those that another node answered then, or that were cancelled
  std::uint64_t bytes_out = 0;  // of tensors, and of what a group is
  std::uint64_t bytes_in = 0;   // of answers, as messages
  Duration there{};             // of answered ones: in that node's queue, and running
  Duration link{};              // all else from sending to answer
};

}  // namespace tactus
