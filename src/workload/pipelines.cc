#include "workload/pipelines.h"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "pipeline/build.h"

namespace tactus {
namespace {

constexpr int kMostRows = 64;  // that a stage's answer may have

// What is wrong with it by itself.
Status ValidateOne(const Scenario& scenario, const ScenarioPipeline& pipeline) {
  for (const ScenarioStage& stage : pipeline.stages) {
    const auto& models = scenario.models;
    if (std::ranges::find(models, stage.model, &ScenarioModel::name) == models.end()) {
      return InvalidArgument(
          fmt::format("stage '{}': no [[models]] is called '{}'; add it", stage.name, stage.model));
    }
    if (stage.rows.empty()) continue;
    if (stage.rows.size() > kMostRows + 1 || *std::ranges::max_element(stage.rows) <= 0) {
      return InvalidArgument(
          fmt::format("stage '{}': its rows are weights of 0, 1, 2 and so on rows, up to {}; make "
                      "one of them more than 0",
                      stage.name, kMostRows));
    }
  }
  return Validate(DeclarationOf(pipeline));
}

// The stage that a mistake begins with; nothing where it is the whole pipeline's.
std::optional<std::size_t> StageOf(const ScenarioPipeline& pipeline, std::string_view what) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    if (what.starts_with(fmt::format("stage '{}'", pipeline.stages[s].name))) return s;
  }
  return std::nullopt;
}

