// KServe v2 over HTTP/1.1 with the binary tensor extension. One thread runs every connection; a
// connection carries one request at a time. What does not change between requests (head, JSON) is
// made once for each model; a request is written from those bytes and the sample's.
#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <future>
#include <thread>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>

#include "load/model_description.h"
#include "load/server_stream.h"
#include "load/transport.h"

namespace tactus {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Json = nlohmann::json;

constexpr int kWarmConnections = 8;
constexpr std::size_t kReadBuffer = 64 * 1024;
// A call that left so much later than meant says what time it has left.
constexpr std::chrono::milliseconds kTold{1};
constexpr std::uint64_t kMaxResponse = std::uint64_t{1} << 31;

using ResponseParser = http::response_parser<http::string_body>;

// A response's header field with a count, 0 where there is none.
std::size_t HeaderCount(const http::response<http::string_body>& response, const char* name) {
  const auto text = response[name];
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Answered KindOf(int status) {
  switch (status) {
    case 200:
      return Answered::kServed;
    case 429:
    case 503:
      return Answered::kShed;
    case 504:
      return Answered::kExpired;
    case 499:
      return Answered::kCancelled;
    default:
      return Answered::kError;
  }
}

// The fields of a response that the generator wants, read without keeping its JSON.
class ResponseReader {
 public:
  // Fills `answer`; its views point into `response` and into this reader.
  void Read(const http::response<http::string_body>& response, Answer& answer) {
    const std::string& body = response.body();
    answer.kind = KindOf(response.result_int());
    if (answer.kind != Answered::kServed) {
      error_ = fmt::format("HTTP {}: {}", response.result_int(), body.substr(0, 300));
      answer.error = error_;
      return;
    }
    std::size_t header = HeaderCount(response, "Inference-Header-Content-Length");
    if (header == 0 || header > body.size()) header = body.size();
    simdjson::dom::element root;
    if (parser_.parse(body.data(), header).get(root) != simdjson::SUCCESS) {
      answer.kind = Answered::kError;
      answer.error = "the response is no JSON";
      return;
    }
    ReadParameters(root, answer);
    std::uint64_t bytes = 0;
    if (root.at_pointer("/outputs/0/parameters/binary_data_size").get(bytes) == simdjson::SUCCESS &&
        bytes <= body.size() - header) {
      answer.first_output = std::as_bytes(std::span(body)).subspan(header, bytes);
    }
  }

 private:
  void ReadParameters(simdjson::dom::element root, Answer& answer) {
    std::string_view exit;
    if (root.at_pointer("/parameters/tactus_exit").get(exit) == simdjson::SUCCESS) {
      exit_ = exit;
      answer.exit = exit_;
    }
    std::int64_t batch = 0;
    if (root.at_pointer("/parameters/tactus_batch_size").get(batch) == simdjson::SUCCESS) {
      answer.batch = static_cast<int>(batch);
    }
  }

  simdjson::dom::parser parser_;
  std::string exit_;
  std::string error_;
};

struct Connection {
  Connection(asio::io_context& io, ServerStream::Tls* tls, const std::string& host)
      : stream(io, tls, host) {
    buffer.reserve(kReadBuffer);
  }

  ServerStream stream;
  beast::flat_buffer buffer;
  std::optional<ResponseParser> parser;
  Call call;
  std::string time;  // a header field with the call's time; empty: all of it is left
  bool busy = false;
  bool used = false;     // answered before: the server may have closed it while it was idle
  bool retried = false;  // this call already lost an idle connection
};

// What every request of a model begins with; the tensors follow.
struct PreparedPost {
  const PreparedInputs* inputs = nullptr;
  std::string fields;  // request line and header fields
  std::string body;    // the empty line, and JSON
};

class HttpTransport final : public Transport {
 public:
  HttpTransport(TransportOptions options, TargetServer server, std::optional<ServerStream::Tls> tls)
      : options_(std::move(options)), server_(std::move(server)), tls_(std::move(tls)) {
    if (options_.connections <= 0) options_.connections = kHttpConnections;
  }
  ~HttpTransport() override { Stop(); }

  std::string_view name() const override { return "http"; }
  Expected<DescribedModel> Describe(const std::string& model) override;
  Status Prepare(std::span<const PreparedInputs> inputs, AnswerSink& sink) override;
  void Send(const Call& call) override {
    // Inline when already on the I/O thread: the next call of a closed loop needs no wake-up.
    asio::dispatch(io_, [this, call] { Begin(call, false); });
  }
  void Stop() override;
  std::int64_t unsent() const override { return unsent_; }

 private:
  // The body, which is JSON.
  Expected<std::string> Get(const std::string& target);
  PreparedPost MakePost(const PreparedInputs& inputs) const;
  std::unique_ptr<Connection> MakeConnection();
  const std::string& host() const { return server_.endpoint.place.host; }
  std::string port() const { return std::to_string(server_.endpoint.place.port); }
  std::string url() const { return (tls_ ? "https://" : "http://") + server_.endpoint.text(); }
  std::string WhyUnreached(const error_code& error) const;

  // On the I/O thread.
  bool IsOver(const Call& call);
  void Begin(const Call& call, bool retried);
  void Open(Connection& connection);
  void OnOpen(Connection& connection, const error_code& error);
  void Write(Connection& connection, const Call& call, bool retried);
  void Read(Connection& connection);
  void OnResponse(Connection& connection);
  void OnLost(Connection& connection, const error_code& error, bool nothing_came);
  void Release(Connection& connection);
  void GiveUp(const Call& call, Answered kind, std::string_view error);

  TransportOptions options_;
  const TargetServer server_;
  std::optional<ServerStream::Tls> tls_;  // outlives the connections
  asio::io_context io_{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::vector<tcp::endpoint> addresses_;
  std::vector<PreparedPost> prepared_;
  AnswerSink* sink_ = nullptr;
  ResponseReader reader_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;  // the one used last is taken first: few connections stay warm
  std::deque<std::pair<Call, bool>> waiting_;
  std::int64_t unsent_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

std::string HttpTransport::WhyUnreached(const error_code& error) const {
  if (error.category() == asio::error::get_ssl_category()) {
    return fmt::format(
        "{}: TLS: {}; has one of the certificates in {} signed the server's, and for this name?",
        url(), error.message(), options_.ca);
  }
  return fmt::format("{}: {}; is a server up, and is this its HTTP port (--url HOST:PORT), {}?",
                     url(), error.message(),
                     tls_ ? "with TLS" : "without TLS (with TLS give its certificates: --ca FILE)");
}

// One request and its response, over a stream that is connected.
template <class Stream>
void Exchange(Stream& stream, const http::request<http::empty_body>& request,
              http::response<http::string_body>& response, error_code& error) {
  beast::flat_buffer buffer;
  http::write(stream, request, error);
  if (!error) http::read(stream, buffer, response, error);
}

Expected<std::string> HttpTransport::Get(const std::string& target) {
  error_code error;
  asio::io_context io;
  ServerStream stream(io, tls_ ? &*tls_ : nullptr, host());
  const auto found = tcp::resolver(io).resolve(host(), port(), error);
  if (!error) asio::connect(stream.socket(), found, error);
  http::request<http::empty_body> request(http::verb::get, target, 11);
  request.set(http::field::host, host());
  if (!server_.token.empty()) request.set(http::field::authorization, "Bearer " + server_.token);
  request.keep_alive(false);
  http::response<http::string_body> response;
  ServerStream::Secret* const secret = error ? nullptr : stream.Begin();
  if (secret != nullptr) secret->handshake(asio::ssl::stream_base::client, error);
  if (!error) {
    secret != nullptr ? Exchange(*secret, request, response, error)
                      : Exchange(stream.socket(), request, response, error);
  }
  if (error) return Fail(ErrorCode::kUnavailable, WhyUnreached(error));
  const unsigned status = response.result_int();
  if (status != 200 || !Json::accept(response.body())) {
    const bool denied = status == 401 || status == 403;
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("{}{}: HTTP {}: {}{}", url(), target, status, response.body().substr(0, 300),
                    denied ? AccessRemedy(options_, status == 401) : ""));
  }
  return std::move(response.body());
}

Expected<DescribedModel> HttpTransport::Describe(const std::string& model) {
  const auto metadata = Get("/v2/models/" + model);
  if (!metadata) return std::unexpected(metadata.error());
  // An extension: a server without it states no SLO and no exits.
  return ReadDescription(model, *metadata, Get("/v2/models/" + model + "/config").value_or("{}"));
}

PreparedPost HttpTransport::MakePost(const PreparedInputs& inputs) const {
  Json body;
  std::size_t bytes = 0;
  for (const PreparedTensor& tensor : inputs.tensors) {
    body["inputs"].push_back({{"name", tensor.name},
                              {"shape", tensor.shape},
                              {"datatype", std::string(Name(tensor.type))},
                              {"parameters", {{"binary_data_size", tensor.sample_bytes}}}});
    bytes += tensor.sample_bytes;
  }
  body["parameters"]["binary_data_output"] = true;
  if (options_.priority > 0) body["parameters"]["priority"] = options_.priority;
  if (options_.timeout.count() > 0) body["parameters"]["timeout"] = options_.timeout.count();
  const std::string json = body.dump();
  const std::string bearer =
      server_.token.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", server_.token);
  return {
      &inputs,
      fmt::format("POST /v2/models/{}/infer HTTP/1.1\r\nHost: {}\r\n{}"
                  "Content-Type: application/octet-stream\r\n"
                  "Inference-Header-Content-Length: {}\r\nContent-Length: {}\r\n",
                  inputs.model, server_.endpoint.text(), bearer, json.size(), json.size() + bytes),
      "\r\n" + json};
}

Status HttpTransport::Prepare(std::span<const PreparedInputs> inputs, AnswerSink& sink) {
  sink_ = &sink;
  for (const PreparedInputs& model : inputs) prepared_.push_back(MakePost(model));
  error_code error;
  const auto found = tcp::resolver(io_).resolve(host(), port(), error);
  for (const auto& entry : found) addresses_.push_back(entry.endpoint());
  for (int i = 0; !error && i < std::min(kWarmConnections, options_.connections); ++i) {
    connections_.push_back(MakeConnection());
    ServerStream& stream = connections_.back()->stream;
    asio::connect(stream.socket(), addresses_, error);
    if (!error) stream.socket().set_option(tcp::no_delay(true), error);
    if (error) break;
    if (auto* const secret = stream.Begin()) {
      secret->handshake(asio::ssl::stream_base::client, error);
    }
    idle_.push_back(connections_.back().get());
  }
  if (error) return Fail(ErrorCode::kUnavailable, WhyUnreached(error));
  work_.emplace(io_.get_executor());
  thread_ = std::thread([this] { io_.run(); });
  return {};
}

void HttpTransport::Stop() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] {
    stopping_ = true;
    for (const auto& [call, retried] : std::exchange(waiting_, {})) {
      GiveUp(call, Answered::kCancelled, "stopped");
    }
    error_code ignored;
    for (const auto& connection : connections_) connection->stream.socket().close(ignored);
    work_.reset();
  });
  thread_.join();
}

