#include "workload/pipelines.h"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "pipeline/budget.h"

namespace tactus {
namespace {

bool Budgeted(const ScenarioStage& stage) { return stage.budget_ms > 0; }

Expected<PipelineGraph> GraphOf(const ScenarioPipeline& pipeline) {
  std::vector<StageDeclaration> stages;
  for (const ScenarioStage& stage : pipeline.stages) stages.push_back({stage.name, stage.after});
  return PipelineGraph::Make(stages);
}

std::vector<Duration> StatedBudgets(const ScenarioPipeline& pipeline) {
  std::vector<Duration> budgets;
  for (const ScenarioStage& stage : pipeline.stages) budgets.push_back(FromMillis(stage.budget_ms));
  return budgets;
}

// "detect + cars": the stages of a path.
std::string Names(const ScenarioPipeline& pipeline, std::span<const StageId> path) {
  std::string text;
  for (const StageId stage : path) {
    text += fmt::format("{}{}", text.empty() ? "" : " + ", pipeline.stages[stage.value()].name);
  }
  return text;
}

// What is wrong with it by itself.
Status ValidateOne(const Scenario& scenario, const ScenarioPipeline& pipeline) {
  if (pipeline.slo_ms <= 0)
    return InvalidArgument("it has no slo_ms; say how long a frame may take");
  const auto graph = GraphOf(pipeline);
  if (!graph) return std::unexpected(graph.error());
  for (const ScenarioStage& stage : pipeline.stages) {
    const auto& models = scenario.models;
    if (std::ranges::find(models, stage.model, &ScenarioModel::name) != models.end()) continue;
    return InvalidArgument(
        fmt::format("stage '{}': no [[models]] is called '{}'; add it", stage.name, stage.model));
  }
  const auto budgeted = std::ranges::count_if(pipeline.stages, Budgeted);
  if (budgeted == 0) return {};
  if (budgeted != std::ssize(pipeline.stages)) {
    return InvalidArgument(fmt::format(
        "stage '{}' has no budget_ms and others have; give one to every stage, or to none",
        std::ranges::find_if_not(pipeline.stages, Budgeted)->name));
  }
  const std::vector<Duration> budgets = StatedBudgets(pipeline);
  const std::vector<StageId> path = LongestPath(*graph, budgets);
  const Duration sum = PathLength(path, budgets);
  if (sum <= FromMillis(pipeline.slo_ms)) return {};
  return InvalidArgument(
      fmt::format("budget_ms of {} come to {:.6g} ms, more than its slo_ms of {:.6g}; lower them",
                  Names(pipeline, path), ToMillis(sum), pipeline.slo_ms));
}

// A stage's model whose own settings would be read by nobody.
Status ValidateStageModel(const ScenarioModel& model) {
  const ScenarioModel fresh;
  const char* const said = model.rate_rps > 0             ? "rate_rps"
                           : model.slo_ms != fresh.slo_ms ? "slo_ms"
                           : model.ratio != fresh.ratio   ? "ratio"
                                                          : nullptr;
  if (said == nullptr) return {};
  return InvalidArgument(
      fmt::format("model '{0}' has its requests from [[pipelines]], which say how many and how "
                  "long they may take: leave out its {1}; for requests beside those of frames, "
                  "another model with profile_as = \"{0}\"",
                  model.name, said));
}

// What the stage's model takes at best, in any batch and at any exit, on the quickest lane with the
// jitter and the hand-over there and back.
Duration Quickest(const Scenario& scenario, const ProfileFile& selected, std::size_t model) {
  Duration least = FromMillis(selected.models[model].exits.front().cells.front().min_ms);
  for (const ProfiledExit& exit : selected.models[model].exits) {
    for (const ProfileCell& cell : exit.cells) least = std::min(least, FromMillis(cell.min_ms));
  }
  return FromMillis(ToMillis(least) / LaneKinds(scenario).front().speed + scenario.jitter_ms +
                    selected.launch_overhead_ms + selected.finish_overhead_ms +
                    selected.answer_overhead_ms);
}

// The mean at the final exit on the quickest lane.
Duration LatencyOf(const Scenario& scenario, const ProfiledModel& model, int batch) {
  const auto& cells = model.exits.back().cells;
  const auto& cell = cells[std::min<std::size_t>(batch, cells.size()) - 1];
  return std::max(FromMillis(cell.mean_ms / LaneKinds(scenario).front().speed), Nanos(1));
}

class Maker {
 public:
  Maker(const Scenario& scenario, const ProfileFile& selected, const ScenarioPipeline& from,
        PipelineGraph graph)
      : scenario_(scenario), selected_(selected), from_(from) {
    made_.name = from.name;
    made_.slo = FromMillis(from.slo_ms);
    made_.graph = std::move(graph);
    for (const ScenarioStage& stage : from.stages) {
      const auto model = std::ranges::find(scenario.models, stage.model, &ScenarioModel::name);
      models_.push_back(model - scenario.models.begin());
    }
  }

