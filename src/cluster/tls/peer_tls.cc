#include "cluster/tls/peer_tls.h"

#include <string_view>
#include <utility>

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "cluster/tls/tls.h"

namespace tactus {
namespace {

std::string_view NodeOfUri(std::string_view uri) {
  const std::string_view scheme(kNodeUri);
  return uri.starts_with(scheme) ? uri.substr(scheme.size()) : std::string_view();
}

// In place of the name of a host: nodes move, and their certificates do not name addresses.
class NodeVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit NodeVerifier(std::string node) : node_(std::move(node)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    std::string others;
    for (const grpc::string_ref& name : request->uri_names()) {
      const std::string_view node = NodeOfUri({name.data(), name.size()});
      if (!node.empty() && (node_.empty() || node == node_)) {
        *status = grpc::Status::OK;
        return true;
      }
      others.append(others.empty() ? "" : ", ").append(name.data(), name.size());
    }
    *status = {grpc::StatusCode::UNAUTHENTICATED,
               "its certificate is of '" + others + "', not of node '" + node_ + "'"};
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string node_;
};

}  // namespace

Expected<PeerTls> PeerTls::Open(const std::filesystem::path& folder,
                                std::chrono::seconds read_again) {
  PeerTls tls;
  const auto texts = ReadClusterTls(folder);
  if (!texts) return std::unexpected(texts.error());
  if (!texts->on()) return tls;
  tls.node_ = NodeOfCertificate(texts->certificate);
  if (tls.node_.empty()) {
    return InvalidArgument((folder / "node.pem").string() +
                           " is not a node's certificate: tactus cluster certificate makes one");
  }
  tls.files_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      (folder / "node.key").string(), (folder / "node.pem").string(),
      (folder / "authority.pem").string(), static_cast<unsigned>(read_again.count()));
  return tls;
}

std::shared_ptr<grpc::ServerCredentials> PeerTls::Listening() const {
  if (!on()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(files_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> PeerTls::Towards(const std::string& node) const {
  if (!on()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(files_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<NodeVerifier>(node));
  options.set_check_call_host(false);
  return grpc::experimental::TlsCredentials(options);
}

std::string NodeOfCertificate(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free_all);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), X509_free);
  if (certificate == nullptr) return "";
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    const std::string_view node =
        NodeOfUri({reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                   static_cast<std::size_t>(ASN1_STRING_length(uri))});
    if (!node.empty()) return std::string(node);
  }
  return "";
}

}  // namespace tactus
