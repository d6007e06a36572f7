#include "server/http/streams_handler.h"

#include <cctype>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/http/watched_body.h"
#include "server/kserve/error_mapping.h"
#include "stream/frame_feed.h"
#include "stream/stream_config.h"
#include "stream/stream_set.h"

namespace tactus {
namespace {

HttpResponse Json(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

HttpResponse Refusal(const Error& error, bool strict) {
  const WireError wire = ToWire(error, strict);
  HttpResponse response = ErrorResponse(wire.http, wire.text);
  if (wire.retry_after) response.fields = "Retry-After: 1\r\n";
  return response;
}

// A name that ends up in a field of the response: it may hold anything.
std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.') {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace

void StreamsHandler::Handle(const HttpRequest& request, const Route& route,
                            std::shared_ptr<Exchange> exchange) {
  const bool reads = request.verb == Verb::kGet || request.verb == Verb::kHead;
  const bool changes = request.verb == Verb::kPost || request.verb == Verb::kDelete;
  if (changes && route.endpoint == Endpoint::kStream) {
    return Change(request, route, std::move(exchange));
  }
  HttpResponse response;
  if (reads) {
    response = Read(route);
  } else {
    response = ErrorResponse(405, "Method Not Allowed");
    response.fields = fmt::format("Allow: {}\r\n", AllowedVerbs(route.endpoint));
  }
  exchange->Answer([response = std::move(response)]() mutable { return std::move(response); });
}

HttpResponse StreamsHandler::Read(const Route& route) const {
  if (route.endpoint == Endpoint::kStreams) return Json(streams_.ListJson());
  if (route.endpoint == Endpoint::kStreamEvents) return Watch(route, false);
  if (route.endpoint == Endpoint::kStreamVideo) return Watch(route, true);
  if (route.endpoint == Endpoint::kStreamView) {
    HttpResponse page;
    page.status = 302;
    page.fields =
        fmt::format("Location: /ui/index.html#stream={}\r\n", PercentEncoded(route.model));
    return page;
  }
  auto json = streams_.Json(route.model);
  return json ? Json(*std::move(json)) : Refusal(json.error(), strict_);
}

HttpResponse StreamsHandler::Watch(const Route& route, bool pictures) const {
  auto watcher = streams_.Watch(route.model, pictures ? FeedKind::kPictures : FeedKind::kEvents);
  if (!watcher) return Refusal(watcher.error(), strict_);
  HttpResponse response;
  static const std::string kPictureType =
      fmt::format("multipart/x-mixed-replace; boundary={}", kPictureBoundary);
  response.content_type = pictures ? std::string_view(kPictureType) : "text/event-stream";
  response.fields = "Cache-Control: no-store\r\n";
  response.rest = std::make_shared<WatchedBody>(*std::move(watcher));
  return response;
}

void StreamsHandler::Change(const HttpRequest& request, const Route& route,
                            std::shared_ptr<Exchange> exchange) {
  const auto answer = [strict = strict_](Exchange& to, const Status& status) {
    to.Answer([status, strict] { return status ? Json("{}") : Refusal(status.error(), strict); });
  };
  Expected<StreamConfig> config;
  const bool adds = request.verb == Verb::kPost;
  if (adds && !request.content_encoding.empty()) {
    return answer(*exchange, InvalidArgument("the stream: send its description uncompressed"));
  }
  std::string description;
  if (adds) {
    description.assign(reinterpret_cast<const char*>(request.body.data()), request.body.size());
    config = ParseStreamConfig(description);
    if (!config) return answer(*exchange, std::unexpected(config.error()));
  }
  const bool taken =
      waiting_.Post([this, adds, answer, exchange, name = route.model, config = *config,
                     description = std::move(description)](bool refused) {
        if (refused) {
          return answer(*exchange, Fail(ErrorCode::kUnavailable, "the server is stopping"));
        }
        answer(*exchange, adds ? streams_.Add(name, config, description) : streams_.Remove(name));
      });
  if (!taken) {
    answer(*exchange, Fail(ErrorCode::kUnavailable, "too many changes of streams wait: try again"));
  }
}

}  // namespace tactus
