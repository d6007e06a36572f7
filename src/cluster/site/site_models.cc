#include "cluster/site/site_models.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace tactus {
namespace {

std::unexpected<Error> NotLoaded(std::string_view model) {
  return NotFound("model '" + std::string(model) + "' is not loaded on this node");
}

}  // namespace

SiteModels::SiteModels(InferenceService& site, Options options)
    : site_(site), options_(std::move(options)) {}

bool SiteModels::Holds(std::string_view model) const {
  const std::shared_lock lock(mutex_);
  return loaded_.contains(model);
}

Expected<std::shared_ptr<const ModelSpec>> SiteModels::Find(std::string_view model,
                                                            std::int64_t version) const {
  if (!Holds(model)) return NotLoaded(model);
  return site_.Find(model, version);
}

Status SiteModels::ModelReady(std::string_view model, std::int64_t version) const {
  if (!Holds(model)) return NotLoaded(model);
  return site_.ModelReady(model, version);
}

bool SiteModels::Ready() const {
  if (!site_.Ready()) return false;
  const std::shared_lock lock(mutex_);
  return std::ranges::all_of(
      loaded_, [this](const std::string& model) { return site_.Find(model, -1).has_value(); });
}

std::vector<ModelState> SiteModels::Index() const {
  std::vector<ModelState> states = site_.Index();
  std::erase_if(states, [this](const ModelState& state) { return !Holds(state.name); });
  return states;
}

Status SiteModels::Load(const std::string& model, const std::string& config) {
  if (!config.empty()) {
    return InvalidArgument("model '" + model +
                           "': the workers of the site have its configuration; change it in their "
                           "repositories");
  }
  const auto served = options_.await(model);
  if (!served) return std::unexpected(served.error());
  const auto here = options_.digest_of(model);
  if (!here) return std::unexpected(here.error());
  if (served->digest.empty()) {
    return Fail(ErrorCode::kUnavailable,
                "the workers of the site report different digests of model '" + model +
                    "': give all of them the repository of the controller");
  }
  if (served->digest != *here) {
    return Fail(ErrorCode::kUnavailable, "the workers of the site serve model '" + model +
                                             "' of sha256:" + served->digest +
                                             ", and sha256:" + *here +
                                             " is wanted: give them the repository of the "
                                             "controller");
  }
  const std::unique_lock lock(mutex_);
  loaded_.insert(model);
  return {};
}

Status SiteModels::Unload(const std::string& model) {
  const std::unique_lock lock(mutex_);
  if (loaded_.erase(model) == 0) return NotLoaded(model);
  return {};
}

Expected<std::vector<ModelStatistics>> SiteModels::Statistics(std::string_view model,
                                                              std::int64_t version) const {
  if (!model.empty() && !Holds(model)) return NotLoaded(model);
  auto all = site_.Statistics(model, version);
  if (!all || !model.empty()) return all;
  std::erase_if(*all, [this](const ModelStatistics& each) { return !Holds(each.name); });
  return all;
}

}  // namespace tactus
