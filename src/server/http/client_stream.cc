#include "server/http/client_stream.h"

#include <boost/asio/buffer.hpp>
#include <openssl/ssl.h>

#include "server/access/access.h"

namespace tactus {
namespace {

namespace ssl = boost::asio::ssl;

Expected<std::shared_ptr<TlsContext>> ContextOf(const TlsMaterial& tls) {
  const auto bytes = [](const std::string& text) { return boost::asio::buffer(text); };
  try {
    auto context = std::make_shared<TlsContext>(ssl::context::tls_server);
    SSL_CTX* const raw = context->native_handle();
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    SSL_CTX_set_options(
        raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    // Of TLS 1.2 only what keeps its secrets when the key is lost later; all of 1.3 does.
    SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20");
    context->use_certificate_chain(bytes(tls.certificate));
    context->use_private_key(bytes(tls.key), ssl::context::pem);
    if (!tls.client_ca.empty()) {
      context->add_certificate_authority(bytes(tls.client_ca));
      context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
      // Sessions that are taken up again must have been this server's.
      constexpr unsigned char kContext[] = "tactus";
      SSL_CTX_set_session_id_context(raw, kContext, sizeof(kContext) - 1);
    }
    return context;
  } catch (const boost::system::system_error& error) {
    return InvalidArgument(std::string("TLS: ") + error.what());
  }
}

}  // namespace

Status TlsContexts::Make(const Access* access) {
  auto material = access == nullptr ? nullptr : access->tls();
  if (material == material_) return {};
  material_ = material;
  auto made = ContextOf(*material);
  if (!made) return std::unexpected(std::move(made.error()));
  context_ = *std::move(made);
  return {};
}

std::shared_ptr<TlsContext> TlsContexts::Of(const Access* access) {
  (void)Make(access);  // where it fails, the last one serves on
  return context_;
}

}  // namespace tactus
