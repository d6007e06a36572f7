// Which tokens have admitted a node, as the knowledge base knows it: of several controllers with
// one store none takes a token that another took.
#pragma once

#include <functional>
#include <string>

#include "base/expected.h"
#include "cluster/tls/token.h"

namespace tactus {

// For ControllerOptions::use_token. `own`: the store is in the controller's own folder. Where
// controllers are elected and the store cannot be theirs in common, it refuses and says so.
std::function<Status(const Token&, const std::string& key)> UsedTokens(const std::string& store,
                                                                       const std::string& elect,
                                                                       bool own);

}  // namespace tactus
