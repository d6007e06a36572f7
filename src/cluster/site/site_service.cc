#include "cluster/site/site_service.h"

namespace tactus {
namespace {

// Begins with Triton's words, which clients look for.
std::unexpected<Error> AtTheWorkers(const std::string& model) {
  return Fail(
      ErrorCode::kUnavailable,
      "explicit model load / unload is not allowed at a front end: load and unload model '" +
          model + "' at the workers of the site");
}

std::unexpected<Error> NotReached(std::string_view model, const std::string& why) {
  return Fail(ErrorCode::kUnavailable, "model '" + std::string(model) + "': " + why);
}

}  // namespace

Expected<std::shared_ptr<const ModelSpec>> SiteService::Find(std::string_view model,
                                                             std::int64_t version) const {
  auto found = next().Find(model, version);
  if (found || found.error().code != ErrorCode::kNotFound) return found;
  if (const auto why = why_not_.site()) return NotReached(model, *why);
  return found;
}

Status SiteService::ModelReady(std::string_view model, std::int64_t version) const {
  const auto found = Find(model, version);
  if (!found) return std::unexpected(found.error());
  if (const auto why = why_not_.model(model, version)) return NotReached(model, *why);
  return {};
}

std::vector<ModelState> SiteService::Index() const {
  std::vector<ModelState> states = next().Index();
  for (ModelState& each : states) {
    if (each.state != "READY") continue;
    if (auto why = why_not_.model(each.name, each.version)) {
      each.state = "UNAVAILABLE";
      each.reason = *std::move(why);
    }
  }
  return states;
}

Status SiteService::Load(const std::string& model, const std::string&) {
  return AtTheWorkers(model);
}

Status SiteService::Unload(const std::string& model) { return AtTheWorkers(model); }

}  // namespace tactus
