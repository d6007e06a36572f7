#include "workload/profile_threads.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"

namespace tactus {
namespace {

bool Covers(const ProfiledExit& exit, int threads) {
  return !exit.by_threads.empty() && exit.by_threads.front().threads <= threads &&
         threads <= exit.by_threads.back().threads;
}

// `threads` lies between the fewest and the most that were measured.
ProfiledThreads At(const ProfiledExit& exit, int threads) {
  const auto above =
      std::ranges::lower_bound(exit.by_threads, threads, {}, &ProfiledThreads::threads);
  if (above->threads == threads) return *above;
  const ProfiledThreads& more = *above;
  const ProfiledThreads& fewer = *std::prev(above);
  const double way =
      (1.0 / fewer.threads - 1.0 / threads) / (1.0 / fewer.threads - 1.0 / more.threads);
  return {threads, std::lerp(fewer.one_ms, more.one_ms, way),
          std::lerp(fewer.largest_ms, more.largest_ms, way)};
}

void Scale(ProfileCell& cell, double ratio) {
  for (double* ms :
       {&cell.mean_ms, &cell.min_ms, &cell.p50_ms, &cell.p95_ms, &cell.p99_ms, &cell.max_ms}) {
    *ms *= ratio;
  }
  cell.transfer_ms = std::min(cell.transfer_ms, cell.min_ms / 2);
  for (double& share : cell.throughput) share = std::min(1.0, share / ratio);
}

// At least what the smaller batch takes.
void Raise(ProfileCell& cell, const ProfileCell& smaller) {
  cell.mean_ms = std::max(cell.mean_ms, smaller.mean_ms);
  cell.min_ms = std::max(cell.min_ms, smaller.min_ms);
  cell.p50_ms = std::max(cell.p50_ms, smaller.p50_ms);
  cell.p95_ms = std::max(cell.p95_ms, smaller.p95_ms);
  cell.p99_ms = std::max(cell.p99_ms, smaller.p99_ms);
  cell.max_ms = std::max(cell.max_ms, smaller.max_ms);
}

void Scale(ProfiledExit& exit, int measured, int threads) {
  CHECK(Covers(exit, measured) && Covers(exit, threads), "the exit knows both");
  const ProfiledThreads from = At(exit, measured);
  const ProfiledThreads to = At(exit, threads);
  const double one = to.one_ms / from.one_ms;
  const double largest = to.largest_ms / from.largest_ms;
  const std::size_t batches = exit.cells.size();
  for (std::size_t i = 0; i < batches; ++i) {
    const double way = batches > 1 ? static_cast<double>(i) / static_cast<double>(batches - 1) : 0;
    Scale(exit.cells[i], std::lerp(one, largest, way));
    if (i > 0) Raise(exit.cells[i], exit.cells[i - 1]);
  }
  Fit(exit);
}

}  // namespace

std::vector<int> ThreadsKnown(const ProfiledModel& model, int measured) {
  int fewest = 1;
  int most = std::numeric_limits<int>::max();
  for (const ProfiledExit& exit : model.exits) {
    if (!Covers(exit, measured)) return {measured};
    fewest = std::max(fewest, exit.by_threads.front().threads);
    most = std::min(most, exit.by_threads.back().threads);
  }
  std::vector<int> known;
  for (int threads = fewest; threads <= most; ++threads) known.push_back(threads);
  return known;
}

ProfiledModel AtThreads(const ProfiledModel& model, int measured, int threads) {
  if (threads == measured) return model;
  ProfiledModel scaled = model;
  for (ProfiledExit& exit : scaled.exits) Scale(exit, measured, threads);
  return scaled;
}

ProfileFile AtThreads(const ProfileFile& profile, int threads) {
  const int measured = profile.machine.threads;
  if (threads == measured) return profile;
  ProfileFile scaled = profile;
  scaled.models.clear();
  for (const ProfiledModel& model : profile.models) {
    const std::vector<int> known = ThreadsKnown(model, measured);
    if (std::ranges::find(known, threads) == known.end()) continue;
    scaled.models.push_back(AtThreads(model, measured, threads));
  }
  scaled.provenance += fmt::format(", scaled from {} to {} thread{} a batch", measured, threads,
                                   threads == 1 ? "" : "s");
  return scaled;
}

std::vector<Duration> QuickestLatencies(const ProfiledModel& model, int max_batch,
                                        const ProfileOptions& options) {
  std::vector<Duration> quickest;
  for (int b = 0; b < std::min(max_batch, model.max_batch); ++b) {
    double least_ms = 0;
    for (const ProfiledExit& exit : model.exits) {
      const ProfileCell& cell = exit.cells[static_cast<std::size_t>(b)];
      const double ms =
          options.percentile > 0 ? Quantile(cell, options.percentile / 100) : cell.mean_ms;
      if (least_ms == 0 || ms < least_ms) least_ms = ms;
    }
    quickest.push_back(FromMillis(least_ms + options.jitter_ms));
  }
  return quickest;
}

}  // namespace tactus
