#include "serving/ensembles.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <spdlog/logger.h>

#include "dispatch/dispatcher.h"
#include "server/kserve/ensemble_config.h"
#include "server/kserve/step_group_config.h"
#include "service/model_folders.h"

namespace tactus {
namespace {

// Without limit on batches: what all lanes take at best, and of the first class at the final exit.
std::optional<StageCost> CostIn(const ServedModels& served_models, const ModelSpec& spec) {
  for (ModelId::rep m = 0; m < served_models.models.size(); ++m) {
    const Model& model = served_models.models[m];
    if (model.name != spec.name || !model.loaded || served_models.profile.exits(ModelId{m}) == 0) {
      continue;
    }
    const ProfileTable& table = served_models.profile;
    StageCost cost{.model = ModelId{m}, .name = spec.name, .quickest = {}, .by_batch = {}};
    cost.quickest = table.Quickest(ModelId{m}, LaneClass{0});
    for (int c = 1; c < table.lane_classes(); ++c) {
      cost.quickest = std::min(
          cost.quickest, table.Quickest(ModelId{m}, LaneClass{static_cast<LaneClass::rep>(c)}));
    }
    const ExitId last{static_cast<ExitId::rep>(table.exits(ModelId{m}) - 1)};
    for (int b = 1; b <= table.max_batch(ModelId{m}); ++b) {
      cost.by_batch.push_back(std::max(Nanos(1), table.Latency(ModelId{m}, last, b, LaneClass{0})));
    }
    return cost;
  }
  return std::nullopt;
}

// Those that are steps of others, or the others.
EnsembleFolders FoldersOf(const ServeOptions& o, bool as_steps, const Log& log) {
  EnsembleFolders folders;
  folders.holds = [of = o.folders, as_steps](const std::string& model, const std::string& config) {
    const std::filesystem::path folder = of->Of(model);
    return HoldsEnsemble(folder, config) && HoldsStepEnsemble(folder, config) == as_steps;
  };
  folders.list = [of = o.folders, holds = folders.holds] {
    auto names = of->List();
    if (!names) return std::vector<std::string>();
    std::erase_if(*names, [&](const std::string& name) { return !holds(name, ""); });
    return *std::move(names);
  };
  folders.read = [of = o.folders, log](
                     const std::string& model,
                     const std::string& config) -> Expected<std::vector<EnsembleDeclaration>> {
    if (Status fine = of->Check(model); !fine) return std::unexpected(std::move(fine.error()));
    std::vector<std::string> doubts;
    auto ensembles = ReadEnsemble(of->Of(model), config, &doubts);
    for (const std::string& doubt : doubts) log->warn(doubt);
    return ensembles;
  };
  return folders;
}

// Steps run where the plan says, and those that run at one place go there as one.
void FollowRoutes(RoutedSteps& routed, EnsembleOptions& options) {
  options.runs_steps = &routed;
  options.places = [&routed](const PipelineDeclaration& pipeline) {
    std::vector<StepGroup::Step> steps;
    for (const StageDeclaration& each : pipeline.stages) steps.push_back({each.name, each.model});
    return routed.PlacesOf(pipeline.name, steps);
  };
  options.places_number = [&routed] { return routed.places_number(); };
  options.describe = DescribeSteps;
  options.read_described = ReadSteps;
}

EnsembleOptions OptionsOf(const ServeOptions& o, CostOfStep cost_of, Observer& observer,
                          const Log& log) {
  EnsembleOptions options;
  options.default_slo = FromMillis(o.default_slo_ms);
  options.most_calls = o.call_capacity;
  options.most_runs = static_cast<std::int64_t>(std::min(o.queue_capacity, o.call_capacity));
  options.is_explicit = o.model_control == "explicit";
  options.strict_readiness = o.strict_readiness;
  if (o.model_control == "poll") options.poll_interval = FromSeconds(o.poll_s);
  options.cost_of = std::move(cost_of);
  options.observer = &observer;
  options.log = [log](const std::string& line) { log->warn(line); };
  return options;
}

std::unique_ptr<EnsembleService> Opened(const ServeOptions& o, InferenceService& models,
                                        EnsembleOptions options, bool as_steps, const Log& log) {
  auto service =
      std::make_unique<EnsembleService>(models, std::move(options), FoldersOf(o, as_steps, log));
  std::vector<std::string> names{"*"};
  if (o.model_control == "explicit") {
    names = OnlyEnsembles(o, o.load_models, true);
    std::erase_if(names, [&](const std::string& name) {
      return HoldsStepEnsemble(o.folders->Of(name), "") != as_steps;
    });
  }
  service->Open(names);
  return service;
}

}  // namespace

std::vector<std::string> OnlyEnsembles(const ServeOptions& options,
                                       const std::vector<std::string>& models, bool ensembles) {
  std::vector<std::string> chosen;
  for (const std::string& model : models) {
    if (model == "*" || HoldsEnsemble(options.folders->Of(model), "") == ensembles) {
      chosen.push_back(model);
    }
  }
  return chosen;
}

CostOfStep CostIn(std::vector<const Runtime*> runtimes) {
  return [runtimes = std::move(runtimes)](const ModelSpec& spec) -> std::optional<StageCost> {
    for (const Runtime* runtime : runtimes) {
      const auto served_models = runtime->served_models();
      if (served_models == nullptr) continue;
      if (auto cost = CostIn(*served_models, spec)) return cost;
    }
    return std::nullopt;
  };
}

std::unique_ptr<EnsembleService> ServeStepEnsembles(const ServeOptions& o, InferenceService& models,
                                                    CostOfStep cost_of, Observer& observer,
                                                    const Log& log) {
  // A node's may come later.
  if (o.routes.empty() && FoldersOf(o, true, log).list().empty()) return nullptr;
  EnsembleOptions options = OptionsOf(o, std::move(cost_of), observer, log);
  options.mark = CallId{1} << 28;
  options.any_ensemble = [folders = o.folders](const std::string& model) {
    return HoldsEnsemble(folders->Of(model), "");
  };
  return Opened(o, models, std::move(options), true, log);
}

std::unique_ptr<EnsembleService> ServeEnsembles(const ServeOptions& o, InferenceService& models,
                                                RoutedSteps* routed, CostOfStep cost_of,
                                                Observer& observer, PipelineJournal* journal,
                                                const Log& log) {
  EnsembleOptions options = OptionsOf(o, std::move(cost_of), observer, log);
  if (routed != nullptr) FollowRoutes(*routed, options);
  options.journal = journal;
  return Opened(o, models, std::move(options), false, log);
}

}  // namespace tactus
