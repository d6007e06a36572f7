// A run that a journal has kept, to be simulated again.
#pragma once

#include <optional>
#include <string>

#include "base/expected.h"
#include "dispatch/journal_file.h"
#include "experiment/observed.h"

namespace tactus {

// What counts is the last `last` of the journal, by arrivals; nothing: all of it. All of it is
// simulated, so that queues are then what they were. A model that was loaded in another's place is
// another. `name`: of the run, for reports. InvalidArgument for what is not simulated yet: plans,
// shares of devices, lanes that differ; and for a journal that no dispatcher can have written.
Expected<RecordedRun> ReadRecorded(const JournalFile& journal, const std::string& name,
                                   std::optional<Duration> last);

}  // namespace tactus
