// Who may reach `tactus serve`, and how: what its options say of TLS and tokens.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"
#include "platform/repeated_task.h"
#include "server/access/access.h"
#include "server/access/client_limits.h"
#include "server/kserve/objectives.h"
#include "serving/serve_options.h"

namespace tactus {

// InvalidArgument where a file is no use, or where the address asks for more of them.
Expected<std::shared_ptr<Access>> AccessOf(const ServeOptions& options,
                                           std::function<void(const std::string&)> warn);

// What each client may have: --client-limits, else three quarters of what the server has.
// InvalidArgument where the option is no such thing.
// `connections`: that the server takes.
Expected<std::shared_ptr<ClientLimits>> LimitsOf(const ServeOptions& options,
                                                 std::size_t connections);

// What --objective says; null where it says nothing. InvalidArgument where it is no such thing.
Expected<std::shared_ptr<const Objectives>> ObjectivesOf(const ServeOptions& options);

// HTTP connections on the metrics page at most; it serves health too.
inline constexpr std::size_t kPageConnections = 64;

// Connections, of HTTP and of gRPC each, that leave enough file descriptors for models and files.
// Raises the process's limit of descriptors to what the system allows it. ResourceExhausted, with
// the number that is needed, where that leaves none.
Expected<std::size_t> MostConnections();

// Looks four times a second whether a file has changed. No thread where there are none.
std::unique_ptr<RepeatedTask> FollowAccess(std::shared_ptr<Access> access);

}  // namespace tactus
