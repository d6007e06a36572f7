#include "profiling/quick_profile.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "profiling/limited_runs.h"
#include "profiling/sample_row.h"

namespace tactus {
namespace {

constexpr std::size_t kRuns = 5;               // of each cell
constexpr Duration kLongEnough = Millis(200);  // all runs of a cell; the last may exceed it
constexpr Duration kTooLong = Seconds(1);      // for a second run
constexpr Duration kShort = kLongEnough / static_cast<int>(kRuns);

// The median: a start on a busy machine disturbs some runs, and nothing corrects the figure later.
// The first run, cold, counts only where it is so long that there is no other, or where there are
// enough others and smaller batches have run.
Expected<Duration> Measure(LimitedRuns& limited, Engine& engine, ModelHandle handle,
                           const SampleRow& row, ExitId exit, int batch, const WallClock& clock,
                           std::uint64_t& next_batch) {
  const std::vector<RowInputs> rows(static_cast<std::size_t>(batch), row.inputs());
  std::vector<Duration> runs;
  Duration spent{};
  for (bool warm = false; runs.size() < kRuns && (runs.empty() || spent < kLongEnough);) {
    const TimePoint before = clock.Now();
    const BatchResult got = limited.Run(
        engine, handle, {BatchId{next_batch++}, ModelId{}, exit, rows}, kLongestRun * batch);
    const Duration took = clock.Now() - before;
    if (!got.status) return std::unexpected(got.status.error());
    if (warm || took >= kTooLong || (batch > 1 && took < kShort)) {
      runs.push_back(took);
      spent += took;
    }
    warm = true;
  }
  std::nth_element(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2),
                   runs.end());
  return runs[runs.size() / 2];
}

// Fills the batches between measured ones on a straight line, and lets no latency shrink.
void Interpolate(std::vector<Duration>& cells, const std::vector<int>& measured) {
  for (std::size_t i = 1; i < measured.size(); ++i) {
    const int low = measured[i - 1];
    const int high = measured[i];
    Duration& end = cells[high - 1];
    const Duration start = cells[low - 1];
    end = std::max(end, start);
    for (int b = low + 1; b < high; ++b)
      cells[b - 1] = start + (end - start) * (b - low) / (high - low);
  }
}

}  // namespace

Expected<ProfileTable::ModelRows> QuickProfile(Engine& engine, ModelHandle handle,
                                               const ModelSpec& spec, int max_batch,
                                               const WallClock& clock, BatchId first) {
  std::uint64_t next_batch = first.value();
  LimitedRuns limited;
  const Expected<SampleRow> row = SampleRow::Make(spec, 1, engine, handle);
  if (!row) return std::unexpected(row.error());
  std::vector<int> batches;
  for (int b = 1; b < max_batch; b *= 2) batches.push_back(b);
  batches.push_back(max_batch);
  ProfileTable::ModelRows rows;
  rows.exits = static_cast<int>(spec.exits.size());
  rows.max_batch = max_batch;
  for (int e = 0; e < rows.exits; ++e) {
    std::vector<Duration> cells(static_cast<std::size_t>(max_batch));
    for (const int b : batches) {
      const ExitId exit{static_cast<ExitId::rep>(e)};
      const Expected<Duration> took =
          Measure(limited, engine, handle, *row, exit, b, clock, next_batch);
      if (!took) {
        return Internal(fmt::format(
            "model '{}' has no profile and its quick measurement failed (exit {}, batch {}): {}; "
            "state a row that it takes in model_warmup, or 'profile_shape.<input>' in its "
            "parameters",
            spec.name, spec.exits[static_cast<std::size_t>(e)].name, b, took.error().message));
      }
      cells[static_cast<std::size_t>(b) - 1] = *took;
    }
    Interpolate(cells, batches);
    rows.latency.insert(rows.latency.end(), cells.begin(), cells.end());
  }
  return rows;
}

}  // namespace tactus
