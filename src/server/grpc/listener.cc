#include "server/grpc/listener.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tactus {
namespace {

// How often the thread looks whether it is to stop, and waits where there are no descriptors.
constexpr int kLookMs = 50;

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

}  // namespace

Expected<std::uint16_t> Listener::Open(const std::string& address, std::uint16_t port) {
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
}

void Listener::Run() {
  while (!stopped_.load()) {
    pollfd waits{.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, kLookMs) > 0) Accept();
  }
}

void Listener::Accept() {
  const int descriptor = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) {
    // No descriptors: those who wait, wait on until there are some.
    if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, kLookMs);
    return;
  }
  if (Full()) {
    close(descriptor);
    return;
  }
  const int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  taken_.push_back({descriptor, SocketOf(descriptor)});
  take_(descriptor);
}

// gRPC does not say when it closes one: a descriptor that is no longer that socket was closed.
bool Listener::Full() {
  if (taken_.size() < most_) return false;
  std::erase_if(taken_, [](const Taken& t) { return SocketOf(t.descriptor) != t.socket; });
  return taken_.size() >= most_;
}

}  // namespace tactus
