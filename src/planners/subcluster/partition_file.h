// The problem of partition.h as a file, and the previous partition from what `tactus plan partition
// --json` wrote:
//
//   [cluster]
//   sub_clusters = 4
//   memory_mb = 11264      # of each backend; leave it out for no limit
//   rate_rps = 2e6         # that one sub-cluster takes, at most; leave it out for no limit
//   memory_weight = 1      # w of Symphony's Eq. 3, of shares of the averages
//
//   [[models]]
//   name = "ResNet50"
//   rate_rps = 1200
//   static_mb = 98         # held as long as it is loaded: its weights
//   dynamic_mb = 310       # while it runs; 0 where it is left out
//   move_cost = 1          # of moving it; 1 where it is left out, so that moves are counted
#pragma once

#include <filesystem>
#include <string_view>

#include "base/expected.h"
#include "planners/subcluster/partition.h"

namespace tactus {

// Errors name file:line:column and what is allowed; unknown keys are errors. The problem is valid:
// see Validate.
Expected<PartitionProblem> LoadPartitionProblem(const std::filesystem::path& path);
Expected<PartitionProblem> ParsePartitionProblem(std::string_view toml,
                                                 const std::filesystem::path& where);

// Sets problem.previous from {"models": {NAME: SUB-CLUSTER, ...}}. A model that is not in it, or
// whose sub-cluster no longer exists, has no place to keep; one that is only in it is not looked
// at.
Status LoadPreviousPartition(const std::filesystem::path& path, PartitionProblem& problem);
Status ParsePreviousPartition(std::string_view json, const std::filesystem::path& where,
                              PartitionProblem& problem);

}  // namespace tactus
