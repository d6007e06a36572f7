// What a client has for a server that is not open to everybody: the files behind --ca and
// --token-file.
#pragma once

#include <string>

#include "base/expected.h"
#include "base/host_port.h"

namespace tactus {

// Certificates (PEM), of which one must have signed the server's. InvalidArgument for a file that
// has none; the errors of ReadWhole.
Expected<std::string> ReadAuthorities(const std::string& file);

// The first line of the file. InvalidArgument where it is no token, or where the token would go to
// another machine than this in the clear (`has_tls` false); the errors of ReadWhole.
Expected<std::string> ReadToken(const std::string& file, const HostPort& to, bool has_tls);

}  // namespace tactus
