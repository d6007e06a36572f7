#include "serving/check_serving.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "check/doubts.h"
#include "check/never_served.h"
#include "engines/registry.h"
#include "ensemble/nested_steps.h"
#include "experiment/experiment.h"
#include "pipeline/build.h"
#include "pipeline/tensors.h"
#include "platform/cpu_affinity.h"
#include "profiling/model_trial.h"
#include "runtime/models/model_profile.h"
#include "server/kserve/ensemble_config.h"
#include "server/kserve/model_config.h"
#include "service/model_folders.h"
#include "serving/auto_lanes.h"
#include "serving/device.h"
#include "serving/plans.h"
#include "serving/runtime_options.h"
#include "workload/share_profiles.h"

namespace tactus {
namespace {

class ServingCheck {
 public:
  explicit ServingCheck(const ServeOptions& options) : o_(WithLanes(WithFolders(options))) {}

  Expected<ServingDoubts> Run(const CheckProgress& progress);

 private:
  Status ReadInputs();
  void CheckModel(const std::string& name);
  void CheckEnsemble(const std::filesystem::path& folder);
  // What a step's model states of itself; an error where it cannot be one; nothing where its file
  // says more than its configuration, or it is refused by itself.
  Expected<std::optional<ModelSpec>> ModelOf(const StageDeclaration& step,
                                             const EnsembleDeclaration& ensemble,
                                             const std::filesystem::path& folder);
  // What the model's batches take; an error where it would be refused; nothing where it is not
  // profiled and would be measured.
  Expected<std::optional<ProfileTable::ModelRows>> RowsFor(const ModelSpec& spec);
  // Of a platform whose models this process can load on its processor; null: of none such.
  Engine* EngineOf(const std::string& platform);
  // Loads the model where an engine of this process can, and tries it as a server would: the spec
  // as it would serve, and the line of which sizes it would be measured with. Nothing: it is
  // refused.
  std::optional<std::string> TryModel(ModelSpec& spec);
  void CheckService(const ModelSpec& spec, ProfileTable::ModelRows rows);
  void Doubt(std::string line) { found_.doubts.push_back(std::move(line)); }
  void Note(std::string line) { found_.notes.push_back(std::move(line)); }

