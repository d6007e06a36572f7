// How connections within a cluster are kept secret: certificates of its own authority
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
struct ClusterTls {
  std::string authority;
  std::string certificate;
  std::string key;

  bool on() const { return !certificate.empty(); }
};

// authority.pem, node.pem and node.key of a folder; an empty path: plaintext.
Expected<ClusterTls> ReadClusterTls(const std::filesystem::path& folder);

// kInvalidArgument: plaintext is for addresses of this machine only.
Status CheckReach(const std::string& address, const ClusterTls& tls);

std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const ClusterTls& tls);
// Clients need a certificate, but for `Join`, which looks at a token instead: whoever serves asks
// PeerNode for every other call.
std::shared_ptr<grpc::ServerCredentials> ListeningCredentials(const ClusterTls& tls);
// The node that the peer's certificate names; empty: it has none that this cluster's authority
// signed.
std::string PeerNode(const grpc::AuthContext& context);
// A certificate names its node in a URI: tactus://NODE.
inline constexpr char kNodeUri[] = "tactus://";

}  // namespace tactus
