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

Status LoadAs(InferenceService& service, ModelFolders* folders, const std::string& model,
              const LoadOverride& given) {
  if (given.files.empty()) return service.Load(model, given.config);
  if (folders == nullptr) {
    return Fail(ErrorCode::kUnimplemented,
                "files with a load are not supported here; put them into the model repository");
  }
  auto sent = folders->Take(model, given.files);
  if (!sent) return std::unexpected(std::move(sent.error()));
  Status loaded = service.Load(model, given.config);
  if (loaded) sent->Keep();
  return loaded;
}

// The files of models that no longer serve.
void ForgetUnloaded(const InferenceService& service, ModelFolders& folders) {
  const std::vector<std::string> with_files = folders.WithFiles();
  if (with_files.empty()) return;
  const std::vector<ModelState> index = service.Index();
  for (const std::string& model : with_files) {
    const bool unloaded = std::ranges::none_of(index, [&](const ModelState& each) {
      return each.name == model && each.state != "UNAVAILABLE";
    });
    if (unloaded) folders.Forget(model);
  }
}

}  // namespace

Status LoadOf(InferenceService& service, ModelFolders* folders, const std::string& model,
              const LoadOverride& given) {
  Status loaded = LoadAs(service, folders, model, given);
  if (loaded) return loaded;
  Error error = std::move(loaded.error());
  // Of a folder that is there, files may be what is not found.
  if (error.code == ErrorCode::kNotFound && !IsListed(service, model)) {
    error.message = fmt::format("failed to load '{}', failed to poll from model repository: {}",
                                model, error.message);
  } else if (error.code != ErrorCode::kUnavailable) {
    error.message =
        !given.files.empty()
            ? fmt::format("failed to load '{}' with the files given: {}", model, error.message)
        : given.config.empty() ? fmt::format("load failed for model '{}': {}", model, error.message)
                               : fmt::format(
                                     "failed to load '{}' with the configuration given (instead of "
                                     "all of its config.pbtxt): {}",
                                     model, error.message);
  }
  return std::unexpected(std::move(error));
}

Status UnloadOf(InferenceService& service, ModelFolders* folders, const std::string& model,
                bool with_steps, bool strict_triton) {
  Status unloaded = with_steps ? service.UnloadWithSteps(model) : service.Unload(model);
  if (unloaded && folders != nullptr) ForgetUnloaded(service, *folders);
  if (!unloaded && strict_triton && unloaded.error().code == ErrorCode::kNotFound) return {};
  return unloaded;
}

}  // namespace tactus
