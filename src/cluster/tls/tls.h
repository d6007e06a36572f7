// Who may reach whom within a cluster, and who a peer is by its certificate.
#pragma once

#include <string>

#include "base/expected.h"
#include "cluster/tls/peer_tls.h"

namespace grpc {
class AuthContext;
}  // namespace grpc

namespace tactus {

// kInvalidArgument: not HOST:PORT; or plaintext, which is for addresses of this machine only.
Status CheckReach(const std::string& address, const PeerTls& tls);

// The node that the peer's certificate names; empty: it has none that this cluster's authority
// signed.
std::string PeerNode(const grpc::AuthContext& context);
// A certificate names its node in a URI: tactus://NODE.
inline constexpr char kNodeUri[] = "tactus://";
// The node name of all controllers of a cluster; no node may have it.
inline constexpr char kControllerNode[] = "controller";

}  // namespace tactus
