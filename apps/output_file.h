// A file that a command will write, asked about before the command works for it.
#pragma once

#include <CLI/CLI.hpp>

namespace tactus {

// Accepts a path that could be created or overwritten now. Leaves the file system as it is.
CLI::Validator WritableFile();

}  // namespace tactus
