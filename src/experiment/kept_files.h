// Keeps files that a run reads from being overwritten by what it writes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"
#include "workload/scenario.h"

namespace tactus {

// Whether the paths lead to one file: by their names, or, where both exist, as hard links of it.
bool SameFile(const std::filesystem::path& a, const std::filesystem::path& b);
// What is no regular file (/dev/null) may be read and written by several.
bool MayBeShared(const std::filesystem::path& path);

// kInvalidArgument where one of `written` is among the files `read`; empty paths count for nothing.
// `by` is who reads them, for the message.
Status KeepFiles(const std::string& by, const std::vector<std::filesystem::path>& read,
                 const std::vector<std::string>& written);

// KeepFiles of what a scenario names: its profile, traces and schedule.
Status KeepFilesOf(const Scenario& scenario, const std::vector<std::string>& written);

}  // namespace tactus
