// Which client a network address stands for: limits are kept for each.
#pragma once

#include <string>
#include <string_view>

namespace tactus {

// `address` without a port, in text. An IPv6 client has as many addresses as it likes in its /64
// network, so that network stands for it; an IPv4 address that is mapped into IPv6 is that IPv4
// address. What is no IP address, such as a Unix socket's name, stays as it is.
std::string ClientAt(std::string_view address);

}  // namespace tactus
