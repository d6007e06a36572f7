// Boost.Beast on one I/O thread, which is Tactus' default too.
#include <array>
#include <charconv>
#include <optional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "echo/echo.h"

namespace tactus::echo {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

constexpr std::size_t kReadBuffer = 64 * 1024;
constexpr const char* kPrefix = "/v2/models/";

Response Fail(http::status status, const char* text) {
  Response response(status, 11);
  response.body() = fmt::format(R"({{"error":"{}"}})", text);
  return response;
}

Response Describe(const EchoModel& model) {
  Response response(http::status::ok, 11);
  const std::string tensor =
      fmt::format(R"([{{"name":"x","datatype":"FP32","shape":[-1,{}]}}])", model.elements);
  response.body() =
      fmt::format(R"({{"name":"{}","inputs":{},"outputs":{}}})", model.name, tensor, tensor);
  return response;
}

// Everything behind the JSON goes back as it came.
Response Echo(const EchoModel& model, const Request& request) {
  const auto field = request["Inference-Header-Content-Length"];
  std::size_t json = 0;
  std::from_chars(field.data(), field.data() + field.size(), json);
  if (json == 0 || json > request.body().size()) {
    return Fail(http::status::bad_request, "one binary tensor, please");
  }
  const std::size_t bytes = request.body().size() - json;
  const std::string head =
      fmt::format(R"({{"model_name":"{}","outputs":[{{"name":"x","datatype":"FP32","shape":[1,{}],)"
                  R"("parameters":{{"binary_data_size":{}}}}}]}})",
                  model.name, model.elements, bytes);
  Response response(http::status::ok, 11);
  response.set("Inference-Header-Content-Length", fmt::to_string(head.size()));
  response.body().reserve(head.size() + bytes);
  response.body() = head;
  response.body().append(request.body(), json);
  return response;
}

Response Answer(const Request& request) {
  std::string target(request.target());
  if (!target.starts_with(kPrefix)) return Fail(http::status::not_found, "no such path");
  target.erase(0, std::char_traits<char>::length(kPrefix));
  const std::size_t slash = target.find('/');
  const EchoModel* model = FindModel(target.substr(0, slash));
  if (model == nullptr) return Fail(http::status::not_found, "no such model");
  if (slash == std::string::npos) return Describe(*model);
  if (target.substr(slash) != "/infer") return Fail(http::status::not_found, "no such path");
  return Echo(*model, request);
}

// One connection; keeps itself alive through its handlers.
class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : socket_(std::move(socket)) {
    buffer_.reserve(kReadBuffer);
    beast::error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
  }
  void Read() {
    parser_.emplace();
    parser_->body_limit(std::uint64_t{64} << 20);
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->Write();
                     });
  }

 private:
  void Write() {
    response_ = Answer(parser_->get());
    response_.keep_alive(parser_->get().keep_alive());
    response_.prepare_payload();
    http::async_write(socket_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->response_.keep_alive()) self->Read();
                      });
  }

  tcp::socket socket_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Response response_;
};

class HttpServer final : public Server {
 public:
  HttpServer() : acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    Accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~HttpServer() override {
    io_.stop();
    thread_.join();
  }
  int port() const override { return acceptor_.local_endpoint().port(); }

 private:
  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error) return;
      std::make_shared<Session>(std::move(socket))->Read();
      Accept();
    });
  }

  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Server> StartHttpEcho() { return std::make_unique<HttpServer>(); }

}  // namespace tactus::echo
