// All processes of a site are told one list of its schedulers, in one order: with two lists, two
// schedulers might lead with one term. Who opens a stream says its list, and a scheduler with
// another one refuses the stream.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tactus {

// The metadata of the call Attend that holds the caller's list.
inline constexpr const char* kSchedulersKey = "tactus-schedulers";

// HOST:PORT,HOST:PORT
std::string Joined(const std::vector<std::string>& schedulers);

// Where `theirs` is not `ours`: both, and the remedy. A scheduler without a list is the only one,
// under whatever name. Empty `theirs`: the caller does not say, and is trusted.
std::optional<std::string> WhyNotOneSite(const std::vector<std::string>& ours,
                                         std::string_view theirs);

}  // namespace tactus
