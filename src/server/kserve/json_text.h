// Pieces of JSON text, appended to a string.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace tactus {

// Quoted and escaped. Bytes that are not UTF-8 become U+FFFD: the result is always JSON.
void AppendJsonString(std::string& out, std::string_view text);
// How many bytes from the front on are UTF-8.
std::size_t Utf8Prefix(std::string_view text);
inline bool IsUtf8(std::string_view text) { return Utf8Prefix(text) == text.size(); }

// The elements of a tensor (or of a part of it) separated by commas, without brackets. False, with
// `out` unspecified, for types and bytes that have no JSON form.
bool AppendJsonElements(std::string& out, DataType type, std::span<const std::byte> data);

}  // namespace tactus
