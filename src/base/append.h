// Text that is put together often: without a format string that is read each time.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace tactus {

inline void AppendPiece(std::string& out, std::string_view text) { out.append(text); }
inline void AppendPiece(std::string& out, std::integral auto number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// Adds texts and whole numbers (in decimal) to `out`, in order. A char is a number too.
template <class... Pieces>
void AppendAll(std::string& out, const Pieces&... pieces) {
  (AppendPiece(out, pieces), ...);
}

}  // namespace tactus