  Expected<Pipeline> Make() && {
    std::vector<Duration> quickest;
    for (const std::size_t model : models_) {
      quickest.push_back(Quickest(scenario_, selected_, model));
    }
    if (auto path = CheckPath(quickest); !path) return std::unexpected(path.error());
    const std::vector<Duration> deadlines =
        Budgeted(from_.stages.front()) ? DeadlinesByBudget(made_.graph, StatedBudgets(from_))
                                       : DeadlinesByLatency(made_.graph, Weights(), made_.slo);
    const std::vector<Duration> budgets = BudgetsOf(made_.graph, deadlines);
    for (std::size_t s = 0; s < models_.size(); ++s) {
      const ScenarioStage& stage = from_.stages[s];
      if (budgets[s] < quickest[s]) {
        return InvalidArgument(fmt::format(
            "pipeline '{}', stage '{}': no batch can meet its budget of {:.6g} ms: the quickest of "
            "'{}' takes {:.3f} ms at best; give it more of the SLO (budget_ms), or a quicker exit",
            from_.name, stage.name, ToMillis(budgets[s]), stage.model, ToMillis(quickest[s])));
      }
      made_.stages.push_back({.name = stage.name,
                              .model = ModelId{static_cast<ModelId::rep>(models_[s])},
                              .count = stage.count,
                              .deadline = deadlines[s],
                              .budget = budgets[s]});
    }
    return std::move(made_);
  }

 private:
  Status CheckPath(std::span<const Duration> quickest) const {
    const std::vector<StageId> path = LongestPath(made_.graph, quickest);
    const Duration needed = PathLength(path, quickest);
    if (needed <= made_.slo) return {};
    std::string sum;
    for (const StageId stage : path) {
      sum += fmt::format("{}{:.3f}", sum.empty() ? "" : " + ", ToMillis(quickest[stage.value()]));
    }
    return InvalidArgument(fmt::format(
        "pipeline '{}': no batches can meet its SLO of {:.6g} ms: the quickest along {} take {} = "
        "{:.3f} ms at best; give it an SLO above that, or quicker exits",
        from_.name, from_.slo_ms, Names(from_, path), sum, ToMillis(needed)));
  }

  // By which the SLO is divided: the largest batch whose longest path fits twice, at least 1.
  std::vector<Duration> Weights() const {
    const auto at = [&](int batch) {
      std::vector<Duration> latency;
      for (const std::size_t model : models_) {
        latency.push_back(LatencyOf(scenario_, selected_.models[model], batch));
      }
      return latency;
    };
    int batch = 1;
    for (const std::size_t model : models_) {
      batch = std::max(batch, selected_.models[model].max_batch);
    }
    for (; batch > 1; --batch) {
      const std::vector<Duration> latency = at(batch);
      if (2 * PathLength(LongestPath(made_.graph, latency), latency) <= made_.slo) break;
    }
    return at(batch);
  }

  const Scenario& scenario_;
  const ProfileFile& selected_;
  const ScenarioPipeline& from_;
  std::vector<std::size_t> models_;  // by stage
  Pipeline made_;
};

}  // namespace

bool IsStage(const Scenario& scenario, std::string_view model) {
  for (const ScenarioPipeline& pipeline : scenario.pipelines) {
    const auto& stages = pipeline.stages;
    if (std::ranges::find(stages, model, &ScenarioStage::model) != stages.end()) return true;
  }
  return false;
}

double RequestsOfAFrame(const ScenarioPipeline& pipeline) {
  double requests = 0;
  for (const ScenarioStage& stage : pipeline.stages) requests += stage.count;
  return requests;
}

Status ValidatePipelines(const Scenario& scenario) {
  if (scenario.pipelines.empty()) return {};
  std::set<std::string_view> names;
  for (const ScenarioModel& model : scenario.models) {
    names.insert(model.name);
    if (!IsStage(scenario, model.name)) continue;
    if (auto valid = ValidateStageModel(model); !valid) return valid;
  }
  for (const ScenarioPipeline& pipeline : scenario.pipelines) {
    if (pipeline.name.empty()) return InvalidArgument("a pipeline has no name");
    if (!names.insert(pipeline.name).second) {
      return InvalidArgument(fmt::format(
          "a pipeline is called '{}', which a model or another pipeline is; give it another name",
          pipeline.name));
    }
    const auto valid = ValidateOne(scenario, pipeline);
    if (valid) continue;
    return InvalidArgument(fmt::format("pipeline '{}': {}", pipeline.name, valid.error().message));
  }
  return {};
}

Expected<std::vector<Pipeline>> MakePipelines(const Scenario& scenario,
                                              const ProfileFile& selected) {
  std::vector<Pipeline> pipelines;
  for (const ScenarioPipeline& from : scenario.pipelines) {
    auto graph = GraphOf(from);
    if (!graph) return std::unexpected(graph.error());
    auto made = Maker(scenario, selected, from, std::move(*graph)).Make();
    if (!made) return std::unexpected(made.error());
    pipelines.push_back(std::move(*made));
  }
  return pipelines;
}

}  // namespace tactus
