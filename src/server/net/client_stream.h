// A client's socket, in the clear or inside TLS. Includes Boost.Asio: for server/net and the
// protocols' connections only.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "base/expected.h"

namespace tactus {

class Access;
struct TlsMaterial;

struct TlsContext : boost::asio::ssl::context {
  explicit TlsContext(std::string agreed)
      : context(boost::asio::ssl::context::tls_server), protocol(std::move(agreed)) {}
  const std::string protocol;  // that both sides have to agree on (ALPN); empty: none is spoken of
};

// The TLS settings of new connections, made anew whenever the certificate changes; older
// connections keep theirs. From one thread at a time.
class TlsContexts {
 public:
  explicit TlsContexts(std::string protocol = "") : protocol_(std::move(protocol)) {}

  // InvalidArgument where OpenSSL does not take the certificate. `access` may be null.
  Status Make(const Access* access);
  // As of the files now, or as before where OpenSSL does not take them. Null: in the clear.
  std::shared_ptr<TlsContext> Of(const Access* access);

 private:
  std::string protocol_;
  std::shared_ptr<const TlsMaterial> material_;
  std::shared_ptr<TlsContext> context_;
};

// For async_write: Asio's own condition hands the kernel 64 kB at a time, and asks for events after
// each.
inline std::size_t AsMuchAsGoes(const boost::system::error_code& error, std::size_t) {
  return error ? 0 : std::size_t{4} << 20;
}

// Reads by itself, and writes as an AsyncWriteStream of Asio; one of each may be under way at once.
class ClientStream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using executor_type = Socket::executor_type;

  ClientStream(Socket socket, std::shared_ptr<TlsContext> tls)
      : tls_(std::move(tls)), plain_(std::move(socket)) {}

  bool secret() const { return tls_ != nullptr; }
  // Once hands are shaken: whether both sides agree on the context's protocol, where it has one.
  bool agreed();
  Socket& socket() { return secret_ ? secret_->next_layer() : *plain_; }
  executor_type get_executor() { return socket().get_executor(); }

  // Where `secret`: once, before anything is read or written, while nothing waits for the socket.
  // Until then TLS costs nothing, so that a client that goes before its turn has cost a descriptor.
  template <class Done>
  void Shake(Done&& done) {
    secret_.emplace(*std::move(plain_), *tls_);
    plain_.reset();
    secret_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Done>(done));
  }
  // From now on the kernel says when bytes came (Waited). Not through TLS, nor on a Unix socket.
  void StampArrivals();
  // done(error, bytes) on the loop once some have come. Whoever calls keeps the stream till then.
  template <class Done>
  void Read(std::span<char> space, Done done) {
    if (secret_) {
      return secret_->async_read_some(boost::asio::buffer(space.data(), space.size()),
                                      std::move(done));
    }
    boost::system::error_code error;
    if (const auto n = TryRead(space, error)) {
      return boost::asio::post(
          get_executor(), [done = std::move(done), error, n = *n]() mutable { done(error, n); });
    }
    plain_->async_wait(boost::asio::socket_base::wait_read,
                       [this, space, done = std::move(done)](auto failed) mutable {
                         const auto n =
                             failed ? std::optional<std::size_t>(0) : TryRead(space, failed);
                         if (!n) return Read(space, std::move(done));  // spurious
                         done(failed, *n);
                       });
  }
  // How long the last bytes had been there when they were read, where the kernel says it; else 0.
  std::chrono::nanoseconds waited() const { return waited_; }

  template <class Buffers, class Done>
  void async_write_some(const Buffers& buffers, Done&& done) {
    if (secret_) return secret_->async_write_some(buffers, std::forward<Done>(done));
    plain_->async_write_some(buffers, std::forward<Done>(done));
  }

 private:
  // What is there already; nothing: not a byte.
  std::optional<std::size_t> TryRead(std::span<char> space, boost::system::error_code& error);

  std::shared_ptr<TlsContext> tls_;  // outlives the stream that was made of it
  std::optional<Socket> plain_;
  std::chrono::nanoseconds waited_{};
  std::optional<boost::asio::ssl::stream<Socket>> secret_;
};

}  // namespace tactus
