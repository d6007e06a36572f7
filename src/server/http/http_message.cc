#include "server/http/http_message.h"

#include <fmt/format.h>

#include "base/append.h"
#include "server/access/client_limits.h"
#include "server/kserve/rest_bodies.h"

namespace tactus {
namespace {

// Smaller answers gain nothing from being compressed.
constexpr std::size_t kLeastCompressed = 1024;

std::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 302:
      return "Found";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Payload Too Large";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace

HttpResponse ErrorResponse(int status, std::string_view text) {
  HttpResponse response;
  response.status = status;
  response.body = ErrorJson(text);
  return response;
}

HttpResponse OverBudgetResponse(ByteBudget::Taken taken) {
  const int status = taken == ByteBudget::Taken::kBeyondLimit ? 429 : 503;
  HttpResponse response = ErrorResponse(status, ClientLimits::BytesText(taken));
  response.fields = "Retry-After: 1\r\n";
  return response;
}

RefusalReason ReasonOf(const HttpResponse& response) {
  return response.status == 429   ? RefusalReason::kClientLimit
         : response.status == 503 ? RefusalReason::kResourceExhausted
                                  : RefusalReason::kInvalidArgument;
}

std::size_t SizeOf(const HttpResponse& response) {
  std::size_t size = response.body.size();
  for (const auto part : response.parts) size += part.size();
  return size;
}

std::string ResponseHead(const HttpResponse& response, bool keep_alive) {
  std::string head;
  head.reserve(192 + response.fields.size());
  AppendAll(head, "HTTP/1.1 ", response.status, " ", Reason(response.status),
            "\r\nContent-Type: ", response.content_type, "\r\n", response.fields);
  if (response.rest == nullptr) AppendAll(head, "Content-Length: ", SizeOf(response), "\r\n");
  // Said in both cases: clients of HTTP/1.0 keep a connection only when told.
  head += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

void Compress(Coding coding, HttpResponse& response) {
  if (coding == Coding::kIdentity || SizeOf(response) < kLeastCompressed) return;
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(response.body))};
  pieces.insert(pieces.end(), response.parts.begin(), response.parts.end());
  response.body = Deflate(coding, pieces);
  response.parts.clear();
  response.storage = nullptr;
  response.fields += fmt::format("Content-Encoding: {}\r\n", Name(coding));
}

}  // namespace tactus
