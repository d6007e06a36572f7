// Every policy by name. Adding one is a folder and a line in registry.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "core/policy.h"

namespace tactus {

struct PolicyInfo {
  std::string name;     // "edgeserving"
  std::string brief;    // at most 50 characters, for a list of all
  std::string summary;  // one line
  std::string options;  // "batch=N: largest batch", empty when it has none
  // Options that mostly suit it better than its defaults, for whoever compares it; empty: its
  // defaults are the best that we know, or nobody has looked.
  std::string tuned;
  int tuned_from = 1;  // with fewer models those options change nothing
};

// What every policy takes besides.
inline constexpr std::string_view kCommonOptions =
    "cost=US: simulated time of each decision that starts a batch (the scenario's); look=US: and "
    "of each candidate that the algorithm examines";

// The default first.
std::vector<PolicyInfo> Policies();

// `text` is a name, optionally followed by options: "edgeserving", "edgeserving:batch=1,clip=10".
// An unknown name or option is an error that lists those that exist.
Expected<std::unique_ptr<Policy>> MakePolicy(std::string_view text);

}  // namespace tactus
