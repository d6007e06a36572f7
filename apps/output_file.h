// A file that a command will write, asked about before the command works for it.
#pragma once

#include <CLI/CLI.hpp>

namespace tactus {

// Accepts a path that could be created or overwritten now. Leaves the file system as it is.
CLI::Validator WritableFile();

// Throws CLI::ValidationError where two options of the command that was parsed name one file, of
// which only what is written last would be left. What is no regular file (/dev/null) may be shared.
void RefuseSharedFiles(CLI::App& command);

}  // namespace tactus
