#include "server/net/listening_socket.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/access/admin_socket.h"
#include "server/access/client_address.h"

namespace tactus {
namespace {

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

}  // namespace

std::string ClientOfSocket(int descriptor) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (peer.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, text, sizeof text);
  } else if (peer.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr, text, sizeof text);
  }
  return ClientAt(text);
}

ListeningSocket::~ListeningSocket() {
  if (socket_ >= 0) close(socket_);
  Remove();
}

Status ListeningSocket::OpenPath(const std::string& path) {
  if (Status fits = FitsSocket(path); !fits) return fits;
  if (Status free = FreeSocket(path); !free) return free;
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  family_ = AF_UNIX;
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0 || bind(socket_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
      listen(socket_, SOMAXCONN) != 0) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("cannot listen on unix:{}: {}", path, std::strerror(errno)));
  }
  path_ = path;
  inode_ = InodeOf(path);
  return {};
}

Expected<std::uint16_t> ListeningSocket::Open(const std::string& address, std::uint16_t port) {
  if (address.starts_with("unix:")) {
    if (Status open = OpenPath(address.substr(5)); !open) return std::unexpected(open.error());
    return 0;
  }
  auto endpoint = EndpointOf(address, port);
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  auto* const name = reinterpret_cast<sockaddr*>(&endpoint->storage);
  family_ = name->sa_family;
  socket_ = socket(family_, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  // A server that was just stopped leaves its port in TIME_WAIT.
  const bool listens =
      socket_ >= 0 && setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      bind(socket_, name, endpoint->size) == 0 && listen(socket_, SOMAXCONN) == 0 &&
      getsockname(socket_, name, &endpoint->size) == 0;
  if (!listens) {
    const std::string host = family_ == AF_INET6 ? "[" + address + "]" : address;
    return Fail(ErrorCode::kUnavailable,
                fmt::format("cannot listen on {}:{}: {}", host, port, std::strerror(errno)));
  }
  return ntohs(family_ == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(name)->sin6_port
                                   : reinterpret_cast<sockaddr_in*>(name)->sin_port);
}

int ListeningSocket::Release() { return std::exchange(socket_, -1); }

void ListeningSocket::Remove() {
  if (inode_ != 0 && InodeOf(path_) == inode_) unlink(path_.c_str());
  inode_ = 0;
}

}  // namespace tactus
