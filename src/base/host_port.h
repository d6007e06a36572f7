// Addresses as people write them: "127.0.0.1:8000", "gateway:8000", "[::1]:8000".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tactus {

struct HostPort {
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 0;

  bool operator==(const HostPort&) const = default;
};

// Nothing where there is no host or no port, where a port is no number from 0 to 65535, where an
// IPv6 address stands without brackets (its last group would pass for a port), and where the
// brackets hold anything else. Whether the host exists is not asked.
std::optional<HostPort> ParseHostPort(std::string_view text);

// The other way round: an IPv6 address is put into brackets.
std::string HostPortText(std::string_view host, std::uint16_t port);
// The host alone, as it stands before a port.
std::string Bracketed(std::string_view host);

// "localhost", an address of 127.0.0.0/8 or ::1: what is said to it stays on this machine. A name
// that only begins like one ("127.example.org") is another machine's.
bool IsThisMachine(std::string_view host);

}  // namespace tactus
