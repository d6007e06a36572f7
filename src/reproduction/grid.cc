#include "reproduction/grid.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/fnv.h"
#include "experiment/progress.h"
#include "policies/registry.h"
#include "reproduction/origin.h"
#include "reproduction/result_file.h"
#include "workload/csv.h"

namespace tactus {
namespace {

std::vector<std::string> Header() {
  std::vector<std::string> header = {"model", "models", "lanes", "slo_ms", "shape", "fluid_rps"};
  for (const GridPolicy& policy : GridPolicies()) header.push_back(policy.name + "_rps");
  return header;
}

std::vector<std::string> Cells(const GridResult& result) {
  std::vector<std::string> cells = SplitTrimmed(result.cell.Name(), ',');
  cells.push_back(fmt::format("{:.1f}", result.fluid_rps));
  for (const double peak : result.peaks_rps) cells.push_back(fmt::format("{:.1f}", peak));
  return cells;
}

// The grid, so stirred that its first hundreds are a sample of all of it.
std::vector<GridCell> ChosenCells(const ProfileFile& zoo, std::size_t wanted) {
  const std::vector<GridCell> all = WorkloadGrid(static_cast<int>(zoo.models.size()));
  constexpr std::size_t kStride = 2741;  // prime, and no divisor of the grid's size
  std::vector<GridCell> chosen;
  const std::size_t count = wanted == 0 ? all.size() : std::min(wanted, all.size());
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(all[i * kStride % all.size()]);
  return chosen;
}

// A policy begins where the one before it ended; the first a little under the fluid limit.
Expected<GridResult> Evaluate(const GridCell& cell, const ProfileFile& zoo,
                              const GridEffort& effort) {
  GridResult result{.cell = cell};
  const auto workload = MakeWorkload(cell, zoo, effort);
  if (!workload) return std::unexpected(workload.error());
  result.fluid_rps = workload->rate_rps;
  double guess = 0.95 * result.fluid_rps;
  for (const GridPolicy& policy : GridPolicies()) {
    const auto peak = QuickPeak(
        cell, zoo, [&] { return MakePolicy(policy.policy); }, guess, effort);
    if (!peak) return std::unexpected(peak.error());
    result.peaks_rps.push_back(*peak);
    if (*peak > 0) guess = *peak;
  }
  return result;
}

// What the threads share.
class GridRun {
 public:
  GridRun(const GridOptions& options, const ProfileFile& zoo, std::vector<GridCell> cells,
          ResultFile file)
      : options_(options),
        zoo_(zoo),
        cells_(std::move(cells)),
        file_(std::move(file)),
        progress_(cells_.size()) {
    TakeFound();
  }

  Status Work() {
    std::vector<std::jthread> threads;
    for (int i = 1; i < options_.jobs; ++i) threads.emplace_back([this] { Drain(); });
    Drain();
    threads.clear();  // joins
    return std::move(failed_);
  }

  std::vector<GridResult> results() && { return std::move(results_); }

 private:
  void TakeFound() {
    std::map<std::string, GridCell> wanted;
    for (const GridCell& cell : cells_) wanted[cell.Name()] = cell;
    for (const auto& row : file_.found()) {
      const std::string name = fmt::format("{}", fmt::join(row.begin(), row.begin() + 5, ","));
      const auto cell = wanted.find(name);
      if (cell == wanted.end()) continue;
      GridResult& result = results_.emplace_back();
      result.cell = cell->second;
      result.fluid_rps = ParseNumber(row[5]).value_or(0);
      for (std::size_t i = 6; i < row.size(); ++i) {
        result.peaks_rps.push_back(ParseNumber(row[i]).value_or(0));
      }
      wanted.erase(cell);
    }
    std::erase_if(cells_, [&](const GridCell& cell) { return !wanted.contains(cell.Name()); });
  }

  void Drain() {
    for (std::size_t i; (i = next_++) < cells_.size();) {
      auto result = Evaluate(cells_[i], zoo_, options_.effort);
      const std::lock_guard lock(mutex_);
      if (!failed_) return;
      if (!result) failed_ = std::unexpected(result.error());
      if (result) failed_ = file_.Append({Cells(*result)});
      if (!failed_) return;
      results_.push_back(std::move(*result));
      progress_.Show(results_.size(), "figure 7: " + cells_[i].Name());
    }
  }

  const GridOptions& options_;
  const ProfileFile& zoo_;
  std::vector<GridCell> cells_;  // that are still to do
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // of all below
  ResultFile file_;
  Progress progress_;
  std::vector<GridResult> results_;
  Status failed_;
};

}  // namespace

const std::vector<GridPolicy>& GridPolicies() {
  static const std::vector<GridPolicy> policies = {
      {"deferred", "symphony:published"},
      {"ours", "symphony:gather=window,aim=0.8,lead=0.1"},
      {"eager", "symphony:when=eager,gather=prefix"},
      {"eager_window", "symphony:published,when=eager"}};
  return policies;
}

Expected<std::vector<GridResult>> RunGrid(const GridOptions& options) {
  const auto zoo = LoadProfile(options.profile);
  if (!zoo) return std::unexpected(zoo.error());
  const GridEffort& effort = options.effort;
  std::uint64_t inputs = Fnv1a(FileText(options.profile));
  for (const GridPolicy& policy : GridPolicies()) inputs = Fnv1a(policy.policy, inputs);
  // Not the commit: a grid outlives a day's commits. --fresh runs it again.
  const std::string origin = fmt::format(
      "Symphony figure 7; simulated; {:g} s and at least {:g} requests after {:g} s; mixed {:g}; "
      "to "
      "{:g}; seed {}; inputs {:016x}; {}",
      effort.least_s, effort.least_requests, effort.warmup_s, effort.zoo_requests, effort.precision,
      effort.seed, inputs, zoo->provenance);
  auto file = ResultFile::Open(options.results, origin, Header(), options.fresh);
  if (!file) return std::unexpected(file.error());
  GridRun run(options, *zoo, ChosenCells(*zoo, options.cells), std::move(*file));
  if (auto worked = run.Work(); !worked) return std::unexpected(worked.error());
  return std::move(run).results();
}

}  // namespace tactus
