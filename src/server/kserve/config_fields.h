// What the fields of a configuration mean here: checks each and makes the model's specification.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/model_spec.h"
#include "server/kserve/declared_config.h"

namespace tactus {

// Its engine reads the keys of its operators, and says which it does not know.
inline constexpr std::string_view kOperatorPlatform = "tactus_op";

// In front of an input's name, the key of a parameter: sizes of its open dimensions, by comma.
inline constexpr std::string_view kProfileShapeKey = "profile_shape.";

// `folder` is the model's; graph paths lie in its version folder. No file is opened.
Expected<ModelSpec> SpecOf(const DeclaredConfig& config, const std::filesystem::path& folder,
                           std::int64_t version);

// What the configuration says and Tactus does not heed: keys of `parameters` that are none of ours
// (a typing mistake, or another server's), and fields that mean something elsewhere. One line each,
// with its place.
std::vector<std::string> Doubts(const DeclaredConfig& config);

// The error, with its place, of a platform or backend that is none of `platforms`; empty: all are.
Status CheckPlatform(const DeclaredConfig& config, const std::vector<std::string>& platforms);

// A file of one folder and nothing else: no path may lead out of the repository.
bool IsPlainFileName(std::string_view name);

// The versions among `present` (ascending) that the version policy serves.
Expected<std::vector<std::int64_t>> ServedVersions(const DeclaredConfig& config,
                                                   const std::vector<std::int64_t>& present);

// "onnxruntime_onnx" unless platform or backend says otherwise.
std::string PlatformOf(const inference::ModelConfig& config);
// Whether it declares a pipeline of other models, by its platform.
bool IsEnsemble(const inference::ModelConfig& config);
// Whether a model is a file of its version folder. Emulated and identity models are not, and chains
// of host operators only where default_model_filename names one (an alphabet, say).
bool ReadsGraphs(const inference::ModelConfig& config);
// Whether its tensors may be declared to have any shape (kAnyShapeKey): graphs say it of some.
bool MayHaveAnyShape(const inference::ModelConfig& config);
// The graph of a model without early exits.
std::string GraphFileOf(const inference::ModelConfig& config);

// The element type as messages number it, and back; nothing for TYPE_INVALID.
std::optional<DataType> FromWire(inference::DataType type);
inference::DataType ToWire(DataType type);

}  // namespace tactus
