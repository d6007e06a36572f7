// What each kernel of a batch read, wrote and computed, out of the trace that ONNX Runtime writes
// of a run: the graph as it was optimised for this processor, with every tensor's shape. No shape
// needs inferring, whatever the graph leaves open.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"

namespace tactus {

// One BatchWork for each run in the trace. Convolutions and matrix products count two operations
// for each multiply-add that their shapes imply, everything else one for each element that it
// writes. kInvalidArgument names what the trace lacks.
Expected<std::vector<BatchWork>> ParseTrace(std::string_view json);

// The contents of the file at `path`, parsed; the file is removed.
Expected<std::vector<BatchWork>> TakeTrace(const std::filesystem::path& path);

}  // namespace tactus
