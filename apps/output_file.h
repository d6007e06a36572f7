// Files that a command will write, asked about before it works for them, and those that it reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/expected.h"
#include "workload/scenario.h"

namespace tactus {

// Accepts a path that could be created or overwritten now. Leaves the file system as it is.
CLI::Validator WritableFile();

// Accepts anything: marks an option whose value, or what it says after a '=', is a file that the
// command reads.
CLI::Validator ReadFile();

// Throws CLI::ValidationError where two options of the command that was parsed name one file, of
// which only what is written last would be left: both write it, or one reads what the other writes.
// What is no regular file (/dev/null) may be shared, and what is gone on from, as --predictor by
// --save-predictor, is meant to be.
void RefuseSharedFiles(CLI::App& command);

// The same of the files that another file names, known only once that is read: an error where one
// of `written` (empty: nothing) is among `read` (likewise). `by` is who reads them, for the
// message.
Status KeepFiles(const std::string& by, const std::vector<std::filesystem::path>& read,
                 const std::vector<std::string>& written);

// KeepFiles of what a scenario names: its profile, traces and schedule.
Status KeepFilesOf(const Scenario& scenario, const std::vector<std::string>& written);

}  // namespace tactus
