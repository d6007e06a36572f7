// What a server says of a model over HTTP.
#pragma once

#include <string>

#include "base/expected.h"
#include "load/transport.h"

namespace tactus {

// `metadata` and `config` are the JSON of /v2/models/MODEL and of its config; "{}": there is none.
// InvalidArgument for tensors that it cannot send or read.
Expected<DescribedModel> ReadDescription(const std::string& model, const std::string& metadata,
                                         const std::string& config);

}  // namespace tactus
