#include "base/host_port.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace tactus {
namespace {

std::optional<std::uint16_t> PortIn(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, port);
  if (text.empty() || error != std::errc{} || at != end) return std::nullopt;
  return port;
}

std::optional<in6_addr> V6In(std::string_view host) {
  in6_addr address{};
  if (inet_pton(AF_INET6, std::string(host).c_str(), &address) != 1) return std::nullopt;
  return address;
}

// Of a name or an IPv4 address: nothing that would mean something else beside a port.
bool IsPlainHost(std::string_view host) {
  return !host.empty() && std::ranges::none_of(host, [](unsigned char c) {
    return c <= ' ' || c == ':' || c == '[' || c == ']' || c == '/' || c == ',' || c == '@';
  });
}

}  // namespace

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const auto port = PortIn(text.substr(colon + 1));
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // An address may name its interface: [fe80::1%eth0].
  const bool fine =
      bracketed ? V6In(host.substr(0, host.find('%'))).has_value() : IsPlainHost(host);
  if (!fine || !port) return std::nullopt;
  return HostPort{std::string(host), *port};
}

std::string Bracketed(std::string_view host) {
  const bool v6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return v6 ? "[" + std::string(host) + "]" : std::string(host);
}

std::string HostPortText(std::string_view host, std::uint16_t port) {
  return Bracketed(host) + ":" + std::to_string(port);
}

bool IsThisMachine(std::string_view host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  const auto v6 = V6In(host);
  return v6 && IN6_IS_ADDR_LOOPBACK(&*v6);
}

}  // namespace tactus
