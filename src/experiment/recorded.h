// A run that a journal has kept, to be simulated again under the same setting or another: what
// arrived, how long its batches took, and how it ended.
#pragma once

#include <optional>
#include <vector>

#include "base/expected.h"
#include "dispatch/journal_file.h"
#include "experiment/experiment.h"
#include "metrics/report.h"
#include "sim/simulation.h"
#include "workload/profile_file.h"

namespace tactus {

struct RecordedRun {
  // The lanes, the policy and the models of the run. Its profile says what batches took there.
  Experiment experiment;
  ProfileFile counted_on;  // what the policy counted on, without the margin
  std::vector<std::vector<RecordedRequest>> arrivals;  // by model, in order
  RunReport happened;
};

// What counts is the last `last` of the journal, by arrivals; nothing: all of it. All of it is
// simulated, so that queues are then what they were. `name`: of the run, for
// reports. InvalidArgument for what is not simulated yet: plans, shares of devices, lanes that
// differ, ids that several models had; and for a journal that no dispatcher can have written.
Expected<RecordedRun> ReadRecorded(const JournalFile& journal, const std::string& name,
                                   std::optional<Duration> last);

// Simulates it with the setting of `run.experiment`, which may have been changed. `slos`: those
// that the models had. Where one is another now, the deadlines of requests that had it move too.
Expected<RunReport> SimulateRecorded(const RecordedRun& run, const std::vector<Duration>& slos);

}  // namespace tactus
