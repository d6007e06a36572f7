// model_warmup: in Triton, requests that run before a model is ready. Here its first entry is the
// row that a model is measured and tried with, for graphs that take no made-up one.
#pragma once

#include <filesystem>
#include <vector>

#include "base/expected.h"
#include "core/model_spec.h"
#include "server/kserve/declared_config.h"

namespace tactus {

// Reads the first entry; empty where there is none. `folder` is the model's; files lie in its
// folder `warmup`, and none is opened. kInvalidArgument names the place.
Expected<std::vector<StatedSample>> ReadSample(const DeclaredConfig& config,
                                               const std::filesystem::path& folder);

}  // namespace tactus
