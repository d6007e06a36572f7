// The names of classes that a model's folder gives to its outputs (label_filename), one a line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/model_spec.h"
#include "server/kserve/declared_config.h"

namespace tactus {

// Fills spec.labels from the files that the outputs name, in `folder`. One that cannot be read is a
// doubt and no error: the model serves, its classes come without names. `doubts` may be null.
void ReadLabels(const DeclaredConfig& config, const std::filesystem::path& folder, ModelSpec& spec,
                std::vector<std::string>* doubts);

}  // namespace tactus
