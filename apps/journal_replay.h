// Journals that a command looks back at.
#pragma once

#include <string>

#include "dispatch/journal_file.h"
#include "dispatch/replay.h"

namespace tactus {

// Replays the journal at `path` for `watch`. 0, or the command's exit code, where it has said why.
int ReplayFor(const JournalFile& journal, const std::string& path, ReplayWatch& watch);

}  // namespace tactus
