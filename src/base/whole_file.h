// Files that are read, and written, whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// What is in the file. `what` is the document in the error, "profile"; `remedy` its end, "; make
// one with ...". kNotFound where it cannot be read, kInvalidArgument for a folder and for a file
// with nothing in it.
Expected<std::string> ReadWhole(const std::filesystem::path& path, std::string_view what,
                                std::string_view remedy = "");

// Written aside and renamed: a reader, or a run that was cut off, never sees half of it.
Status WriteWhole(std::string_view text, const std::filesystem::path& path, std::string_view what);

}  // namespace tactus
