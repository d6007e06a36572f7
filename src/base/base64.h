// Base64 (RFC 4648, section 4): bytes in JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tactus {

std::string ToBase64(std::string_view bytes);
// Nothing where the text is no Base64, padding included.
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace tactus
