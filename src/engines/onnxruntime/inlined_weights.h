// A graph with the weights that files beside it hold, as one file: what the library maps may change
// under it, and it takes from memory those of the main graph alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engines/onnxruntime/weights_beside.h"

namespace tactus {

// `graph` with the numbers of `files` in all its tensors, also in branches, loops and attributes.
// Nothing where it is damaged, or a tensor names a file or a part that is not there: the library
// says that better.
std::optional<std::string> WithWeights(std::string_view graph, std::span<const WeightsFile> files);

}  // namespace tactus
