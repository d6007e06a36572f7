#include "cluster/tls/tls.h"

#include <string_view>

#include <grpcpp/security/auth_context.h>

#include "base/host_port.h"

namespace tactus {
Status CheckReach(const std::string& address, const PeerTls& tls) {
  const auto place = ParseHostPort(address);
  if (!place) {
    return InvalidArgument("'" + address + "' is not HOST:PORT, with a port from 0 to 65535");
  }
  if (tls.on() || IsThisMachine(place->host)) return {};
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
