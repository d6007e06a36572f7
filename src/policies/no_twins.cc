#include "policies/policy_makers.h"

namespace tactus {

std::span<const PolicyEntry> PlainTwins() { return {}; }

}  // namespace tactus
