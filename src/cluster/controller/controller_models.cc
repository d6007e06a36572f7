#include "cluster/controller/controller_models.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/models/catalogue.h"
#include "server/kserve/ensemble_config.h"

namespace tactus {
namespace {

// The models of an ensemble that is a step of others: they run where it runs. Those of a pipeline
// run where a plan puts them.
std::vector<std::string> ModelsBesideStep(const std::filesystem::path& folder) {
  std::vector<std::string> models;
  if (!HoldsStepEnsemble(folder, "")) return models;
  const auto ensembles = ReadEnsemble(folder, "");
  if (!ensembles) return models;  // whoever loads it says why
  for (const EnsembleDeclaration& each : *ensembles) {
    for (const StageDeclaration& stage : each.pipeline.stages) models.push_back(stage.model);
  }
  return models;
}

}  // namespace

std::filesystem::path ModelsBeside(const std::filesystem::path& fleet) {
  std::error_code code;
  auto models = fleet.parent_path() / "models";
  return std::filesystem::is_directory(models, code) ? models : std::filesystem::path();
}

Status OfferModels(const std::filesystem::path& repository, const FleetInput& fleet,
                   ControllerOptions& options, const std::function<void(const std::string&)>& log) {
  if (repository.empty()) {
    log("no --models: every node must have its own");
    return {};
  }
  std::set<std::string> names(fleet.models.begin(), fleet.models.end());
  for (const FleetPipeline& each : fleet.pipelines) names.insert(each.name);
  auto catalogue = Catalogue::Read(repository, names, ModelsBesideStep);
  if (!catalogue) return std::unexpected(std::move(catalogue.error()));
  std::string missing;
  for (const std::string& each : catalogue->missing()) missing += " " + each;
  log(fmt::format("offers {} models of {}, {} bytes{}{}", catalogue->digests().size(),
                  repository.string(), catalogue->bytes(),
                  missing.empty() ? "" : "; nodes must have of their own:", missing));
  options.leader.digests = catalogue->digests();
  options.models = std::make_shared<const Catalogue>(*std::move(catalogue));
  return {};
}

}  // namespace tactus