// Whether there is no use in sending it any more; then it has been given up.
bool HttpTransport::IsOver(const Call& call) {
  if (call.due > std::chrono::steady_clock::now()) return false;
  ++unsent_;
  GiveUp(call, Answered::kExpired, "its time was over before it could be sent");
  return true;
}

void HttpTransport::Begin(const Call& call, bool retried) {
  if (stopping_) {
    GiveUp(call, Answered::kCancelled, "stopped");
    return;
  }
  if (IsOver(call)) return;
  if (!idle_.empty()) {
    Connection* connection = idle_.back();
    idle_.pop_back();
    Write(*connection, call, retried);
    return;
  }
  waiting_.emplace_back(call, retried);
  if (connections_.size() >= static_cast<std::size_t>(options_.connections)) return;
  connections_.push_back(MakeConnection());
  Open(*connections_.back());
}

std::unique_ptr<Connection> HttpTransport::MakeConnection() {
  return std::make_unique<Connection>(io_, tls_ ? &*tls_ : nullptr, host());
}

void HttpTransport::Open(Connection& connection) {
  connection.used = false;
  connection.buffer.clear();
  asio::async_connect(connection.stream.socket(), addresses_,
                      [this, &connection](const error_code& error, const tcp::endpoint&) {
                        auto* const secret = error ? nullptr : connection.stream.Begin();
                        if (secret == nullptr) return OnOpen(connection, error);
                        secret->async_handshake(
                            asio::ssl::stream_base::client,
                            [this, &connection](const error_code& e) { OnOpen(connection, e); });
                      });
}

