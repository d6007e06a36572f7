// A client's socket, in the clear or inside TLS. Includes Boost.Asio: for this folder only.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "base/expected.h"

namespace tactus {

class Access;
struct TlsMaterial;
using TlsContext = boost::asio::ssl::context;

// The TLS settings of new connections, made anew whenever the certificate changes; older
// connections keep theirs. From one thread at a time.
class TlsContexts {
 public:
  // InvalidArgument where OpenSSL does not take the certificate. `access` may be null.
  Status Make(const Access* access);
  // As of the files now, or as before where OpenSSL does not take them. Null: in the clear.
  std::shared_ptr<TlsContext> Of(const Access* access);

 private:
  std::shared_ptr<const TlsMaterial> material_;
  std::shared_ptr<TlsContext> context_;
};

// An AsyncStream of Asio; one read and one write may be under way at once.
class ClientStream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  ClientStream(Socket socket, std::shared_ptr<TlsContext> tls) : tls_(std::move(tls)) {
    if (tls_) {
      secret_.emplace(std::move(socket), *tls_);
    } else {
      plain_.emplace(std::move(socket));
    }
  }

  bool secret() const { return secret_.has_value(); }
  Socket& socket() { return secret_ ? secret_->next_layer() : *plain_; }
  executor_type get_executor() { return socket().get_executor(); }

  // Once, before anything is read or written, where `secret`.
  template <class Done>
  void Shake(Done&& done) {
    secret_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Done>(done));
  }
  template <class Buffers, class Done>
  void async_read_some(const Buffers& buffers, Done&& done) {
    if (secret_) return secret_->async_read_some(buffers, std::forward<Done>(done));
    plain_->async_read_some(buffers, std::forward<Done>(done));
  }
  template <class Buffers, class Done>
  void async_write_some(const Buffers& buffers, Done&& done) {
    if (secret_) return secret_->async_write_some(buffers, std::forward<Done>(done));
    plain_->async_write_some(buffers, std::forward<Done>(done));
  }

 private:
  std::shared_ptr<TlsContext> tls_;  // outlives the stream that was made of it
  std::optional<Socket> plain_;
  std::optional<boost::asio::ssl::stream<Socket>> secret_;
};

}  // namespace tactus
