#include "server/net/client_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "server/access/access.h"

namespace tactus {
namespace {

namespace ssl = boost::asio::ssl;

std::string_view ViewOf(const unsigned char* text, unsigned size) {
  return {reinterpret_cast<const char*>(text), size};
}

// What the client offers: names, each behind its length. Without ours there is nothing to say.
int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned size, void* context) {
  const std::string_view wanted = static_cast<const TlsContext*>(context)->protocol;
  for (unsigned at = 0; at < size && at + 1 + offered[at] <= size; at += 1 + offered[at]) {
    if (ViewOf(offered + at + 1, offered[at]) != wanted) continue;
    *out = offered + at + 1;
    *out_size = offered[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

Expected<std::shared_ptr<TlsContext>> ContextOf(const TlsMaterial& tls,
                                                const std::string& protocol) {
  const auto bytes = [](const std::string& text) { return boost::asio::buffer(text); };
  try {
    auto context = std::make_shared<TlsContext>(protocol);
    SSL_CTX* const raw = context->native_handle();
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    SSL_CTX_set_options(
        raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    // Of TLS 1.2 only what keeps its secrets when the key is lost later; all of 1.3 does.
    SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20");
    if (!protocol.empty()) SSL_CTX_set_alpn_select_cb(raw, ChooseProtocol, context.get());
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
  auto made = ContextOf(*material, protocol_);
  if (!made) return std::unexpected(std::move(made.error()));
  context_ = *std::move(made);
  return {};
}

std::shared_ptr<TlsContext> TlsContexts::Of(const Access* access) {
  (void)Make(access);  // where it fails, the last one serves on
  return context_;
}

void ClientStream::StampArrivals() {
  const int on = 1;
  setsockopt(socket().native_handle(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

std::optional<std::size_t> ClientStream::TryRead(std::span<char> space,
                                                 boost::system::error_code& error) {
  // More is a clock that was set.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(10);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  iovec to{.iov_base = space.data(), .iov_len = space.size()};
  msghdr message{};
  message.msg_iov = &to;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(socket().native_handle(), &message, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (n < 0) error.assign(errno, boost::system::system_category());
  if (n == 0) error = boost::asio::error::eof;
  if (n <= 0) return 0;
  waited_ = {};
  const cmsghdr* said = CMSG_FIRSTHDR(&message);
  if (said == nullptr || said->cmsg_type != SCM_TIMESTAMPNS) return n;
  timespec came{}, now{};
  std::memcpy(&came, CMSG_DATA(said), sizeof came);
  clock_gettime(CLOCK_REALTIME, &now);
  const std::chrono::nanoseconds waited = std::chrono::seconds(now.tv_sec - came.tv_sec) +
                                          std::chrono::nanoseconds(now.tv_nsec - came.tv_nsec);
  if (waited <= kLongest) waited_ = std::max(waited, std::chrono::nanoseconds{});
  return n;
}

bool ClientStream::agreed() {
  if (!tls_ || tls_->protocol.empty()) return true;
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(secret_->native_handle(), &name, &size);
  return ViewOf(name, size) == tls_->protocol;
}

}  // namespace tactus