void HttpTransport::OnOpen(Connection& connection, const error_code& error) {
  error_code ignored;
  if (error) {
    connection.busy = false;
    connection.stream.socket().close(ignored);
    return OnLost(connection, error, false);
  }
  connection.stream.socket().set_option(tcp::no_delay(true), ignored);
  Release(connection);
}

void HttpTransport::Write(Connection& connection, const Call& call, bool retried) {
  connection.call = call;
  connection.busy = true;
  connection.time.clear();
  if (const auto now = std::chrono::steady_clock::now();
      now - call.meant >= kTold && call.due != SteadyTime::max()) {
    const std::chrono::duration<double, std::milli> left = call.due - now;
    // 0 would be no limit.
    connection.time =
        fmt::format("X-Request-Timeout-Ms: {:.3f}\r\n", std::max(left.count(), 0.001));
  }
  connection.retried = retried;
  const PreparedPost& prepared = prepared_[call.model];
  const auto& tensors = prepared.inputs->tensors;
  const auto sent = [this, &connection](const error_code& error, std::size_t) {
    if (error) {
      OnLost(connection, error, true);
    } else {
      Read(connection);
    }
  };
  if (tensors.size() == 1) {
    const auto data = tensors[0].Sample(call.sample);
    const std::array<asio::const_buffer, 4> parts{
        asio::buffer(prepared.fields), asio::buffer(connection.time), asio::buffer(prepared.body),
        asio::buffer(data.data(), data.size())};
    asio::async_write(connection.stream, parts, sent);
    return;
  }
  std::vector<asio::const_buffer> parts{asio::buffer(prepared.fields),
                                        asio::buffer(connection.time), asio::buffer(prepared.body)};
  for (const PreparedTensor& tensor : tensors) {
    const auto data = tensor.Sample(call.sample);
    parts.emplace_back(data.data(), data.size());
  }
  asio::async_write(connection.stream, parts, sent);
}

