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

}  // namespace

Status SiteService::Load(const std::string& model, const std::string&) {
  return AtTheWorkers(model);
}

Status SiteService::Unload(const std::string& model) { return AtTheWorkers(model); }

}  // namespace tactus
