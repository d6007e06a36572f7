#include "knowledge/etcd/etcd_client.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

namespace tactus::knowledge {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::uint64_t kLongestReply = 1U << 20U;

asio::awaitable<EtcdReply> Exchange(const EtcdEndpoint& endpoint,
                                    http::request<http::string_body> request, Duration timeout) {
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const auto addresses =
      co_await resolver.async_resolve(endpoint.host, endpoint.port, asio::use_awaitable);
  boost::beast::tcp_stream stream(executor);
  stream.expires_after(timeout);
  co_await stream.async_connect(addresses, asio::use_awaitable);
  co_await http::async_write(stream, request, asio::use_awaitable);
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kLongestReply);
  co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
  co_return EtcdReply{static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
}

}  // namespace

EtcdClient::EtcdClient(std::vector<EtcdEndpoint> endpoints, Duration timeout)
    : endpoints_(std::move(endpoints)), timeout_(timeout) {}

Expected<EtcdReply> EtcdClient::PostTo(const EtcdEndpoint& endpoint, std::string_view path,
                                       const std::string& body) const {
  http::request<http::string_body> request(http::verb::post, {path.data(), path.size()}, 11);
  request.set(http::field::host, endpoint.host + ":" + endpoint.port);
  request.set(http::field::content_type, "application/json");
  request.keep_alive(false);
  request.body() = body;
  request.prepare_payload();

  std::string fault = "no answer in time";
  std::optional<EtcdReply> reply;
  try {
    asio::io_context context(1);
    asio::co_spawn(context, Exchange(endpoint, std::move(request), timeout_),
                   [&](const std::exception_ptr& thrown, EtcdReply answer) {
                     if (!thrown) {
                       reply = std::move(answer);
                       return;
                     }
                     try {
                       std::rethrow_exception(thrown);
                     } catch (const std::exception& why) {
                       fault = why.what();
                     }
                   });
    // Looking up a name has a timeout of the system's own.
    context.run_for(2 * timeout_);
  } catch (const std::exception& why) {
    fault = why.what();
  }
  if (reply) return std::move(*reply);
  return Fail(ErrorCode::kUnavailable,
              fmt::format("etcd {}:{}: {}; see that etcd runs and can be reached", endpoint.host,
                          endpoint.port, fault));
}

Expected<EtcdReply> EtcdClient::Post(std::string_view path, const std::string& body) {
  Expected<EtcdReply> reply = Fail(ErrorCode::kUnavailable, "etcd: no member is named; name one");
  for (std::size_t tried = 0; tried < endpoints_.size(); ++tried) {
    reply = PostTo(endpoints_[last_good_], path, body);
    // A member without a quorum answers 503.
    if (reply && reply->status < 500) return reply;
    last_good_ = (last_good_ + 1) % endpoints_.size();
  }
  return reply;
}

}  // namespace tactus::knowledge
