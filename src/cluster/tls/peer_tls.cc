#include "cluster/tls/peer_tls.h"

#include <ctime>
#include <string_view>
#include <utility>

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/whole_file.h"
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

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;

// Null: it is none.
Certificate CertificateOf(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free_all);
  Certificate certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) ERR_clear_error();
  return certificate;
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

// Null: it is none, or has a passphrase, which nobody is asked for.
Key KeyOf(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free_all);
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  return Key(PEM_read_bio_PrivateKey(text.get(), nullptr, no_passphrase, nullptr));
}

bool IsOfKey(const std::string& certificate, const std::string& key) {
  const Certificate read = CertificateOf(certificate);
  const Key secret = KeyOf(key);
  const bool fits =
      read != nullptr && secret != nullptr && X509_check_private_key(read.get(), secret.get()) == 1;
  ERR_clear_error();
  return fits;
}

std::chrono::sys_seconds InstantOf(const ASN1_TIME* time) {
  std::tm broken{};
  ASN1_TIME_to_tm(time, &broken);
  return std::chrono::sys_seconds(std::chrono::seconds(timegm(&broken)));
}

Expected<std::string> ReadPem(const std::filesystem::path& path) {
  return ReadWhole(path, "PEM file", "; tactus cluster init and tactus agent --join make it");
}

std::shared_ptr<grpc::ChannelCredentials> Connecting(
    std::shared_ptr<grpc::experimental::CertificateProviderInterface> files, bool known,
    const std::string& node) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::move(files));
  options.watch_root_certs();
  if (known) options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<NodeVerifier>(node));
  options.set_check_call_host(false);
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

Expected<PeerTls> PeerTls::Open(const std::filesystem::path& folder,
                                std::chrono::seconds read_again) {
  PeerTls tls;
  if (folder.empty()) return tls;
  const auto authority = ReadPem(folder / "authority.pem"), key = ReadPem(folder / "node.key"),
             certificate = ReadPem(folder / "node.pem");
  for (const auto* const read : {&authority, &key, &certificate}) {
    if (!*read) return std::unexpected(read->error());
  }
  if (CertificateOf(*authority) == nullptr) {
    return InvalidArgument((folder / "authority.pem").string() +
                           " is no certificate in PEM; copy it from the controller's folder");
  }
  tls.node_ = NodeOfCertificate(*certificate);
  if (tls.node_.empty()) {
    return InvalidArgument((folder / "node.pem").string() +
                           " is not a node's certificate: tactus cluster certificate makes one");
  }
  if (!IsOfKey(*certificate, *key)) {
    return InvalidArgument(
        (folder / "node.pem").string() +
        " is of another key than node.key, which was made with it; copy both, or "
        "make both again by tactus cluster certificate");
  }
  tls.files_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      (folder / "node.key").string(), (folder / "node.pem").string(),
      (folder / "authority.pem").string(), static_cast<unsigned>(read_again.count()));
  return tls;
}

std::shared_ptr<grpc::ServerCredentials> PeerTls::Listens(int asks) const {
  if (!on()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(files_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(static_cast<grpc_ssl_client_certificate_request_type>(asks));
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> PeerTls::Listening() const {
  return Listens(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
}

std::shared_ptr<grpc::ServerCredentials> PeerTls::ListeningToStrangers() const {
  return Listens(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
}

std::shared_ptr<grpc::ChannelCredentials> PeerTls::Towards(const std::string& node) const {
  return on() ? Connecting(files_, true, node) : grpc::InsecureChannelCredentials();
}

Expected<std::shared_ptr<grpc::ChannelCredentials>> TowardsAsStranger(
    const std::filesystem::path& folder, const std::string& node) {
  const std::filesystem::path file = folder / "authority.pem";
  const auto there = ReadWhole(file, "authority", "; copy it from the controller's folder");
  if (!there) return std::unexpected(there.error());
  constexpr unsigned kReadAgainSeconds = 10;
  return Connecting(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
                        file.string(), kReadAgainSeconds),
                    false, node);
}

std::string NodeOfCertificate(const std::string& pem) {
  const Certificate certificate = CertificateOf(pem);
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

Status CheckCertificate(const std::filesystem::path& folder, const std::string& node,
                        std::chrono::sys_seconds now) {
  const std::filesystem::path file = folder / "node.pem";
  const auto authority = ReadPem(folder / "authority.pem"), key = ReadPem(folder / "node.key"),
             own = ReadPem(file);
  for (const auto* const read : {&authority, &key, &own}) {
    if (!*read) return std::unexpected(read->error());
  }
  const Certificate issuer = CertificateOf(*authority), certificate = CertificateOf(*own);
  if (NodeOfCertificate(*own) != node) {
    return InvalidArgument(file.string() + " is not of node '" + node + "'");
  }
  const bool signed_here =
      issuer != nullptr && X509_verify(certificate.get(), X509_get0_pubkey(issuer.get())) == 1;
  const bool fits = IsOfKey(*own, *key);
  if (!signed_here) return InvalidArgument(file.string() + " is of another authority");
  if (!fits) return InvalidArgument(file.string() + " is of another key than node.key");
  const Validity validity = *ValidityOf(*own);
  if (now < validity.from || now >= validity.until) {
    return InvalidArgument(file.string() +
                           " is not valid now: it has expired, or is not valid yet");
  }
  return {};
}

Expected<Validity> ValidityOf(const std::string& pem) {
  const Certificate certificate = CertificateOf(pem);
  if (certificate == nullptr) return InvalidArgument("no certificate in PEM");
  return Validity{InstantOf(X509_get0_notBefore(certificate.get())),
                  InstantOf(X509_get0_notAfter(certificate.get()))};
}

}  // namespace tactus
