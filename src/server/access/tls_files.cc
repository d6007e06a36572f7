#include "server/access/tls_files.h"

#include <memory>
#include <utility>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "server/access/watched_file.h"

namespace tactus {
namespace {

struct Freed {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* tls) const { SSL_free(tls); }
};
template <class T>
using Owned = std::unique_ptr<T, Freed>;

Owned<BIO> Reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key that asks for a passphrase would stop the server at a prompt.
int NoPassphrase(char*, int, int, void*) { return 0; }

Owned<X509> ReadCertificate(const std::string& text) {
  const auto bio = Reader(text);
  return Owned<X509>(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
}

// Whether a client with OpenSSL's defaults shakes hands with such a server. Both are in memory.
bool ShakesHands(SSL_CTX* server_context) {
  const Owned<SSL_CTX> client_context(SSL_CTX_new(TLS_client_method()));
  if (client_context == nullptr) return false;
  const Owned<SSL> server(SSL_new(server_context));
  const Owned<SSL> client(SSL_new(client_context.get()));
  BIO* at_server = nullptr;
  BIO* at_client = nullptr;
  if (server == nullptr || client == nullptr ||
      BIO_new_bio_pair(&at_server, 0, &at_client, 0) != 1) {
    return false;
  }
  SSL_set_bio(server.get(), at_server, at_server);
  SSL_set_bio(client.get(), at_client, at_client);
  SSL_set_accept_state(server.get());
  SSL_set_connect_state(client.get());
  constexpr int kTurns = 64;  // a chain may be longer than what lies between them
  for (int turn = 0; turn < kTurns; ++turn) {
    bool done = true;
    for (SSL* const side : {client.get(), server.get()}) {
      const int shaken = SSL_do_handshake(side);
      const int why = SSL_get_error(side, shaken);
      if (shaken != 1 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return false;
      done = done && shaken == 1;
    }
    if (done) return true;
  }
  return false;
}

// What OpenSSL knows and does not serve with, such as a key that is too short today, and what its
// clients do not take, such as a curve that they do not offer.
bool Serves(const std::string& chain, X509* certificate, EVP_PKEY* key) {
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr || SSL_CTX_use_certificate(context.get(), certificate) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key) != 1) {
    return false;
  }
  const auto bio = Reader(chain);
  Owned<X509> next(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));  // the first
  for (;;) {
    next.reset(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
    if (next == nullptr) return ShakesHands(context.get());
    if (SSL_CTX_add1_chain_cert(context.get(), next.get()) != 1) return false;
  }
}

Status CheckPair(const TlsFiles& files, const TlsMaterial& tls) {
  const auto certificate = ReadCertificate(tls.certificate);
  if (certificate == nullptr) {
    return InvalidArgument(
        fmt::format("{}: no certificate in PEM (lines from BEGIN CERTIFICATE to END CERTIFICATE); "
                    "is it the key?",
                    files.certificate.string()));
  }
  const auto bio = Reader(tls.key);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    return InvalidArgument(
        fmt::format("{}: no private key in PEM without a passphrase; `openssl pkey -in FILE -out "
                    "FILE` writes one",
                    files.key.string()));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return InvalidArgument(fmt::format("{} is not the key of the certificate {}",
                                       files.key.string(), files.certificate.string()));
  }
  ERR_clear_error();
  if (!Serves(tls.certificate, certificate.get(), key.get())) {
    const char* const why = ERR_reason_error_string(ERR_peek_last_error());
    return InvalidArgument(
        fmt::format("{}: OpenSSL does not shake hands with this certificate and its key ({}); make "
                    "others, such as "
                    "with `openssl req -newkey rsa:2048`",
                    files.certificate.string(), why == nullptr ? "no reason given" : why));
  }
  if (!files.may_have_expired && X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return InvalidArgument(
        fmt::format("{}: the certificate has expired; renew it", files.certificate.string()));
  }
  return {};
}

}  // namespace

Expected<TlsMaterial> ReadTls(const TlsFiles& files) {
  TlsMaterial tls;
  const std::pair<const std::filesystem::path&, std::string&> all[] = {
      {files.certificate, tls.certificate}, {files.key, tls.key}, {files.client_ca, tls.client_ca}};
  for (const auto& [path, text] : all) {
    if (path.empty()) continue;
    auto read = ReadSmallFile(path);
    if (!read) return std::unexpected(std::move(read.error()));
    text = *std::move(read);
  }
  Status fine = CheckPair(files, tls);
  if (fine && !files.client_ca.empty() && ReadCertificate(tls.client_ca) == nullptr) {
    fine = InvalidArgument(
        fmt::format("{}: no certificate in PEM; --tls-client-ca names that of the authority",
                    files.client_ca.string()));
  }
  ERR_clear_error();  // of this thread, which may run connections too
  if (!fine) return std::unexpected(std::move(fine.error()));
  return tls;
}

}  // namespace tactus
