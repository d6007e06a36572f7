// What a token must grant for a method.
#pragma once

#include <string_view>

#include "server/access/scope.h"

namespace tactus {

// `path` as calls have it: "/inference.GRPCInferenceService/ModelInfer".
Scope ScopeOfMethod(std::string_view path);

}  // namespace tactus
