#include "server/kserve/model_control.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tactus {
namespace {

bool IsListed(const InferenceService& service, const std::string& model) {
  const std::vector<ModelState> index = service.Index();
  return std::ranges::find(index, model, &ModelState::name) != index.end();
}

}  // namespace

Status LoadOf(InferenceService& service, const std::string& model, const std::string& config) {
  Status loaded = service.Load(model, config);
  if (loaded) return loaded;
  Error error = std::move(loaded.error());
  // Of a folder that is there, files may be what is not found.
  if (error.code == ErrorCode::kNotFound && !IsListed(service, model)) {
    error.message = fmt::format("failed to load '{}', failed to poll from model repository: {}",
                                model, error.message);
  } else if (error.code != ErrorCode::kUnavailable) {
    error.message = config.empty()
                        ? fmt::format("load failed for model '{}': {}", model, error.message)
                        : fmt::format("failed to load '{}' with the configuration given: {}", model,
                                      error.message);
  }
  return std::unexpected(std::move(error));
}

Status UnloadOf(InferenceService& service, const std::string& model, bool with_steps,
                bool strict_triton) {
  Status unloaded = with_steps ? service.UnloadWithSteps(model) : service.Unload(model);
  if (!unloaded && strict_triton && unloaded.error().code == ErrorCode::kNotFound) return {};
  return unloaded;
}

}  // namespace tactus
