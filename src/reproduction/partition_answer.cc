#include "reproduction/partition_answer.h"

#include <cstdint>
#include <cstdlib>

#include "planners/subcluster/partition_experiment.h"

namespace tactus {

Expected<FigureRow> PartitionAnswer(const FigurePoint& point) {
  const PartitionSolver solver =
      point.with.at("solver") == "random" ? PartitionSolver::kRandom : PartitionSolver::kSearch;
  const PartitionSearchOptions options{.most_trials = std::atoll(point.with.at("trials").c_str())};
  const auto solved =
      RunPartitionConfiguration({}, solver, static_cast<std::uint64_t>(point.x), options, {});
  if (!solved) return std::unexpected(solved.error());
  const FoundPartition& found = solved->found;
  return FigureRow{{"rate_percent", 100 * found.score.rate_imbalance},
                   {"memory_percent", 100 * found.score.memory_imbalance},
                   {"objective", found.score.objective},
                   {"trials", static_cast<double>(found.trials)}};
}

}  // namespace tactus
