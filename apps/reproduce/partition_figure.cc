#include "reproduce/partition_figure.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "planners/subcluster/partition_experiment.h"

namespace tactus {
namespace {

constexpr int kConfigurations = 50;
// About the same processor time for both: the random solver weighs a whole partition in each trial,
// the search a change.
constexpr std::int64_t kSearchTrials = 8'000'000;
constexpr std::int64_t kRandomTrials = 320'000;

constexpr const char* kSearchSeries = "local search";
constexpr const char* kRandomSeries = "random";

Expected<FigureRow> SolveConfiguration(PartitionSolver solver, std::uint64_t seed) {
  const PartitionSearchOptions options{
      .most_trials = solver == PartitionSolver::kSearch ? kSearchTrials : kRandomTrials};
  const auto solved = RunPartitionConfiguration({}, solver, seed, options, {});
  if (!solved) return std::unexpected(solved.error());
  const FoundPartition& found = solved->found;
  return FigureRow{{"rate_percent", 100 * found.score.rate_imbalance},
                   {"memory_percent", 100 * found.score.memory_imbalance},
                   {"objective", found.score.objective},
                   {"trials", static_cast<double>(found.trials)}};
}

FigureSeries Configurations(const char* label, PartitionSolver solver, std::int64_t trials) {
  const PartitionExperiment experiment;
  FigureSeries series{label, {}};
  for (int seed = 1; seed <= kConfigurations; ++seed) {
    FigurePoint& point = series.points.emplace_back();
    point.x = seed;
    point.settings = {fmt::format("models={}", experiment.models),
                      fmt::format("sub_clusters={}", experiment.sub_clusters),
                      fmt::format("solver={}", label), fmt::format("trials={}", trials)};
    point.answer = [solver, seed](const FigurePoint&, const ReproduceOptions&) {
      return SolveConfiguration(solver, static_cast<std::uint64_t>(seed));
    };
  }
  return series;
}

FigurePanel Imbalance(const char* column, const char* title) {
  FigurePanel panel;
  panel.x = column;
  panel.x_label = "imbalance, (max - min) / avg (%)";
  panel.y_label = "configurations (%)";
  panel.title = title;
  panel.y_max = 100;
  panel.cdf = true;
  panel.log_x = true;
  return panel;
}

struct Spread {
  double least = 0;
  double median = 0;
  double most = 0;
};

Spread SpreadOf(const std::map<double, FigureRow>& rows, const char* column) {
  std::vector<double> values;
  for (const auto& [seed, row] : rows) values.push_back(row.at(column));
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

std::vector<Claim> PartitionClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const auto& [column, what] :
       {std::pair{"rate_percent", "request rate"}, std::pair{"memory_percent", "static memory"}}) {
    const Spread search = SpreadOf(data.at(kSearchSeries), column);
    const Spread random = SpreadOf(data.at(kRandomSeries), column);
    claims.push_back({fmt::format("imbalance of {} by search: median and worst", what),
                      "load-balanced partitions",
                      fmt::format("{:.3f} and {:.3f} %", search.median, search.most),
                      search.most < 1});
    claims.push_back({fmt::format("{}: the worst by search against the best by chance", what),
                      "significantly better",
                      fmt::format("{:.3f} against {:.1f} %", search.most, random.least),
                      search.most < random.least / 10});
  }
  return claims;
}

}  // namespace

Figure PartitionFigure() {
  Figure figure;
  figure.id = "16";
  figure.title = "800 models onto 20 sub-clusters: how evenly";
  figure.series = {Configurations(kSearchSeries, PartitionSolver::kSearch, kSearchTrials),
                   Configurations(kRandomSeries, PartitionSolver::kRandom, kRandomTrials)};
  figure.panels = {Imbalance("rate_percent", "request rate"),
                   Imbalance("memory_percent", "static memory")};
  figure.claims = PartitionClaims;
  figure.columns = {"rate_percent", "memory_percent", "objective", "trials"};
  figure.source = [](const ReproduceOptions&) -> Expected<std::string> {
    return fmt::format(
        "{} configurations of variants of Tables 3 and 4; {:.1f} M trials of the search; "
        "{:.2f} M random partitions",
        kConfigurations, kSearchTrials / 1e6, kRandomTrials / 1e6);
  };
  return figure;
}

}  // namespace tactus
