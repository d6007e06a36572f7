// A folder of models: ROOT/<model>/config.pbtxt and ROOT/<model>/<version>/..., and which of them
// should serve.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/engine.h"

namespace tactus {

enum class ModelControl {
  kNone,      // all models are loaded at the start; load and unload are refused
  kPoll,      // as kNone, then the folder is read every `poll_interval`
  kExplicit,  // `load` at the start, then as clients ask
};

struct RepositoryOptions {
  std::filesystem::path root;
  ModelControl control = ModelControl::kNone;
  Duration poll_interval = Seconds(15);
  std::vector<std::string> load;  // kExplicit: loaded at the start; "*" means all

  // Reads one version of a model; `config` is a ModelConfig as JSON that replaces the folder's, or
  // empty. Given by the server, which knows the format of the configuration.
  std::function<Expected<ModelSpec>(const std::filesystem::path& model_folder,
                                    std::int64_t version, const std::string& config)>
      read;
  // The versions that should serve. Empty function: the latest numeric subfolder, or 1 if none.
  std::function<Expected<std::vector<std::int64_t>>(const std::filesystem::path& model_folder,
                                                    const std::string& config)>
      versions;
};

}  // namespace tactus
