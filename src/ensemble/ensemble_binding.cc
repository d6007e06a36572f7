// How an ensemble comes to be served: with the models of its steps, with steps that run at one
// place as one, and as a part of another node's.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ensemble/ensemble_service.h"
#include "ensemble/nested_steps.h"
#include "pipeline/budget.h"
#include "pipeline/step_groups.h"
#include "pipeline/tensors.h"

namespace tactus {
namespace {

// What a group takes: the longest way through it, at best and at each batch.
StageCost CostOfSteps(const Pipeline& inner, std::span<const StageCost> costs,
                      const std::string& name) {
  StageCost cost{.model = ModelId{0}, .name = name, .quickest = {}, .by_batch = {}};
  const auto longest = [&](const auto& of) {
    std::vector<Duration> times;
    for (const StageCost& each : costs) times.push_back(of(each));
    return PathLength(LongestPath(inner.graph, times), times);
  };
  cost.quickest = longest([](const StageCost& each) { return each.quickest; });
  std::size_t batches = 1;
  for (const StageCost& each : costs) batches = std::max(batches, each.by_batch.size());
  for (std::size_t b = 0; b < batches; ++b) {
    cost.by_batch.push_back(longest([b](const StageCost& each) {
      return each.by_batch[std::min(b, each.by_batch.size() - 1)];
    }));
  }
  return cost;
}

StageMask MaskOf(const PipelineDeclaration& pipeline, const std::vector<std::string>& names) {
  StageMask mask = 0;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    if (std::ranges::find(names, pipeline.stages[s].name) == names.end()) continue;
    mask |= StageMask{1} << s;
  }
  return mask;
}

}  // namespace

StageCost EnsembleService::CostOf(const ModelSpec& model) const {
  if (options_.cost_of) {
    if (auto known = options_.cost_of(model)) return *std::move(known);
  }
  return {.model = ModelId{0}, .name = model.name, .quickest = {}, .by_batch = {Micros(1)}};
}

std::vector<std::string> EnsembleService::StepsOf(const std::string& ensemble) const {
  std::vector<std::string> steps;
  const auto found = entries_.find(ensemble);
  if (found == entries_.end()) return steps;
  for (const auto& [number, version] : found->second.versions) {
    for (const StageDeclaration& step : version.declared.pipeline.stages) {
      steps.push_back(step.model);
    }
  }
  return steps;
}

Expected<EnsembleService::Binding> EnsembleService::ModelsOf(const EnsembleDeclaration& declared,
                                                             InferenceService& steps) const {
  Binding binding{.declared = declared, .steps = &steps};
  for (const StageDeclaration& step : declared.pipeline.stages) {
    const auto wrong = [&](ErrorCode code, std::string_view why) {
      return Fail(code, fmt::format("{}: step '{}': {}", step.place, step.name, why));
    };
    const auto no_step = [&] {
      return wrong(ErrorCode::kInvalidArgument,
                   WhyNoStep(declared, step.model, bool{options_.any_ensemble},
                             [this](const std::string& name) { return StepsOf(name); }));
    };
    if (entries_.contains(step.model)) return no_step();
    auto model = steps.Find(step.model, step.version);
    if (!model && options_.any_ensemble && options_.any_ensemble(step.model)) return no_step();
    if (!model) return wrong(ErrorCode::kUnavailable, WhyNoModel(step, model.error()));
    binding.costs.push_back(CostOf(**model));
    binding.models.push_back(*std::move(model));
  }
  return binding;
}

