#include "reproduction/grid_figure.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "reproduction/grid.h"

namespace tactus {
namespace {

constexpr const char* kAll = "all workloads";

struct Comparison {
  const char* name;
  double (*ratio)(const GridResult& result);  // 0: neither sustains anything
};

// By GridPolicies: deferred as published, ours, eager, eager with the window.
double Over(double peak, double eager) { return eager > 0 ? peak / eager : 0; }
double BestEager(const GridResult& r) { return std::max(r.peaks_rps[2], r.peaks_rps[3]); }

constexpr Comparison kComparisons[] = {
    {"published / eager (window)",
     [](const GridResult& r) { return Over(r.peaks_rps[0], r.peaks_rps[3]); }},
    {"ours / eager (window)",
     [](const GridResult& r) { return Over(r.peaks_rps[1], r.peaks_rps[3]); }},
    {"published / best eager",
     [](const GridResult& r) { return Over(r.peaks_rps[0], BestEager(r)); }},
    {"ours / best eager", [](const GridResult& r) { return Over(r.peaks_rps[1], BestEager(r)); }}};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The share of workloads (x, in percent) in which the ratio is no larger, for Figure 7(d).
std::map<double, FigureRow> SpreadByLoad(const std::vector<GridResult>& results,
                                         const Comparison& comparison) {
  std::vector<double> ratios;
  for (const GridResult& result : results) {
    const double ratio = comparison.ratio(result);
    if (ratio > 0) ratios.push_back(ratio);
  }
  std::sort(ratios.begin(), ratios.end());
  std::map<double, FigureRow> rows;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    // A thousand points draw the same curve as all do.
    if (ratios.size() > 1000 && i % (ratios.size() / 1000) != 0 && i + 1 != ratios.size()) continue;
    rows[100 * static_cast<double>(i + 1) / static_cast<double>(ratios.size())] = {
        {"ratio", ratios[i]}};
  }
  return rows;
}

// Figure 7(a) to (c): one model's workloads by lanes per model, a curve for each SLO (mixed: for
// each shape of the gaps), the median over what else varies.
void AddModel(FigureData& data, const std::vector<GridResult>& results, const std::string& model) {
  std::map<std::string, std::map<double, std::vector<double>>> ratios;
  for (const GridResult& result : results) {
    if (result.cell.model != model) continue;
    const std::string curve = model == kMixed
                                  ? fmt::format("gamma {:g}", result.cell.shape)
                                  : fmt::format("SLO {:g} ms", ToMillis(result.cell.slo));
    const double ratio = kComparisons[0].ratio(result);
    if (ratio > 0) ratios[curve][result.cell.lanes_per_model].push_back(ratio);
  }
  for (const auto& [curve, by_lanes] : ratios) {
    auto& rows = data[fmt::format("{}: {}", model, curve)];
    for (const auto& [lanes, values] : by_lanes) rows[lanes] = {{"ratio", Median(values)}};
  }
}

}  // namespace

Expected<FigureData> GridAnswer(const ReproduceOptions& options) {
  GridOptions grid;
  grid.profile = std::filesystem::path(options.scenarios) / "../profiles/symphony-1080ti.json";
  grid.results = std::filesystem::path(options.out) / "fig07-cells.csv";
  grid.cells = options.cells;
  grid.jobs = options.jobs;
  grid.fresh = options.fresh;
  const auto results = RunGrid(grid);
  if (!results) return std::unexpected(results.error());
  FigureData data;
  for (const Comparison& comparison : kComparisons) {
    data[fmt::format("{}: {}", kAll, comparison.name)] = SpreadByLoad(*results, comparison);
  }
  for (const char* model : {kMixed, "DenseNet121", "BERT"}) AddModel(data, *results, model);
  return data;
}

}  // namespace tactus
