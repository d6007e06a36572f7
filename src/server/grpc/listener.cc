#include "server/grpc/listener.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/access/admin_socket.h"
#include "server/access/client_address.h"

namespace tactus {
namespace {

// How often the thread looks whether it is to stop, and waits where there are no descriptors.
constexpr int kLookMs = 50;

// How often is looked which connections are still open, where there are as many as may be.
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::chrono::minutes kWarnAgain{1};

// The number of an open socket; 0 where the descriptor is none.
std::uint64_t SocketOf(int descriptor) {
  struct stat s {};
  return fstat(descriptor, &s) == 0 && S_ISSOCK(s.st_mode) ? s.st_ino : 0;
}

struct Endpoint4or6 {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Expected<Endpoint4or6> EndpointOf(const std::string& address, std::uint16_t port) {
  Endpoint4or6 endpoint;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&endpoint.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&endpoint.storage);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    endpoint.size = sizeof(*v4);
    return endpoint;
  }
  if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    endpoint.size = sizeof(*v6);
    return endpoint;
  }
  return InvalidArgument(fmt::format("'{}' is not an IP address to listen on", address));
}

std::uint64_t InodeOf(const std::string& path) {
  struct stat s {};
  return lstat(path.c_str(), &s) == 0 ? s.st_ino : 0;
}

// As limits know it; empty for those of a Unix socket.
std::string ClientOf(const sockaddr_storage& peer) {
  char text[INET6_ADDRSTRLEN] = "";
  if (peer.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, text, sizeof text);
  } else if (peer.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr, text, sizeof text);
  }
  return ClientAt(text);
}

}  // namespace

Status Listener::OpenPath(const std::string& path) {
  if (Status fits = FitsSocket(path); !fits) return fits;
  if (Status free = FreeSocket(path); !free) return free;
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0 || bind(socket_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
      listen(socket_, SOMAXCONN) != 0) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("gRPC cannot listen on unix:{}: {}", path, std::strerror(errno)));
  }
  path_ = path;
  inode_ = InodeOf(path);
  return {};
}

Expected<std::uint16_t> Listener::Open(const std::string& address, std::uint16_t port) {
  if (address.starts_with("unix:")) {
    if (Status open = OpenPath(address.substr(5)); !open) return std::unexpected(open.error());
    return 0;
  }
  auto endpoint = EndpointOf(address, port);
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  auto* const name = reinterpret_cast<sockaddr*>(&endpoint->storage);
  socket_ = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  // A server that was just stopped leaves its port in TIME_WAIT.
  const bool listens =
      socket_ >= 0 && setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      bind(socket_, name, endpoint->size) == 0 && listen(socket_, SOMAXCONN) == 0 &&
      getsockname(socket_, name, &endpoint->size) == 0;
  if (!listens) {
    const std::string host = name->sa_family == AF_INET6 ? "[" + address + "]" : address;
    return Fail(ErrorCode::kUnavailable,
                fmt::format("gRPC cannot listen on {}:{}: {}", host, port, std::strerror(errno)));
  }
  const bool v6 = name->sa_family == AF_INET6;
  return ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(name)->sin6_port
                  : reinterpret_cast<sockaddr_in*>(name)->sin_port);
}

void Listener::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Listener::Stop() {
  stopped_.store(true);
  if (thread_.joinable()) thread_.join();
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  // Another server's may stand there by now.
  if (inode_ != 0 && InodeOf(path_) == inode_) unlink(path_.c_str());
  inode_ = 0;
}

void Listener::Disconnect() {
  for (const Taken& t : taken_) {
    if (SocketOf(t.descriptor) == t.socket) shutdown(t.descriptor, SHUT_RDWR);
  }
  taken_.clear();
}

void Listener::Run() {
  while (!stopped_.load()) {
    pollfd waits{.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, kLookMs) > 0) Accept();
  }
}

void Listener::Accept() {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  const int descriptor =
      accept4(socket_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) {
    // No descriptors: those who wait, wait on until there are some.
    if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, kLookMs);
    return;
  }
  std::string client = ClientOf(peer);
  if (Full(client)) {
    close(descriptor);
    return WarnOf(client);
  }
  const int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  taken_.push_back({descriptor, SocketOf(descriptor), std::move(client)});
  take_(descriptor);
}

bool Listener::Beyond(const std::string& client) const {
  if (taken_.size() >= limits_.all) return true;
  const auto of_client = std::ranges::count(taken_, client, &Taken::client);
  return static_cast<std::size_t>(of_client) >= limits_.of_client;
}

// gRPC does not say when it closes one: a descriptor that is no longer that socket was closed.
bool Listener::Full(const std::string& client) {
  if (!Beyond(client)) return false;
  const auto now = Clock::now();
  if (now - looked_ < kLookAgain) return true;
  looked_ = now;
  std::erase_if(taken_, [](const Taken& t) { return SocketOf(t.descriptor) != t.socket; });
  return Beyond(client);
}

void Listener::WarnOf(const std::string& client) {
  const auto now = Clock::now();
  if (!warn_ || (warned_ != Clock::time_point{} && now - warned_ < kWarnAgain)) return;
  warned_ = now;
  const bool all = taken_.size() >= limits_.all;
  warn_(all ? fmt::format("gRPC: there are {} connections, as many as may be: new ones are closed",
                          limits_.all)
            : fmt::format("gRPC: {} has {} connections, as many as one client may (connections of "
                          "--client-limits): more of its are closed",
                          client, limits_.of_client));
}

}  // namespace tactus