Expected<std::shared_ptr<ServedEnsemble>> EnsembleService::Make(Binding&& binding) const {
  auto pipeline = BuildPipeline(binding.declared.pipeline, binding.costs);
  if (!pipeline) return std::unexpected(std::move(pipeline.error()));
  for (std::size_t s = 0; s < binding.declared.pipeline.stages.size(); ++s) {
    const StageDeclaration& step = binding.declared.pipeline.stages[s];
    const LevelId level = pipeline->levels.of(StageId{static_cast<StageId::rep>(s)});
    std::int64_t runs = 1;
    for (const LevelId each : pipeline->levels.path(level)) runs *= pipeline->levels.most(each);
    if (options_.most_runs == 0 || runs <= options_.most_runs) continue;
    return InvalidArgument(fmt::format(
        "{}: step '{}': one request may run it {} times, and {} may wait for a model: give a "
        "smaller demultiply_most, or a larger --queue-capacity and --call-capacity",
        step.place, step.name, runs, options_.most_runs));
  }
  auto tensors = BindTensors(binding.declared, pipeline->graph, pipeline->levels, binding.models);
  if (!tensors) return std::unexpected(std::move(tensors.error()));
  return std::make_shared<ServedEnsemble>(ServedEnsemble::Parts{
      .declaration = std::move(binding.declared),
      .bound = {.tensors = *std::move(tensors), .models = std::move(binding.models)},
      .pipeline = *std::move(pipeline),
      .around = around_,
      .counters = std::move(binding.counters),
      .steps = binding.steps,
      .is_part = binding.is_part,
      .groups = std::move(binding.groups),
      .plain = std::move(binding.plain)});
}

Expected<std::shared_ptr<ServedEnsemble>> EnsembleService::Bind(
    const EnsembleDeclaration& declared, std::shared_ptr<EnsembleCounters> counters) const {
  auto binding = ModelsOf(declared, around_->steps);
  if (!binding) return std::unexpected(std::move(binding.error()));
  binding->counters = std::move(counters);
  auto plain = Make(Binding(*binding));
  if (!plain || !options_.places) return plain;
  const std::uint64_t by = options_.places_number();
  const std::vector<std::string> places = options_.places(declared.pipeline);
  (*plain)->places = places;
  auto grouped = Grouped(*binding, *plain);
  const auto& served = grouped != nullptr ? grouped : *plain;
  served->places = places;
  served->places_by = by;
  return served;
}

bool EnsembleService::PlacesHold(const ServedEnsemble& served) const {
  if (!options_.places || served.is_part()) return true;
  const std::uint64_t by = options_.places_number();
  if (served.places_by == by) return true;
  const ServedEnsemble& plain = served.plain() != nullptr ? *served.plain() : served;
  if (options_.places(plain.pipeline()) != served.places) return false;
  served.places_by = by;
  return true;
}

std::shared_ptr<ServedEnsemble> EnsembleService::Grouped(
    const Binding& plain, const std::shared_ptr<ServedEnsemble>& served) const {
  const auto built = BuildPipeline(plain.declared.pipeline, plain.costs);
  if (!built) return nullptr;
  std::vector<std::vector<std::string>> groups;
  for (const StageMask mask : FindStepGroups(
           {plain.declared, built->graph, built->levels, plain.models}, served->places)) {
    auto& names = groups.emplace_back();
    for (std::size_t s = 0; s < plain.models.size(); ++s) {
      if ((mask >> s & 1) != 0) names.push_back(plain.declared.pipeline.stages[s].name);
    }
  }
  Binding binding = plain;
  binding.groups.resize(binding.models.size());
  bool any = false;
  for (const auto& names : groups) {
    Binding before = binding;
    const Status grouped = Group(binding, names);
    any = any || grouped;
    if (grouped) continue;
    binding = std::move(before);
    Say(fmt::format("ensemble '{}': steps go one by one: {}", plain.declared.model.name,
                    grouped.error().message));
  }
  if (!any) return nullptr;
  binding.plain = served;
  auto made = Make(std::move(binding));
  if (made) return *std::move(made);
  Say(made.error().message);
  return nullptr;
}

