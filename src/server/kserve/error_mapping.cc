#include "server/kserve/error_mapping.h"

namespace tactus {
namespace {

struct Row {
  int http;
  int grpc;
  bool retry_after;
  // What Triton does instead; 0 and null where it does the same.
  int strict_http;
  int strict_grpc;
  const char* strict_text;
};

Row RowOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return {400, 3, false, 0, 0, nullptr};
    case ErrorCode::kNotFound:
      return {404, 5, false, 0, 0, nullptr};
    case ErrorCode::kAlreadyExists:
      return {409, 6, false, 400, 0, nullptr};
    case ErrorCode::kUnavailable:
      return {503, 14, true, 0, 0, nullptr};
    case ErrorCode::kResourceExhausted:
      return {503, 8, true, 503, 14, "Exceeds maximum queue size"};
    case ErrorCode::kDeadlineExceeded:
      return {504, 4, false, 503, 14, "Request timeout expired"};
    case ErrorCode::kCancelled:
      return {499, 1, false, 400, 0, nullptr};
    case ErrorCode::kUnimplemented:
      return {501, 12, false, 0, 0, nullptr};
    case ErrorCode::kInternal:
      break;
  }
  return {500, 13, false, 0, 0, nullptr};
}

// A client's own words come back in the text: not all of them where they are megabytes.
std::string Clipped(const std::string& text) {
  constexpr std::size_t kMost = 1024;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  // Not in the middle of a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

WireError ToWire(const Error& error, bool strict_triton) {
  const Row row = RowOf(error.code);
  WireError wire{.http = row.http,
                 .grpc = row.grpc,
                 .retry_after = row.retry_after,
                 .text = Clipped(error.message)};
  if (!strict_triton) return wire;
  if (row.strict_http != 0) wire.http = row.strict_http;
  if (row.strict_grpc != 0) wire.grpc = row.strict_grpc;
  if (row.strict_text != nullptr) wire.text = row.strict_text;
  return wire;
}

bool IsRefusal(const Status& status) {
  if (status) return false;
  const ErrorCode code = status.error().code;
  return code == ErrorCode::kUnavailable || code == ErrorCode::kResourceExhausted ||
         code == ErrorCode::kDeadlineExceeded;
}

}  // namespace tactus