// A stage's model whose own settings would be read by nobody.
Status ValidateStageModel(const ScenarioModel& model) {
  const ScenarioModel fresh;
  const char* const said = model.rate_rps.has_value()     ? "rate_rps"
                           : model.slo_ms != fresh.slo_ms ? "slo_ms"
                           : model.ratio != fresh.ratio   ? "ratio"
                                                          : nullptr;
  if (said == nullptr) return {};
  return InvalidArgument(fmt::format(
      "model '{0}' gets its requests from [[pipelines]], which state rates and SLOs: leave out its "
      "{1}; for other requests declare another model with profile_as = \"{0}\"",
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

StageCost CostOf(const Scenario& scenario, const ProfileFile& selected,
                 const ScenarioStage& stage) {
  const std::size_t model = std::ranges::find(scenario.models, stage.model, &ScenarioModel::name) -
                            scenario.models.begin();
  StageCost cost = {.model = ModelId{static_cast<ModelId::rep>(model)},
                    .name = stage.model,
                    .quickest = Quickest(scenario, selected, model)};
  const ProfiledModel& profiled = selected.models[model];
  for (int b = 1; b <= std::max(1, profiled.max_batch); ++b) {
    cost.by_batch.push_back(LatencyOf(scenario, profiled, b));
  }
  return cost;
}

// Of a stage's answer.
double MeanRows(const ScenarioStage& stage) {
  double all = 0;
  double sum = 0;
  for (std::size_t rows = 0; rows < stage.rows.size(); ++rows) {
    all += stage.rows[rows];
    sum += static_cast<double>(rows) * stage.rows[rows];
  }
  return sum / all;
}

}  // namespace

bool IsStage(const Scenario& scenario, std::string_view model) {
  for (const ScenarioPipeline& pipeline : scenario.pipelines) {
    const auto& stages = pipeline.stages;
    if (std::ranges::find(stages, model, &ScenarioStage::model) != stages.end()) return true;
  }
  return false;
}

PipelineDeclaration DeclarationOf(const ScenarioPipeline& pipeline) {
  PipelineDeclaration declaration;
  declaration.name = pipeline.name;
  declaration.slo = FromMillis(pipeline.slo_ms);
  declaration.answer = pipeline.answer == "each" ? AnswerRule::kEach : AnswerRule::kAll;
  declaration.deadlines = pipeline.deadlines == "equal"      ? DeadlineRule::kEqual
                          : pipeline.deadlines == "whole"    ? DeadlineRule::kWhole
                          : pipeline.deadlines == "redivide" ? DeadlineRule::kRedivide
                          : pipeline.deadlines == "persist"  ? DeadlineRule::kPersist
                          : pipeline.deadlines == "spare"    ? DeadlineRule::kSpare
                                                             : DeadlineRule::kLatency;
  for (const ScenarioStage& stage : pipeline.stages) {
    declaration.stages.push_back({.name = stage.name,
                                  .after = stage.after,
                                  .model = stage.model,
                                  .count = stage.count,
                                  .demultiply = !stage.rows.empty(),
                                  .demultiply_most = kMostRows,
                                  .gather = stage.gather,
                                  .budget = FromMillis(stage.budget_ms)});
  }
  return declaration;
}

std::vector<double> RunsOfStages(const ScenarioPipeline& pipeline) {
  std::vector<double> runs;
  for (const ScenarioStage& stage : pipeline.stages) runs.push_back(stage.count);
  const PipelineDeclaration declaration = DeclarationOf(pipeline);
  if (!std::ranges::any_of(declaration.stages, &StageDeclaration::demultiply)) return runs;
  const auto graph = PipelineGraph::Make(declaration.stages);
  if (!graph) return runs;  // which Validate says
  const auto levels = PipelineLevels::Make(*graph, declaration.stages);
  if (!levels) return runs;
  for (std::size_t s = 0; s < runs.size(); ++s) {
    runs[s] = 1;
    for (const LevelId level : levels->path(levels->of(StageId{static_cast<StageId::rep>(s)}))) {
      const StageId opener = levels->opener(level);
      if (levels->fixed(level) > 0) runs[s] *= levels->fixed(level);
      if (opener.valid()) runs[s] *= MeanRows(pipeline.stages[opener.value()]);
    }
  }
  return runs;
}

double RunsOfARequest(const ScenarioPipeline& pipeline) {
  double runs = 0;
  for (const double of_stage : RunsOfStages(pipeline)) runs += of_stage;
  return runs;
}

std::optional<PipelineMistake> FindPipelineMistake(const Scenario& scenario) {
  if (scenario.pipelines.empty()) return std::nullopt;
  std::set<std::string_view> names;
  for (std::size_t m = 0; m < scenario.models.size(); ++m) {
    names.insert(scenario.models[m].name);
    if (!IsStage(scenario, scenario.models[m].name)) continue;
    const auto valid = ValidateStageModel(scenario.models[m]);
    if (!valid) return PipelineMistake{.what = valid.error().message, .model = m};
  }
  for (std::size_t p = 0; p < scenario.pipelines.size(); ++p) {
    const ScenarioPipeline& pipeline = scenario.pipelines[p];
    PipelineMistake mistake{.what = "", .pipeline = p};
    if (pipeline.name.empty()) {
      mistake.what = "a pipeline has no name; give it one";
    } else if (!names.insert(pipeline.name).second) {
      mistake.what = fmt::format(
          "a pipeline is called '{}', which a model or another pipeline is; give it another name",
          pipeline.name);
    } else if (const auto valid = ValidateOne(scenario, pipeline); !valid) {
      mistake.what = fmt::format("pipeline '{}': {}", pipeline.name, valid.error().message);
      mistake.stage = StageOf(pipeline, valid.error().message);
    }
    if (!mistake.what.empty()) return mistake;
  }
  return std::nullopt;
}

Status ValidatePipelines(const Scenario& scenario) {
  auto mistake = FindPipelineMistake(scenario);
  if (mistake) return InvalidArgument(std::move(mistake->what));
  return {};
}

Expected<std::vector<Pipeline>> MakePipelines(const Scenario& scenario,
                                              const ProfileFile& selected) {
  std::vector<Pipeline> pipelines;
  for (const ScenarioPipeline& from : scenario.pipelines) {
    std::vector<StageCost> costs;
    for (const ScenarioStage& stage : from.stages) {
      costs.push_back(CostOf(scenario, selected, stage));
    }
    auto made = BuildPipeline(DeclarationOf(from), costs);
    if (!made) return std::unexpected(made.error());
    pipelines.push_back(std::move(*made));
  }
  return pipelines;
}

}  // namespace tactus
