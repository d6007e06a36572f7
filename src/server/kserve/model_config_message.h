// ModelConfig as a message, for those who speak protobuf themselves; all others use model_config.h.
#pragma once

#include <string>
#include <string_view>

#include "base/expected.h"
#include "core/model_spec.h"
#include "model_config.pb.h"

namespace tactus {

// `file` is for the text of errors only.
Expected<inference::ModelConfig> ParseConfigText(std::string_view text, const std::string& file);
Expected<inference::ModelConfig> ParseConfigJson(std::string_view json);

// What ModelConfigJson writes, as a message.
Expected<inference::ModelConfig> ConfigOf(const ModelSpec& model);

}  // namespace tactus
