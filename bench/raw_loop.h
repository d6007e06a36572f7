// ONNX Runtime and nothing else: the yardstick for what a server around it costs.
#pragma once

#include <filesystem>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus {

struct RawLoopResult {
  std::int64_t batches = 0;
  Duration elapsed{};
};

// Runs `graph`, whose one input of FP32 has an open batch dimension, on batches of zeros that lie
// ready in memory, on this thread, again and again for `length`. Loading and three runs to warm up
// are not counted.
Expected<RawLoopResult> RunRawLoop(const std::filesystem::path& graph, int batch, Duration length);

}  // namespace tactus
