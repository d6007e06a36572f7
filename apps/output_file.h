// Files that a command will write, asked about before it works for them, and those that it reads.
#pragma once

#include <CLI/CLI.hpp>

namespace tactus {

// Accepts a path that could be created or overwritten now. Leaves the file system as it is.
CLI::Validator WritableFile();

// The same for what a server writes while it serves or stops: no pipe.
CLI::Validator KeptFile();

// Accepts anything: marks an option whose value, or what it says after a '=', is a file that the
// command reads.
CLI::Validator ReadFile();

// Throws CLI::ValidationError where two options of the command that was parsed name one file, of
// which only what is written last would be left: both write it, or one reads what the other writes.
// What is no regular file (/dev/null) may be shared, and what is gone on from, as --predictor by
// --save-predictor, is meant to be.
void RefuseSharedFiles(CLI::App& command);

}  // namespace tactus
