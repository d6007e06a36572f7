#include "cluster/tls/tls.h"

#include <string_view>

#include <grpcpp/security/auth_context.h>

namespace tactus {

Status CheckReach(const std::string& address, const PeerTls& tls) {
  const std::string_view host = std::string_view(address).substr(0, address.rfind(':'));
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
