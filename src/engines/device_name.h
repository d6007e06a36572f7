// Where models run, as users say it: "cpu", or devices by kind and number, "cuda:0,cuda:1".
#pragma once

#include <string_view>
#include <vector>

#include "base/expected.h"

namespace tactus {

// The numbers of CUDA devices, in the order given; none: the processor. An error for what is
// neither, and for a device that is named twice.
Expected<std::vector<int>> ParseDevices(std::string_view text);

}  // namespace tactus
