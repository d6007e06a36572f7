// What a command was told to write into a file.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// Written where it is to be, since that may be a pipe or a device. `what` is it in the error,
// "report", which has the system's reason: kUnavailable.
Status WriteFileText(std::string_view text, const std::filesystem::path& path,
                     std::string_view what);

}  // namespace tactus
