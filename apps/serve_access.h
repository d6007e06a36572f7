// Who may reach `tactus serve`, and how: what its options say of TLS and tokens.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/expected.h"
#include "serve_options.h"
#include "server/access/access.h"
#include "server/access/client_limits.h"

namespace tactus {

// InvalidArgument where a file is no use, or where the address asks for more of them.
Expected<std::shared_ptr<Access>> AccessOf(const ServeOptions& options,
                                           std::function<void(const std::string&)> warn);

// What each client may have: --client-limits, else three quarters of what the server has.
// InvalidArgument where the option is no such thing.
Expected<std::shared_ptr<ClientLimits>> LimitsOf(const ServeOptions& options);

// HTTP connections on the metrics page at most; it serves health too.
inline constexpr std::size_t kPageConnections = 64;

// File descriptors that the process may have: raised to what the system allows it.
std::size_t RaiseDescriptorLimit();

// HTTP connections that leave enough of `descriptors` for gRPC, models and files.
std::size_t ConnectionsWithin(std::size_t descriptors);

// Looks four times a second whether a file has changed. A thread of nothing where there are none.
std::jthread FollowAccess(std::shared_ptr<Access> access);

}  // namespace tactus
