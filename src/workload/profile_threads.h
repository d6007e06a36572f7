// What batches take with other threads than those that a profile's cells were measured with, as far
// as the profile measured that too (ProfiledExit::by_threads).
#pragma once

#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "workload/profile_file.h"

namespace tactus {

// Ascending: all from the fewest that all exits of the model know to the most, `measured`, which
// the cells are of, among them; `measured` alone where that was not compared with others. Between
// two that were measured, latencies go in a straight line over 1 / threads, as by Amdahl's law.
std::vector<int> ThreadsKnown(const ProfiledModel& model, int measured);

// The model with `threads`, which it must know: each cell times what the exit's batches take with
// so many over what they take with `measured`, a ratio that goes in a straight line from the
// smallest batch to the largest. No batch is quicker than a smaller one.
ProfiledModel AtThreads(const ProfiledModel& model, int measured, int threads);

// The profile with `threads` a batch, and a provenance that says so. Models that do not know them
// are left out: a server measures those when it loads them. With as many as it was measured with,
// the profile as it is.
ProfileFile AtThreads(const ProfileFile& profile, int threads);

// What batches of 1, 2, ... up to `max_batch` rows take at the quickest exit, as policies count on
// it.
std::vector<Duration> QuickestLatencies(const ProfiledModel& model, int max_batch,
                                        const ProfileOptions& options);

}  // namespace tactus
