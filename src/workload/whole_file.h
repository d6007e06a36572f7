// Files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// Written aside and renamed: a reader, or a run that was cut off, never sees half of it. `what` is
// the document in the error, "this profile".
Status WriteWhole(std::string_view text, const std::filesystem::path& path, std::string_view what);

}  // namespace tactus
