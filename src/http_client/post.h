// One POST over HTTP/1.1, in the clear, for those who seldom need one.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "base/host_port.h"
#include "base/serving_time.h"

namespace tactus {

struct HttpEndpoint {
  std::string host;
  std::string port;

  std::string text() const { return Bracketed(host) + ":" + port; }
};

struct HttpUrl {
  HttpEndpoint endpoint;
  std::string path;  // with its '/'; empty: none was said
};

// "http://host:80/path"; `port` where none is said. Nothing for anything else, "https://" too.
std::optional<HttpUrl> ParseHttpUrl(std::string_view url, std::uint16_t port);

struct HttpReply {
  int status = 0;
  std::string body;  // of at most 1 MiB
};

// On a connection of its own. kUnavailable, with the cause, where no whole answer came in
// `timeout`, or in twice that where the name had to be looked up, or before `stop`: nobody knows
// then whether the other side has acted.
Expected<HttpReply> PostOnce(const HttpEndpoint& endpoint, std::string_view path,
                             std::string_view content_type, std::string body, Duration timeout,
                             const std::stop_token& stop = {});

}  // namespace tactus
