// A model's folder as the repository finds it: config.pbtxt and numbered version folders.
//
//   models/ee_s/config.pbtxt          protobuf text, inference.ModelConfig
//   models/ee_s/1/exit1.onnx ...
//
// Keys of our own live in ModelConfig.parameters, so that the same folder is valid elsewhere:
//   slo_ms      time from arrival to answer, milliseconds; without it the server's default
//   priority    1 (highest) and up; default 1
//   exits       the graph files of an early-exit model, by comma, shallowest first
//   exit_names  their names, by comma; default "1", "2", ...
//   accuracy    one fraction in [0, 1] for each exit, by comma
//   profile     of an emulated model: the file of the folder that holds its latencies
//   batch       "assumed": max_batch_size is tried, and given up where it is none; without
//               max_batch_size, the engine finds it out, and dims are whole
//   profile_shape.INPUT   sizes for the open dimensions of an input while it is profiled, by comma
//   any_shape.TENSOR      "true": whatever shape the tensor has, it is none that dims state
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/model_spec.h"

namespace tactus {

// The versions that the folder's version policy serves, ascending. `config` is a ModelConfig as
// JSON that replaces config.pbtxt, or empty. Numbered subfolders are versions; a model whose
// platform reads no files may have none and is then version 1. Matches RepositoryOptions::versions.
Expected<std::vector<std::int64_t>> ListVersions(const std::filesystem::path& model_folder,
                                                 const std::string& config);

// The platform that the folder's configuration states or means, or `config` as above. An error
// where it cannot be read.
Expected<std::string> ReadPlatform(const std::filesystem::path& model_folder,
                                   const std::string& config);

struct ModelReading {
  // Platforms that are run: a model of another platform or backend is a mistake. Empty: all are.
  std::vector<std::string> platforms;
  // Unless null, gets a line with its place for each thing that the configuration says and Tactus
  // does not heed, such as a misspelt key of ours in `parameters`.
  std::vector<std::string>* doubts = nullptr;
  // Unless null, gets a line where there is no config.pbtxt.
  std::vector<std::string>* notes = nullptr;
};

// One version of a model, named after its folder. A folder without config.pbtxt holds an ONNX model
// with all defaults, whose max_batch is for the engine to find out (below 0). A mistake is
// InvalidArgument that names file, line, column and field. Matches RepositoryOptions::read.
Expected<ModelSpec> ReadModelSpec(const std::filesystem::path& model_folder, std::int64_t version,
                                  const std::string& config, const ModelReading& reading = {});

// The model's ModelConfig as proto3 JSON with the field names of the .proto: what its folder
// declared, completed with the inputs, outputs and platform that are served.
Expected<std::string> ModelConfigJson(const ModelSpec& model);

}  // namespace tactus
