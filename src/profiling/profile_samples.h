// The runs that a profile is made of, cell by cell, and the file in which an interrupted
// measurement keeps them.
//
//   tactus-profile-samples 1
//   machine 8c0f3a5be1d20944
//   cell ee_s 309688 2 10 812345 798211 ...     model, bytes of its graphs, exit, batch,
//   nanoseconds
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "workload/profile_file.h"

namespace tactus {

struct CellKey {
  std::string model;
  std::uint64_t bytes = 0;  // of the model's graphs, so that another model of its name is not taken
  std::string exit;
  int batch = 1;
  auto operator<=>(const CellKey&) const = default;
};

using Samples = std::map<CellKey, std::vector<Duration>>;

// Written beside the file and moved into its place, so that it is never half there.
Status SaveSamples(const Samples& samples, const Machine& machine,
                   const std::filesystem::path& path);
// Samples of another machine are an error.
Expected<Samples> LoadSamples(const Machine& machine, const std::filesystem::path& path);

// How far the median of a third of the runs, in the order in which they were made, lies from that
// of all, at most, as a share of the latter: what measuring again might change. 0 for fewer than
// three runs.
double MedianDrift(std::span<const Duration> runs);

// Mean, quantiles by nearest rank, and the coefficient of variation; `samples` must not be empty.
ProfileCell Condense(std::vector<Duration> samples);

// Lets each quantile and the mean rise with the batch, by the least change in squares: neighbours
// that fall share their mean. What is left of noise would have policies prefer a batch size for
// nothing. The spread stays as it was measured.
void LetRise(std::vector<ProfileCell>& cells);

}  // namespace tactus
