#include "serving/server_access.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "platform/process.h"
#include "server/access/admin_socket.h"

namespace tactus {
namespace {

// For models, files and threads.
constexpr std::size_t kOwnDescriptors = 192;

Expected<std::shared_ptr<Access>> AccessOf(const ServeOptions& o,
                                           std::function<void(const std::string&)> warn) {
  auto access = Access::Open({.tls = {o.tls_cert, o.tls_key, o.tls_client_ca}, .tokens = o.tokens},
                             std::move(warn));
  if (!access) return access;
  if (Status fine = CheckListening(o.address, **access, o.insecure); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  if (!o.admin_socket.empty()) {
    if (Status fine = CheckAdminSocket(o.admin_socket); !fine) {
      return std::unexpected(std::move(fine.error()));
    }
  }
  return access;
}

Expected<std::shared_ptr<ClientLimits>> LimitsOf(const ServeOptions& o, std::size_t connections) {
  ClientLimitOptions limits;
  limits.all_bytes = o.pending_mb << 20;
  limits.calls = std::max<std::size_t>(1, o.call_capacity / 4 * 3);
  limits.bytes = limits.all_bytes / 4 * 3;
  limits.connections = connections / 4 * 3;
  if (Status read = ReadClientLimits(o.client_limits, limits); !read) {
    return std::unexpected(Error{read.error().code, "--client-limits: " + read.error().message});
  }
  return std::make_shared<ClientLimits>(limits);
}

Expected<std::shared_ptr<const Objectives>> ObjectivesOf(const ServeOptions& o) {
  if (o.objectives.empty()) return nullptr;
  auto read = Objectives::Read(o.objectives);
  if (!read) {
    return std::unexpected(Error{read.error().code, "--objective: " + read.error().message});
  }
  return std::make_shared<const Objectives>(*std::move(read));
}

}  // namespace

Expected<std::size_t> MostConnections(std::size_t descriptors) {
  constexpr std::size_t kFewest = 16;
  constexpr std::size_t kKept = kOwnDescriptors + kPageConnections;
  if (descriptors < kKept + 2 * kFewest) {
    return Fail(
        ErrorCode::kResourceExhausted,
        fmt::format("this process may open {} files, and needs {} for its models, files and "
                    "connections; raise the limit (ulimit -Hn, LimitNOFILE= of systemd)",
                    descriptors, kKept + 2 * kFewest));
  }
  return std::min<std::size_t>((descriptors - kKept) / 2, 1024);
}

Expected<ServerAccess> ServerAccess::Of(const ServeOptions& o,
                                        std::function<void(const std::string&)> warn) {
  auto access = AccessOf(o, std::move(warn));
  if (!access) return std::unexpected(std::move(access.error()));
  const auto connections = MostConnections(RaiseDescriptorLimit());
  if (!connections) return std::unexpected(connections.error());
  auto limits = LimitsOf(o, *connections);
  if (!limits) return std::unexpected(std::move(limits.error()));
  auto tls = PeerTls::Open(o.peer_tls);
  if (!tls) return std::unexpected(std::move(tls.error()));
  auto objectives = ObjectivesOf(o);
  if (!objectives) return std::unexpected(std::move(objectives.error()));
  return ServerAccess{.access = *std::move(access),
                      .connections = *connections,
                      .limits = *std::move(limits),
                      .tls = *std::move(tls),
                      .objectives = *std::move(objectives)};
}

std::unique_ptr<RepeatedTask> FollowAccess(std::shared_ptr<Access> access) {
  if (!access->has_tls() && !access->has_tokens()) return nullptr;
  return std::make_unique<RepeatedTask>(
      "access", Every(Millis(250), [access = std::move(access)] { access->Refresh(); }),
      Millis(250));
}

}  // namespace tactus
