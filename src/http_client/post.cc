#include "http_client/post.h"

#include <algorithm>
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
#include <boost/system/system_error.hpp>

namespace tactus {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::uint64_t kLongestReply = 1U << 20U;

asio::awaitable<HttpReply> Exchange(const HttpEndpoint& endpoint,
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
  co_return HttpReply{static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
}

}  // namespace

std::optional<HttpUrl> ParseHttpUrl(std::string_view url, std::uint16_t port) {
  constexpr std::string_view kScheme = "http://";
  const auto strange = [](char c) { return c <= ' ' || c > '~'; };
  if (!url.starts_with(kScheme) || std::ranges::any_of(url, strange)) return {};
  const std::string_view rest = url.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string place(rest.substr(0, slash));
  const std::size_t bracket = place.rfind(']');
  if (place.find(':', bracket == place.npos ? 0 : bracket) == place.npos) {
    place += ':' + std::to_string(port);
  }
  const auto endpoint = ParseHostPort(place);
  if (!endpoint || endpoint->host.empty() || endpoint->port == 0) return {};
  return HttpUrl{{endpoint->host, std::to_string(endpoint->port)}, std::string(rest.substr(slash))};
}

Expected<HttpReply> PostOnce(const HttpEndpoint& endpoint, std::string_view path,
                             std::string_view content_type, std::string body, Duration timeout,
                             const std::stop_token& stop) {
  http::request<http::string_body> request(http::verb::post, {path.data(), path.size()}, 11);
  request.set(http::field::host, endpoint.text());
  request.set(http::field::content_type, {content_type.data(), content_type.size()});
  request.keep_alive(false);
  request.body() = std::move(body);
  request.prepare_payload();

  std::string fault = "no answer in time";
  std::optional<HttpReply> reply;
  try {
    asio::io_context context(1);
    asio::co_spawn(context, Exchange(endpoint, std::move(request), timeout),
                   [&](const std::exception_ptr& thrown, HttpReply answer) {
                     if (!thrown) {
                       reply = std::move(answer);
                       return;
                     }
                     try {
                       std::rethrow_exception(thrown);
                     } catch (const boost::system::system_error& why) {
                       fault = why.code().message();  // what() names a line of a library
                     } catch (const std::exception& why) {
                       fault = why.what();
                     }
                   });
    const std::stop_callback stopped(stop, [&context] { context.stop(); });
    // Looking up a name has a timeout of the system's own.
    context.run_for(2 * timeout);
  } catch (const std::exception& why) {
    fault = why.what();
  }
  if (reply) return std::move(*reply);
  return Fail(ErrorCode::kUnavailable, std::move(fault));
}

}  // namespace tactus
