// The generator's end of an HTTP connection, in the clear or inside TLS. Includes Boost.Asio: for
// http_transport.cc only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>

namespace tactus {

// An AsyncStream of Asio, which may be connected again and again.
class ServerStream {
 public:
  using Tls = boost::asio::ssl::context;
  using Secret = boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>;
  using executor_type = boost::asio::ip::tcp::socket::executor_type;

  // `tls`: null for none; it and `host` outlive the stream.
  ServerStream(boost::asio::io_context& io, Tls* tls, const std::string& host)
      : tls_(tls), host_(host), socket_(io) {}

  boost::asio::ip::tcp::socket& socket() { return socket_; }
  executor_type get_executor() { return socket_.get_executor(); }

  // Once connected. Hands are to be shaken with the result; null: in the clear.
  Secret* Begin() {
    if (tls_ == nullptr) return nullptr;
    Secret& secret = secret_.emplace(socket_, *tls_);
    secret.set_verify_callback(boost::asio::ssl::host_name_verification(host_));
    boost::system::error_code no_address;
    boost::asio::ip::make_address(host_, no_address);
    if (no_address) SSL_set_tlsext_host_name(secret.native_handle(), host_.c_str());
    return &secret;
  }

  template <class Buffers, class Done>
  void async_read_some(const Buffers& buffers, Done&& done) {
    if (secret_) return secret_->async_read_some(buffers, std::forward<Done>(done));
    socket_.async_read_some(buffers, std::forward<Done>(done));
  }
  template <class Buffers, class Done>
  void async_write_some(const Buffers& buffers, Done&& done) {
    if (secret_) return secret_->async_write_some(buffers, std::forward<Done>(done));
    socket_.async_write_some(buffers, std::forward<Done>(done));
  }

 private:
  Tls* const tls_;
  const std::string& host_;
  boost::asio::ip::tcp::socket socket_;
  std::optional<Secret> secret_;
};

}  // namespace tactus
