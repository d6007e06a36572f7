// What batches cost on shares of a device, each share measured: `tactus profile --threads 1` and
// `--threads 2` are two shares of two cores.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "workload/profile_file.h"

namespace tactus {

struct ShareProfile {
  double share = 1;  // of the device, in (0, 1]
  ProfileFile profile;
};

// "PERCENT=FILE". Errors say which text and why.
Expected<ShareProfile> ReadShareProfile(std::string_view text);

// A lane class for each of `shares`, which ascend to the whole device; else, or if one lacks a
// model, kInvalidArgument or kNotFound with the share. That no batch meets a model's SLO is an
// error of the whole device only: smaller shares need not serve everybody.
Expected<ProfileTable> MakeTable(std::span<const ShareProfile> shares,
                                 std::span<const Model> models, const ProfileOptions& options);

}  // namespace tactus
