// How connections of the control plane are kept secret: certificates of the cluster's own authority
// on both ends, or none between processes of one machine.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/expected.h"

namespace grpc {
class AuthContext;
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace tactus {

// The texts of PEM files; all empty: plaintext.
struct ControlTls {
  std::string authority;
  std::string certificate;
  std::string key;

  bool on() const { return !certificate.empty(); }
};

// authority.pem, node.pem and node.key of a folder; an empty path: plaintext.
Expected<ControlTls> ReadControlTls(const std::filesystem::path& folder);

// kInvalidArgument: plaintext is for addresses of this machine only.
Status CheckReach(const std::string& address, const ControlTls& tls);

std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const ControlTls& tls);
// Clients need a certificate, but for `Join`, which looks at a token instead: whoever serves asks
// PeerNode for every other call.
std::shared_ptr<grpc::ServerCredentials> ListeningCredentials(const ControlTls& tls);
// The node that the peer's certificate names; empty: it has none that this cluster's authority
// signed.
std::string PeerNode(const grpc::AuthContext& context);
// A certificate names its node in a URI: tactus://NODE.
inline constexpr char kNodeUri[] = "tactus://";

}  // namespace tactus
