// What to tell a user whose policy can serve nothing of a model: its own delays, batch sizes or
// estimates leave no time within the SLO, and every request would be given up without a word.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/policy_traits.h"
#include "dispatch/dispatcher.h"

namespace tactus {

// With the arithmetic; nothing where a request that comes alone may be served. `lanes`: on which
// the served models run.
std::optional<std::string> ExplainNeverServed(const PolicyTraits& policy,
                                              const ServedModels& served_models,
                                              std::span<const LaneSpec> lanes, ModelId m);

}  // namespace tactus
