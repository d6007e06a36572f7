// Who may reach a server, and how: what its options say of certificates, tokens and limits.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"
#include "cluster/tls/peer_tls.h"
#include "platform/repeated_task.h"
#include "server/access/access.h"
#include "server/access/client_limits.h"
#include "server/kserve/objectives.h"
#include "serving/serve_options.h"

namespace tactus {

struct ServerAccess {
  std::shared_ptr<Access> access;
  std::size_t connections = 0;           // at most, of HTTP and of gRPC each
  std::shared_ptr<ClientLimits> limits;  // --client-limits, else three quarters of the server's
  PeerTls tls;                           // for other processes of its site or cluster
  std::shared_ptr<const Objectives> objectives;  // null: --objective says nothing

  // InvalidArgument where a file is no use, where the address asks for more of them, or where an
  // option is no such thing; ResourceExhausted where the process may open too few files. `warn`
  // hears of files that change.
  static Expected<ServerAccess> Of(const ServeOptions& options,
                                   std::function<void(const std::string&)> warn);
};

// HTTP connections on the metrics page at most; it serves health too.
inline constexpr std::size_t kPageConnections = 64;

// Connections, of HTTP and of gRPC each, that leave enough of so many file descriptors for models
// and files. ResourceExhausted, with the number that is needed, where that leaves none.
Expected<std::size_t> MostConnections(std::size_t descriptors);

// Looks four times a second whether a file has changed. No thread where there are none.
std::unique_ptr<RepeatedTask> FollowAccess(std::shared_ptr<Access> access);

}  // namespace tactus
