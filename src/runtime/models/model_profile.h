// The latencies that a model is served by: from the profile that lies in its folder, or from the
// server's, which knows many models.
#pragma once

#include <optional>
#include <span>

#include "base/expected.h"
#include "core/engine.h"
#include "core/model.h"
#include "core/profile_table.h"
#include "workload/profile_file.h"
#include "workload/share_profiles.h"

namespace tactus {

// What is known of the model: by its own profile (ModelSpec::profile), else by `common`. Nothing if
// neither knows it. A profile of one model in the model's own folder is that model's, whatever name
// it has there; and where model and profile have one exit each, it is the same.
Expected<std::optional<ProfiledModel>> FindProfile(const ModelSpec& spec,
                                                   const std::optional<ProfileFile>& common);

// A profile of that model alone. Where its figures are `common`'s, what that says of the way to the
// lane and back holds.
ProfileFile ProfileOf(const ProfiledModel& known, const ModelSpec& spec,
                      const std::optional<ProfileFile>& common);

// As policies see it.
Model DescribeModel(const ModelSpec& spec, Duration default_slo, int max_batch);

// The model's latencies for batches of up to `max_batch`, fewer if the profile ends before, and
// what they use where the profile says so. An error names the exit that the profile lacks.
Expected<ProfileTable::ModelRows> RowsOf(const ProfiledModel& profile, const ModelSpec& spec,
                                         int max_batch, const ProfileOptions& options);

// The same with a lane class for each share of a device, for batches as large as all of them know.
Expected<ProfileTable::ModelRows> RowsOf(std::span<const ShareProfile> shares,
                                         const ModelSpec& spec, int max_batch,
                                         const ProfileOptions& options);

}  // namespace tactus
