// Files that are read, and written, whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// What is in the regular file, at most `most` bytes. Never waits for whoever would write a pipe, so
// a thread that a stop joins may call it. kNotFound where it cannot be opened; kInvalidArgument for
// what is no file (a folder, a pipe, a device) and for a larger one.
Expected<std::string> ReadRegular(const std::filesystem::path& path, std::size_t most);

// What is in the file. `what` is the document in the error, "profile"; `remedy` its end, "; make
// one with ...". kNotFound where it cannot be read, kInvalidArgument for a file with nothing
// in it and for what is no regular file. A pipe is read to its end where the process was given it
// open, as `<(COMMAND)` and /dev/stdin are: such a one has its writer.
Expected<std::string> ReadWhole(const std::filesystem::path& path, std::string_view what,
                                std::string_view remedy = "");

// Written aside and renamed: a reader, or a run that was cut off, never sees half of it.
// A link's target is written; what is no regular file is left as it is, and an error.
Status WriteWhole(std::string_view text, const std::filesystem::path& path, std::string_view what,
                  unsigned mode = 0666);

}  // namespace tactus