void HttpTransport::Read(Connection& connection) {
  connection.parser.emplace();
  connection.parser->body_limit(kMaxResponse);
  http::async_read(connection.stream, connection.buffer, *connection.parser,
                   [this, &connection](const error_code& error, std::size_t bytes) {
                     if (error) {
                       OnLost(connection, error, bytes == 0);
                     } else {
                       OnResponse(connection);
                     }
                   });
}

void HttpTransport::OnResponse(Connection& connection) {
  Answer answer;
  answer.received = std::chrono::steady_clock::now();
  answer.token = connection.call.token;
  const auto& response = connection.parser->get();
  reader_.Read(response, answer);
  connection.busy = false;
  connection.used = true;
  // Free before the answer is told, so that a call sent from there takes this connection. The next
  // response is parsed only after we return to the event loop: the views stay good.
  if (response.keep_alive() && !stopping_) {
    Release(connection);
  } else {
    error_code ignored;
    connection.stream.socket().close(ignored);
    if (!stopping_) Open(connection);
  }
  sink_->OnAnswer(answer);
}

void HttpTransport::OnLost(Connection& connection, const error_code& error, bool nothing_came) {
  error_code ignored;
  connection.stream.socket().close(ignored);
  if (connection.busy) {
    connection.busy = false;
    if (stopping_) {
      GiveUp(connection.call, Answered::kCancelled, "stopped");
      return;
    }
    if (nothing_came && connection.used && !connection.retried) {
      // The server closed it while it was idle; the request never arrived.
      waiting_.emplace_front(connection.call, true);
    } else {
      GiveUp(connection.call, Answered::kError, error.message());
    }
    Open(connection);
    return;
  }
  if (stopping_) return;
  // Could not connect: whoever waits for a connection learns it, unless others are on their way.
  std::erase_if(connections_, [&](const auto& c) { return c.get() == &connection; });
  if (!connections_.empty()) return;
  for (const auto& [call, retried] : std::exchange(waiting_, {})) {
    GiveUp(call, Answered::kError, error.message());
  }
}

void HttpTransport::Release(Connection& connection) {
  while (!waiting_.empty()) {
    const auto [call, retried] = waiting_.front();
    waiting_.pop_front();
    if (!IsOver(call)) return Write(connection, call, retried);
  }
  idle_.push_back(&connection);
}

void HttpTransport::GiveUp(const Call& call, Answered kind, std::string_view error) {
  Answer answer;
  answer.token = call.token;
  answer.kind = kind;
  answer.received = std::chrono::steady_clock::now();
  answer.error = error;
  sink_->OnAnswer(answer);
}

}  // namespace

Expected<std::unique_ptr<Transport>> MakeHttpTransport(const TransportOptions& options) {
  auto server = TargetOf(options);
  if (!server) return std::unexpected(std::move(server.error()));
  std::optional<ServerStream::Tls> tls;
  if (!server->roots.empty()) {
    tls.emplace(ServerStream::Tls::tls_client);
    tls->set_verify_mode(asio::ssl::verify_peer);
    error_code error;
    tls->add_certificate_authority(asio::buffer(server->roots), error);
    if (error) return InvalidArgument(fmt::format("{}: {}", options.ca, error.message()));
  }
  return std::make_unique<HttpTransport>(options, *std::move(server), std::move(tls));
}

}  // namespace tactus
