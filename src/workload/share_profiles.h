// What batches cost on shares of a device, each share measured: `tactus profile --threads 1` and
// `--threads 2` are two shares of two cores.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "workload/profile_file.h"

namespace tactus {

// A part of a device, and where it is written what batches take there.
struct MeasuredShare {
  double percent = 100;  // of the device, in (0, 100]
  std::filesystem::path profile;
  friend bool operator==(const MeasuredShare&, const MeasuredShare&) = default;
};

struct ShareProfile {
  double share = 1;  // of the device, in (0, 1]
  ProfileFile profile;
};

// "PERCENT=FILE" each. Errors say which text and why; nobody looks for the files.
Expected<std::vector<MeasuredShare>> ParseMeasuredShares(std::span<const std::string> texts);

// The files' profiles. An error where one cannot be read, or as of CheckShares.
Expected<std::vector<ShareProfile>> LoadShareProfiles(std::span<const MeasuredShare> shares);

// kInvalidArgument, with the share, where they do not ascend to the whole device.
Status CheckShares(std::span<const ShareProfile> shares);

// A lane class for each of `shares`. An error as of CheckShares, or kNotFound, with the share,
// where one lacks a model. That no batch meets a model's SLO is an error of the whole device only:
// smaller shares need not serve everybody.
Expected<ProfileTable> MakeTable(std::span<const ShareProfile> shares,
                                 std::span<const Model> models, const ProfileOptions& options);

}  // namespace tactus