  const ServeOptions o_;
  std::unique_ptr<Policy> policy_;
  std::map<std::string, std::unique_ptr<Engine>> engines_;  // by platform; null: none here
  // What was tried, by name and version, as it would serve: what ensembles' steps are.
  std::map<std::pair<std::string, std::int64_t>, ModelSpec> tried_;
  std::optional<ProfileFile> profile_;
  std::vector<ShareProfile> shares_;   // where a plan splits the device
  std::set<std::string> without_slo_;  // models
  ServingDoubts found_;
};

Expected<ServingDoubts> ServingCheck::Run(const CheckProgress& progress) {
  if (Status read = ReadInputs(); !read) return std::unexpected(std::move(read.error()));
  const auto models = o_.folders->List();
  if (!models) return std::unexpected(models.error());
  const std::vector<std::string> overlooked = o_.folders->Overlooked();
  if (models->empty() && overlooked.empty()) {
    Doubt(fmt::format("{} has no model; each has a folder of its own, such as {}",
                      o_.folders->Text(),
                      (std::filesystem::path(o_.models.front()) / "NAME/1/model.onnx").string()));
  }
  for (const std::string& folder : overlooked) Doubt(folder);
  std::vector<std::filesystem::path> ensembles;
  for (std::size_t m = 0; m < models->size(); ++m) {
    const std::string& model = (*models)[m];
    if (progress) progress(m, models->size(), model);
    if (Status fine = o_.folders->Check(model); !fine) {
      found_.refused.push_back(fine.error().message);
    } else if (HoldsEnsemble(o_.folders->Of(model), "")) {
      ensembles.push_back(o_.folders->Of(model));
    } else {
      CheckModel(model);
    }
  }
  for (const std::filesystem::path& folder : ensembles) CheckEnsemble(folder);
  if (!without_slo_.empty()) {
    Note(
        fmt::format("without slo_ms, so that the server's default of {:.4g} ms counts "
                    "(--default-slo-ms): {}",
                    o_.default_slo_ms, fmt::join(without_slo_, ", ")));
  }
  return std::move(found_);
}

Status ServingCheck::ReadInputs() {
  auto policy = MakeRealTimePolicy(o_.policy);
  if (!policy) return std::unexpected(std::move(policy.error()));
  policy_ = *std::move(policy);
  if (Status fit = CheckPlanOptions(o_); !fit) return fit;
  if (!o_.profile.empty()) {
    auto profile = LoadProfile(o_.profile);
    if (!profile) return std::unexpected(std::move(profile.error()));
    for (const std::string& warning : Warnings(*profile)) Doubt("profile: " + warning);
    profile_ = *std::move(profile);
  }
  if (SplitsDevice(o_)) {
    const auto measured = ParseMeasuredShares(o_.on_share);
    if (!measured) return std::unexpected(measured.error());
    auto shares = LoadShareProfiles(*measured);
    if (!shares) return std::unexpected(std::move(shares.error()));
    shares_ = *std::move(shares);
    if (auto doubt = SharesDoubt(shares_)) Doubt(*std::move(doubt));
  }
  const auto cores = static_cast<int>(AllowedCores().size());
  if (auto doubt = CoresDoubt(o_, cores)) Doubt(*std::move(doubt));
  return {};
}

void ServingCheck::CheckModel(const std::string& name) {
  const std::filesystem::path folder = o_.folders->Of(name);
  const auto versions = ListVersions(folder, "");
  if (!versions) return found_.refused.push_back(versions.error().message);
  for (const std::int64_t version : *versions) {
    auto spec =
        ReadModelSpec(folder, version, "", {PlatformsOf(o_), &found_.doubts, &found_.notes});
    if (!spec) {
      found_.refused.push_back(spec.error().message);
      continue;
    }
    const auto sizes = TryModel(*spec);
    if (!sizes) continue;
    if (spec->slo <= Duration{}) without_slo_.insert(name);
    tried_[{name, version}] = *spec;
    auto rows = RowsFor(*spec);
    if (!rows) {
      found_.refused.push_back(rows.error().message);
    } else if (*rows) {
      CheckService(*spec, **std::move(rows));
    } else {
      Note(
          fmt::format("model '{}' has no profile: it would be measured quickly as it is "
                      "loaded; `tactus profile` measures it properly",
                      spec->name));
      if (!sizes->empty()) Note(*sizes);
    }
  }
}

Expected<std::optional<ModelSpec>> ServingCheck::ModelOf(const StageDeclaration& step,
                                                         const EnsembleDeclaration& ensemble,
                                                         const std::filesystem::path& folder) {
  const auto wrong = [&](std::string_view why) {
    return InvalidArgument(fmt::format("{}: step '{}': {}", step.place, step.name, why));
  };
  const std::filesystem::path of_step = o_.folders->Of(step.model);
  if (!std::filesystem::is_directory(of_step)) {
    return wrong(fmt::format("the repository has no model '{}'", step.model));
  }
  const auto versions = ListVersions(of_step, "");
  if (!versions || versions->empty()) {
    return wrong(fmt::format("model '{}' has no version that serves; the ensemble waits for it",
                             step.model));
  }
  const std::int64_t version = step.version < 0 ? std::ranges::max(*versions) : step.version;
  if (std::ranges::find(*versions, version) == versions->end()) {
    return wrong(fmt::format("model '{}' has no version {} that serves; there are: {}", step.model,
                             version, fmt::join(*versions, ", ")));
  }
  if (HoldsEnsemble(of_step, "")) {
    const bool has_as_step = HoldsStepEnsemble(folder, "");
    if (has_as_step || !HoldsStepEnsemble(of_step, "")) {
      return wrong(WhyNoStep(ensemble, step.model, has_as_step, [&](const std::string& name) {
        std::vector<std::string> models;
        const auto read = ReadEnsemble(o_.folders->Of(name), "");
        if (!read) return models;
        for (const auto& each : read->front().pipeline.stages) models.push_back(each.model);
        return models;
      }));
    }
    const auto read = ReadEnsemble(of_step, "");
    if (!read) return std::nullopt;
    const auto found = std::ranges::find(
        *read, version, [](const EnsembleDeclaration& each) { return each.model.version; });
    if (found == read->end()) return std::nullopt;
    return found->model;
  }
  const auto tried = tried_.find({step.model, version});
  if (tried == tried_.end()) {
    return wrong(fmt::format("model '{}' is refused, see there", step.model));
  }
  // Where this process did not load it, its file may say more.
  if (tried->second.inputs.empty() || tried->second.outputs.empty()) return std::nullopt;
  return tried->second;
}

void ServingCheck::CheckEnsemble(const std::filesystem::path& folder) {
  const auto ensembles = ReadEnsemble(folder, "", &found_.doubts);
  if (!ensembles) return found_.refused.push_back(ensembles.error().message);
  EnsembleDeclaration ensemble = ensembles->front();
  if (ensemble.pipeline.slo <= Duration{}) {
    ensemble.pipeline.slo = FromMillis(o_.default_slo_ms);
    without_slo_.insert(ensemble.model.name);
  }
  std::vector<std::shared_ptr<const ModelSpec>> models;
  std::vector<StageCost> costs;  // what a server takes before it has measured
  for (const StageDeclaration& step : ensemble.pipeline.stages) {
    auto model = ModelOf(step, ensemble, folder);
    if (!model) found_.refused.push_back(model.error().message);
    if (!model || !*model) continue;
    models.push_back(std::make_shared<const ModelSpec>(**std::move(model)));
    costs.push_back(
        {.model = ModelId{0}, .name = step.model, .quickest = {}, .by_batch = {Micros(1)}});
  }
  if (models.size() < ensemble.pipeline.stages.size()) return;
  const auto pipeline = BuildPipeline(ensemble.pipeline, costs);
  if (!pipeline) return found_.refused.push_back(pipeline.error().message);
  const auto bound = BindTensors(ensemble, pipeline->graph, pipeline->levels, models);
  if (!bound) found_.refused.push_back(bound.error().message);
}

Expected<std::optional<ProfileTable::ModelRows>> ServingCheck::RowsFor(const ModelSpec& spec) {
  const ProfileOptions options{.percentile = o_.percentile, .jitter_ms = o_.jitter_ms};
  const int most = std::clamp(spec.max_batch, 1, kMaxBatch);
  if (!shares_.empty()) return RowsOf(shares_, spec, most, options);
  const auto known = FindProfile(spec, profile_);
  if (!known) return std::unexpected(known.error());
  if (!*known) return std::nullopt;
  const Model model = DescribeModel(spec, FromMillis(o_.default_slo_ms), most);
  const Status met = CheckSlo(ProfileOf(**known, spec, profile_), model, options);
  if (!met) return std::unexpected(met.error());
  auto rows = RowsOf(**known, spec, most, options);
  if (!rows) {
    Doubt(fmt::format("model '{}': its profile does not fit: {}", spec.name, rows.error().message));
    return std::nullopt;
  }
  if (o_.slots > 1) {
    if (auto assumed = UseWarning(spec.name, &**known)) Doubt(*std::move(assumed));
  }
  return rows;
}

Engine* ServingCheck::EngineOf(const std::string& platform) {
  const auto [entry, fresh] = engines_.try_emplace(platform);
  if (!fresh) return entry->second.get();
  const bool graph = platform == "onnxruntime_onnx";
  if (graph && !o_.engine.empty() && o_.engine != "onnxruntime") return nullptr;
  if (!graph && platform != kHostPlatform) return nullptr;
  auto engine = MakeEngine(platform, {.emulated = {}, .onnxruntime_library = o_.onnxruntime});
  if (engine) {
    entry->second = *std::move(engine);
    if (graph && OnDevices(o_)) {
      Note(
          fmt::format("--device: graphs are opened and tried on this machine's processor, not on "
                      "{}; whether they run there, and in time, shows as the server starts",
                      o_.device));
    }
  } else {
    Doubt("graphs are not opened here: " + engine.error().message);
  }
  return entry->second.get();
}

std::optional<std::string> ServingCheck::TryModel(ModelSpec& spec) {
  Engine* const engine = EngineOf(spec.platform);
  if (engine == nullptr) return "";
  const LaneSpec lane{.placement = CpuPlacement{.threads = o_.threads}};
  auto tried = LoadTried(spec, *engine, {&lane, 1}, BatchId{0});
  // The library's words for an operator, or a type of it, that a device may have and the processor
  // lacks.
  if (!tried && OnDevices(o_) && tried.error().message.contains("Could not find an impl")) {
    Note(fmt::format("model '{}' could not be opened on the processor, the device may run it: {}",
                     spec.name, tried.error().message));
    return "";
  }
  if (!tried) {
    found_.refused.push_back(std::move(tried.error().message));
    return std::nullopt;
  }
  engine->Unload(tried->handles[0]);
  // What a server finds out by itself is nobody's mistake, unless it found out nothing.
  const bool decided = tried->spec.batch_origin == BatchOrigin::kAssumed && tried->ran;
  for (std::string& line : tried->said) decided ? Note(std::move(line)) : Doubt(std::move(line));
  if (!tried->rows.empty()) Note(std::move(tried->rows));
  spec = std::move(tried->spec);
  return std::move(tried->sizes);
}

// Where a plan splits the device, only the plan knows which lanes there will be.
void ServingCheck::CheckService(const ModelSpec& spec, ProfileTable::ModelRows rows) {
  if (!shares_.empty()) return;
  const Model model = DescribeModel(spec, FromMillis(o_.default_slo_ms), rows.max_batch);
  const ServedModels alone{{model}, ProfileTable(1, {&rows, 1})};
  const std::vector<LaneSpec> lanes(1, LaneSpec{.slots = o_.slots});
  auto why = ExplainNeverServed(policy_->traits(), alone, lanes, ModelId{0});
  if (why) Doubt(*std::move(why));
}

}  // namespace

Expected<ServingDoubts> CheckServing(const ServeOptions& options, const CheckProgress& progress) {
  return ServingCheck(options).Run(progress);
}

}  // namespace tactus
