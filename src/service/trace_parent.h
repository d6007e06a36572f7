// Whose span a call belongs to: the header field `traceparent`, over HTTP and as gRPC metadata.
// https://www.w3.org/TR/trace-context/#traceparent-header
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tactus {

inline constexpr std::string_view kTraceParentHeader = "traceparent";

struct TraceParent {
  std::array<std::uint8_t, 16> trace{};
  std::array<std::uint8_t, 8> span{};
  bool sampled = false;  // the caller records its own span
};

// Nothing for what is no such field: as the standard asks, it counts as absent then.
std::optional<TraceParent> ReadTraceParent(std::string_view text);

}  // namespace tactus
