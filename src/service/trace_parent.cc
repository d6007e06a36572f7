#include "service/trace_parent.h"

#include <algorithm>
#include <span>

namespace tactus {
namespace {

// -1 for what is no digit: the standard has small letters only.
int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ReadHex(std::string_view text, std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = DigitOf(text[2 * i]);
    const int low = DigitOf(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(16 * high + low);
  }
  return true;
}

bool AllZero(std::span<const std::uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

// VERSION-TRACE-SPAN-FLAGS in hex; later versions may add fields.
std::optional<TraceParent> ReadTraceParent(std::string_view text) {
  constexpr std::size_t kTrace = 3;
  constexpr std::size_t kSpan = 36;
  constexpr std::size_t kFlags = 53;
  constexpr std::size_t kSize = 55;
  if (text.size() < kSize || text[2] != '-' || text[kSpan - 1] != '-' || text[kFlags - 1] != '-') {
    return std::nullopt;
  }
  TraceParent parent;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  if (!ReadHex(text, version) || !ReadHex(text.substr(kTrace), parent.trace) ||
      !ReadHex(text.substr(kSpan), parent.span) || !ReadHex(text.substr(kFlags), flags)) {
    return std::nullopt;
  }
  const bool whole = text.size() == kSize || (version[0] > 0 && text[kSize] == '-');
  if (version[0] == 0xff || !whole || AllZero(parent.trace) || AllZero(parent.span)) {
    return std::nullopt;
  }
  parent.sampled = (flags[0] & 1) != 0;
  return parent;
}

}  // namespace tactus
