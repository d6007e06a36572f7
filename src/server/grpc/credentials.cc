#include "server/grpc/credentials.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include "base/check.h"
#include "server/access/access.h"

namespace tactus {
namespace {

std::string_view BytesOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// What gRPC was told of the certificate.
struct Told {
  std::shared_ptr<const Access> access;
  std::mutex mutex;
  std::shared_ptr<const TlsMaterial> material;  // under the mutex
};

// gRPC asks for the certificate before each handshake.
grpc_ssl_certificate_config_reload_status Certificate(void* data,
                                                      grpc_ssl_server_certificate_config** config) {
  auto& told = *static_cast<Told*>(data);
  const std::scoped_lock lock(told.mutex);
  auto tls = told.access->tls();
  if (tls == told.material) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair{tls->key.c_str(), tls->certificate.c_str()};
  // gRPC insists on an authority for clients, also where it asks them for no certificate.
  const std::string& authority = tls->client_ca.empty() ? tls->certificate : tls->client_ca;
  *config = grpc_ssl_server_certificate_config_create(authority.c_str(), &pair, 1);
  told.material = std::move(tls);
  return *config == nullptr ? GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL
                            : GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

void CheckToken(void* data, grpc_auth_context*, const grpc_metadata* metadata, std::size_t count,
                grpc_process_auth_metadata_done_cb done, void* user) {
  const auto& access = *static_cast<const Access*>(data);
  std::string_view path;
  std::string_view authorization;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view key = BytesOf(metadata[i].key);
    if (key == ":path") path = BytesOf(metadata[i].value);
    if (key == "authorization") authorization = BytesOf(metadata[i].value);
  }
  const Admission admission = access.Admit(ScopeOfMethod(path), authorization);
  done(user, nullptr, 0, nullptr, 0,
       admission.admitted() ? GRPC_STATUS_OK : static_cast<grpc_status_code>(admission.grpc()),
       admission.text.empty() ? nullptr : admission.text.c_str());
}

// The C++ library has credentials with a fixed certificate, or with files that it reads one by one;
// only its C interface asks for certificate and key together.
class AccessCredentials final : public grpc::ServerCredentials {
 public:
  explicit AccessCredentials(std::shared_ptr<const Access> access)
      : told_{.access = std::move(access), .mutex = {}, .material = {}}, raw_(Make()) {
    if (!told_.access->has_tokens()) return;
    grpc_server_credentials_set_auth_metadata_processor(
        raw_, {CheckToken, nullptr, const_cast<Access*>(told_.access.get())});
  }
  ~AccessCredentials() override { grpc_server_credentials_release(raw_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    CHECK(false, "access checks the tokens");
  }

 private:
  grpc_server_credentials* Make() {
    if (!told_.access->has_tls()) return grpc_insecure_server_credentials_create();
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            told_.access->asks_clients()
                ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            Certificate, &told_));
  }
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), raw_);
  }

  Told told_;
  grpc_server_credentials* const raw_;
};

}  // namespace

Scope ScopeOfMethod(std::string_view path) {
  if (path.starts_with("/grpc.health.v1.Health/")) return Scope::kOpen;
  const std::string_view method = path.substr(std::min(path.rfind('/') + 1, path.size()));
  if (method == "ServerLive" || method == "ServerReady") return Scope::kOpen;
  if (method == "ModelInfer" || method == "ModelStreamInfer") return Scope::kInfer;
  if (method.starts_with("RepositoryModel") || method.ends_with("Setting") ||
      method.ends_with("Settings") || method.find("SharedMemory") != method.npos) {
    return Scope::kAdmin;
  }
  return Scope::kRead;
}

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(std::shared_ptr<const Access> access) {
  const bool plain = access == nullptr || (!access->has_tls() && !access->has_tokens());
  if (plain) return grpc::InsecureServerCredentials();
  return std::make_shared<AccessCredentials>(std::move(access));
}

}  // namespace tactus
