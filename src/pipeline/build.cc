#include "pipeline/build.h"

#include <algorithm>

#include <fmt/format.h>

#include "pipeline/budget.h"

namespace tactus {
namespace {

bool Budgeted(const StageDeclaration& stage) { return stage.budget > Duration{}; }

std::vector<Duration> StatedBudgets(const PipelineDeclaration& declaration) {
  std::vector<Duration> budgets;
  for (const StageDeclaration& stage : declaration.stages) budgets.push_back(stage.budget);
  return budgets;
}

// "detect + cars": the stages of a path.
std::string Names(const PipelineDeclaration& declaration, std::span<const StageId> path) {
  std::string text;
  for (const StageId stage : path) {
    text += fmt::format("{}{}", text.empty() ? "" : " + ", declaration.stages[stage.value()].name);
  }
  return text;
}

Status ValidateBudgets(const PipelineDeclaration& declaration, const PipelineGraph& graph) {
  const auto& stages = declaration.stages;
  const auto budgeted = std::ranges::count_if(stages, Budgeted);
  if (budgeted == 0) return {};
  if (budgeted != std::ssize(stages)) {
    return InvalidArgument(
        fmt::format("{0} '{1}' has no budget_ms and others have; give one to every {0}, or to none",
                    stages.front().noun, std::ranges::find_if_not(stages, Budgeted)->name));
  }
  if (declaration.deadlines == DeadlineRule::kEqual ||
      declaration.deadlines == DeadlineRule::kWhole) {
    return InvalidArgument(
        "its deadlines are equal or whole, which no budget_ms would change; leave out one of both");
  }
  const std::vector<Duration> budgets = StatedBudgets(declaration);
  const std::vector<StageId> path = LongestPath(graph, budgets);
  const Duration sum = PathLength(path, budgets);
  if (sum <= declaration.slo) return {};
  return InvalidArgument(
      fmt::format("budget_ms of {} come to {:.6g} ms, more than its slo_ms of {:.6g}; lower them",
                  Names(declaration, path), ToMillis(sum), ToMillis(declaration.slo)));
}

class Builder {
 public:
  Builder(const PipelineDeclaration& from, std::span<const StageCost> costs)
      : from_(from), costs_(costs) {
    for (const StageCost& cost : costs) quickest_.push_back(cost.quickest);
  }

  Expected<Pipeline> Build() && {
    auto graph = PipelineGraph::Make(from_.stages);
    if (!graph) return std::unexpected(graph.error());
    auto levels = PipelineLevels::Make(*graph, from_.stages);
    if (!levels) return std::unexpected(levels.error());
    made_.name = from_.name;
    made_.slo = from_.slo;
    made_.graph = std::move(*graph);
    made_.levels = std::move(*levels);
    made_.deadlines = from_.deadlines;
    made_.answer = from_.answer;
    if (auto path = CheckPath(); !path) return std::unexpected(path.error());
    Divide();
    for (std::size_t s = 0; s < made_.stages.size(); ++s) {
      if (made_.stages[s].budget >= quickest_[s]) continue;
      return InvalidArgument(fmt::format(
          "{} '{}', {} '{}': no batch can meet its budget of {:.6g} ms: the quickest of '{}' takes "
          "{:.3f} ms at best; give it more of the SLO (budget_ms), or a quicker exit",
          from_.noun, from_.name, from_.stages[s].noun, from_.stages[s].name,
          ToMillis(made_.stages[s].budget), costs_[s].name, ToMillis(quickest_[s])));
    }
    return std::move(made_);
  }

 private:
  Status CheckPath() const {
    const std::vector<StageId> path = LongestPath(made_.graph, quickest_);
    const Duration needed = PathLength(path, quickest_);
    if (needed <= made_.slo) return {};
    std::string sum;
    for (const StageId stage : path) {
      sum += fmt::format("{}{:.3f}", sum.empty() ? "" : " + ", ToMillis(quickest_[stage.value()]));
    }
    return InvalidArgument(fmt::format(
        "{} '{}': no batches can meet its SLO of {:.6g} ms: the quickest along {} take {} = {:.3f} "
        "ms at best; give it an SLO above that, or quicker exits",
        from_.noun, from_.name, ToMillis(from_.slo), Names(from_, path), sum, ToMillis(needed)));
  }

  void Divide() {
    const bool stated = Budgeted(from_.stages.front());
    std::vector<Duration> needs = stated ? StatedBudgets(from_) : Weights();
    if (from_.deadlines == DeadlineRule::kEqual) needs.assign(needs.size(), Millis(1));
    std::vector<Duration> deadlines = stated ? DeadlinesByBudget(made_.graph, needs)
                                             : DeadlinesByLatency(made_.graph, needs, made_.slo);
    std::vector<Duration> budgets = BudgetsOf(made_.graph, deadlines);
    if (from_.deadlines == DeadlineRule::kWhole) {
      deadlines.assign(needs.size(), made_.slo);
      budgets = deadlines;
    }
    for (std::size_t s = 0; s < needs.size(); ++s) {
      made_.stages.push_back({.name = from_.stages[s].name,
                              .model = costs_[s].model,
                              .deadline = deadlines[s],
                              .budget = budgets[s],
                              .need = needs[s],
                              .least = quickest_[s]});
    }
  }

  // By which the SLO is divided: the largest batch whose longest path fits twice, at least 1.
  std::vector<Duration> Weights() const {
    const auto at = [&](std::size_t batch) {
      std::vector<Duration> latency;
      for (const StageCost& cost : costs_) {
        latency.push_back(cost.by_batch[std::min(batch, cost.by_batch.size()) - 1]);
      }
      return latency;
    };
    std::size_t batch = 1;
    for (const StageCost& cost : costs_) batch = std::max(batch, cost.by_batch.size());
    for (; batch > 1; --batch) {
      const std::vector<Duration> latency = at(batch);
      if (2 * PathLength(LongestPath(made_.graph, latency), latency) <= made_.slo) break;
    }
    return at(batch);
  }

  const PipelineDeclaration& from_;
  const std::span<const StageCost> costs_;
  std::vector<Duration> quickest_;  // by stage
  Pipeline made_;
};

}  // namespace

Status Validate(const PipelineDeclaration& declaration) {
  if (declaration.slo <= Duration{})
    return InvalidArgument("it has no slo_ms; state how long a request may take");
  const auto graph = PipelineGraph::Make(declaration.stages);
  if (!graph) return std::unexpected(graph.error());
  const auto levels = PipelineLevels::Make(*graph, declaration.stages);
  if (!levels) return std::unexpected(levels.error());
  return ValidateBudgets(declaration, *graph);
}

Expected<Pipeline> BuildPipeline(const PipelineDeclaration& declaration,
                                 std::span<const StageCost> costs) {
  return Builder(declaration, costs).Build();
}

}  // namespace tactus
