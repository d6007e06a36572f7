// How a node comes to its certificate: by a token of `tactus cluster token`, once, and from then on
// by the certificate that it has.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

// Makes a key, asks the controllers for a certificate by the token and writes both into `folder`,
// which has authority.pem. The key never leaves this machine. Where none that leads answers,
// `again` is told what each said; it waits, and they are asked again for the same key if it says
// so. kInvalidArgument: the token is refused; kUnavailable says what each controller said last.
Status JoinCluster(const std::vector<std::string>& controllers, const std::filesystem::path& folder,
                   const std::string& token,
                   const std::function<bool(const std::string& why)>& again);

// Asks them, each once, for another certificate for the key in `folder`, by the one that is there,
// and writes it.
Status RenewCertificate(const std::vector<std::string>& controllers,
                        const std::filesystem::path& folder);

}  // namespace tactus
