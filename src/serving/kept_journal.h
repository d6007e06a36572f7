// The journal of the last run, which is most wanted after a crash.
#pragma once

#include <string>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus {

// How often the lines of a journal are written to its file.
inline constexpr Duration kJournalFlush = Millis(50);

// Renames a journal that is there and not empty to `path`.old, in place of an older one, so that a
// new one may begin. Leaves alone what is no plain file (/dev/null).
Status KeepOldJournal(const std::string& path);

}  // namespace tactus
