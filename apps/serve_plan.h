// `tactus serve --plan`: one processor, split into lanes as a file says.
#pragma once

#include <string>
#include <vector>

#include "base/expected.h"
#include "runtime/runtime.h"
#include "workload/share_profiles.h"

namespace tactus {

// Of `on_share` (PERCENT=FILE each): the whole device has as many cores as its profile had threads.
// Errors: a profile of another machine or engine, or of other threads than its share is, unless
// `allow_other_machine`.
Expected<PartitionOptions> ReadPartition(const std::vector<std::string>& on_share,
                                         const std::string& engine, bool allow_other_machine);

// Reads the plan in the file and splits the runtime's device as it says. An error, and nothing
// changes, where it does not fit what is served: other models, shares that were not profiled, SLOs
// that it does not keep.
Status TakePlan(const std::string& path, const PartitionOptions& partition,
                const ProfileOptions& options, Runtime& runtime);

}  // namespace tactus
