// How a node comes to its certificate: by a token of `tactus cluster token`, once.
#pragma once

#include <filesystem>
#include <string>

#include "base/expected.h"

namespace tactus {

// Makes a key, asks the controller for a certificate by the token and writes both into `folder`,
// which has authority.pem. The key never leaves this machine.
Status JoinCluster(const std::string& controller, const std::filesystem::path& folder,
                   const std::string& token);

}  // namespace tactus