Status EnsembleService::Group(Binding& binding, const std::vector<std::string>& names) const {
  const auto built = BuildPipeline(binding.declared.pipeline, binding.costs);
  if (!built) return std::unexpected(built.error());
  const StageMask mask = MaskOf(binding.declared.pipeline, names);
  auto split = SplitAtGroup({binding.declared, built->graph, built->levels, binding.models}, mask);
  if (!split) return std::unexpected(split.error());
  auto described = options_.describe(split->inner);
  if (!described) return std::unexpected(described.error());
  Binding inner{.declared = split->inner, .models = split->inner_models, .is_part = true};
  inner.counters = std::make_shared<EnsembleCounters>();
  std::vector<StageCost> costs;
  std::vector<std::shared_ptr<const StepGroup>> groups;
  for (std::size_t s = 0; s < binding.models.size(); ++s) {
    const bool in = (mask >> s & 1) != 0;
    (in ? inner.costs : costs).push_back(binding.costs[s]);
    if (!in) groups.push_back(binding.groups[s]);
  }
  const auto inner_built = BuildPipeline(inner.declared.pipeline, inner.costs);
  if (!inner_built) return std::unexpected(inner_built.error());
  auto group = std::make_shared<StepGroup>();
  group->pipeline = binding.declared.pipeline.name;
  group->described = *std::move(described);
  const PipelineLevels& levels = inner_built->levels;
  group->leaves_out = split->inner.pipeline.answer == AnswerRule::kEach && levels.size() > 1;
  for (const StageDeclaration& step : split->inner.pipeline.stages) {
    group->steps.push_back({step.name, step.model});
  }
  const auto at = static_cast<std::ptrdiff_t>(split->step);
  costs.insert(costs.begin() + at, CostOfSteps(*inner_built, inner.costs, split->inner.model.name));
  Binding local = inner;
  inner.steps = &around_->steps;
  local.steps = &steps_;
  auto by_routes = Make(std::move(inner));
  if (!by_routes) return std::unexpected(by_routes.error());
  auto here = Make(std::move(local));
  if (!here) return std::unexpected(here.error());
  group->run = [by_routes = *by_routes, here = *here](InferCall&& call, StepGroup::Where where) {
    return (where == StepGroup::Where::kHere ? here : by_routes)->RunPart(std::move(call));
  };
  groups.insert(groups.begin() + at, std::move(group));
  binding.declared = std::move(split->outer);
  binding.models = std::move(split->models);
  binding.costs = std::move(costs);
  binding.groups = std::move(groups);
  return {};
}

Expected<std::shared_ptr<const ModelSpec>> EnsembleService::Enter(
    std::string_view described) const {
  const auto wrong = [](const Error& why) {
    return Fail(ErrorCode::kUnimplemented, "steps that are to run here as one: " + why.message);
  };
  const auto spec = [](const std::shared_ptr<ServedEnsemble>& served) {
    return std::shared_ptr<const ModelSpec>(served, &served->spec());
  };
  if (!options_.read_described) return InferenceService::Enter(described);
  const std::unique_lock lock(mutex_);
  const auto known = entered_.find(described);
  if (known != entered_.end() && IsCurrent(*known->second.served)) {
    known->second.used = ++entries_used_;
    return spec(known->second.served);
  }
  auto declared = options_.read_described(described);
  if (!declared) return wrong(declared.error());
  if (declared->pipeline.slo <= Duration{}) declared->pipeline.slo = options_.default_slo;
  auto binding = ModelsOf(*declared, steps_);
  if (!binding) return wrong(binding.error());
  binding->is_part = true;
  binding->counters = std::make_shared<EnsembleCounters>();
  auto served = Make(*std::move(binding));
  if (!served) return wrong(served.error());
  Keep(*served);
  if (known == entered_.end() && entered_.size() >= kMostEntered) {
    entered_.erase(
        std::ranges::min_element(entered_, {}, [](const auto& each) { return each.second.used; }));
  }
  entered_.insert_or_assign(std::string(described), Entered{*served, ++entries_used_});
  return spec(*served);
}

}  // namespace tactus
