#include "cluster/tls/tls.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include <grpcpp/security/auth_context.h>

namespace tactus {
namespace {

bool IsPort(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Status CheckReach(const std::string& address, const PeerTls& tls) {
  const std::size_t colon = address.rfind(':');
  const std::string_view host = std::string_view(address).substr(0, colon);
  if (host.empty() || colon == address.npos || !IsPort(std::string_view(address).substr(colon + 1)))
    return InvalidArgument("'" + address + "' is not HOST:PORT, with a port from 0 to 65535");
  const bool here =
      host == "localhost" || host == "[::1]" ||
      (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
  if (tls.on() || here) return {};
  return InvalidArgument(address +
                         " is beyond this machine, and there is no --tls folder: without "
                         "certificates only 127.0.0.1, [::1] and localhost are allowed");
}

std::string PeerNode(const grpc::AuthContext& context) {
  if (!context.IsPeerAuthenticated()) return "";
  for (const grpc::string_ref& name : context.FindPropertyValues("peer_uri")) {
    const std::string_view uri(name.data(), name.size());
    if (uri.starts_with(kNodeUri)) return std::string(uri.substr(sizeof kNodeUri - 1));
  }
  return "";
}

}  // namespace tactus
