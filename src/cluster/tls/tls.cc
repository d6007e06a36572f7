#include "cluster/tls/tls.h"

#include <string_view>
#include <utility>

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include "base/whole_file.h"

namespace tactus {

Expected<ClusterTls> ReadClusterTls(const std::filesystem::path& folder) {
  ClusterTls tls;
  if (folder.empty()) return tls;
  const std::pair<const char*, std::string&> files[] = {
      {"authority.pem", tls.authority}, {"node.pem", tls.certificate}, {"node.key", tls.key}};
  for (const auto& [name, text] : files) {
    auto read = ReadWhole(folder / name, "PEM file",
                          "; tactus cluster init and tactus agent --join make it");
    if (!read) return std::unexpected(std::move(read.error()));
    text = *std::move(read);
  }
  return tls;
}

Status CheckReach(const std::string& address, const ClusterTls& tls) {
  const std::string_view host = std::string_view(address).substr(0, address.rfind(':'));
  const bool here =
      host == "localhost" || host == "[::1]" ||
      (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
  if (tls.on() || here) return {};
  return InvalidArgument(address +
                         " is beyond this machine, and there is no --tls folder: without "
                         "certificates only 127.0.0.1, [::1] and localhost are allowed");
}

std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const ClusterTls& tls) {
  if (!tls.on() && tls.authority.empty()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({tls.authority, tls.key, tls.certificate});
}

std::shared_ptr<grpc::ServerCredentials> ListeningCredentials(const ClusterTls& tls) {
  if (!tls.on()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls.authority;
  options.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
  return grpc::SslServerCredentials(options);
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
