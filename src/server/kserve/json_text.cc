#include "server/kserve/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace tactus {
namespace {

// Length of the UTF-8 sequence at the front, 0 if there is none (RFC 3629: no overlong forms, no
// surrogates, nothing beyond U+10FFFF).
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second > 0x9F) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second > 0x8F) return 0;
  return length;
}

// Stands for itself in a JSON string, and for no part of a longer sequence.
bool IsPlain(char c) { return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\'; }

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

// "-0" is a whole number to readers of JSON, which has no sign.
template <class Floating>
char* WriteFinite(char* at, char* end, Floating value) {
  constexpr std::string_view kMinusZero = "-0.0";
  if (value == 0 && std::signbit(value)) return std::ranges::copy(kMinusZero, at).out;
  return std::to_chars(at, end, value).ptr;
}

char* Write(char* at, char* end, double value) {
  if (std::isfinite(value)) return WriteFinite(at, end, value);
  const std::string_view word = std::isnan(value) ? "\"NaN\""
                                : value > 0       ? "\"Infinity\""
                                                  : "\"-Infinity\"";
  return std::copy(word.begin(), word.end(), at);
}
// The shortest text that reads back as the same float, not as the same double.
char* Write(char* at, char* end, float value) {
  if (std::isfinite(value)) return WriteFinite(at, end, value);
  return Write(at, end, static_cast<double>(value));
}
template <class Integer>
char* Write(char* at, char* end, Integer value) {
  return std::to_chars(at, end, value).ptr;
}

// Longer than any number, comma included.
constexpr std::size_t kLongest = 32;

template <class Number>
void AppendNumbers(std::string& out, std::span<const std::byte> data) {
  char text[4096];
  char* at = text;
  for (std::size_t i = 0; i + sizeof(Number) <= data.size(); i += sizeof(Number)) {
    if (at + kLongest > text + sizeof text) {
      out.append(text, at);
      at = text;
    }
    Number value;
    std::memcpy(&value, data.data() + i, sizeof value);
    if (i > 0) *at++ = ',';
    at = Write(at, text + sizeof text, value);
  }
  out.append(text, at);
}

void AppendBools(std::string& out, std::span<const std::byte> data) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (i > 0) out += ',';
    out += data[i] == std::byte{0} ? "false" : "true";
  }
}

bool AppendStrings(std::string& out, std::span<const std::byte> data) {
  bool first = true;
  while (!data.empty()) {
    std::uint32_t length;
    if (data.size() < sizeof length) return false;
    std::memcpy(&length, data.data(), sizeof length);
    data = data.subspan(sizeof length);
    if (length > data.size()) return false;
    const std::string_view text(reinterpret_cast<const char*>(data.data()), length);
    if (!IsUtf8(text)) return false;
    if (!first) out += ',';
    first = false;
    AppendJsonString(out, text);
    data = data.subspan(length);
  }
  return true;
}

}  // namespace

std::size_t Utf8Prefix(std::string_view text) {
  std::size_t good = 0;
  while (good < text.size()) {
    const std::size_t length = SequenceLength(text.substr(good));
    if (length == 0) break;
    good += length;
  }
  return good;
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto plain = std::ranges::find_if_not(text, IsPlain);
    out.append(text.begin(), plain);
    text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
    if (text.empty()) break;
    const char c = text[0];
    const std::size_t length = SequenceLength(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (length > 1) {
      out += text.substr(0, length);
    } else if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      AppendEscaped(out, c);
    } else {
      out += c;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

bool AppendJsonElements(std::string& out, DataType type, std::span<const std::byte> data) {
  switch (type) {
    case DataType::kBool:
      AppendBools(out, data);
      return true;
    case DataType::kUint8:
      AppendNumbers<std::uint8_t>(out, data);
      return true;
    case DataType::kUint16:
      AppendNumbers<std::uint16_t>(out, data);
      return true;
    case DataType::kUint32:
      AppendNumbers<std::uint32_t>(out, data);
      return true;
    case DataType::kUint64:
      AppendNumbers<std::uint64_t>(out, data);
      return true;
    case DataType::kInt8:
      AppendNumbers<std::int8_t>(out, data);
      return true;
    case DataType::kInt16:
      AppendNumbers<std::int16_t>(out, data);
      return true;
    case DataType::kInt32:
      AppendNumbers<std::int32_t>(out, data);
      return true;
    case DataType::kInt64:
      AppendNumbers<std::int64_t>(out, data);
      return true;
    case DataType::kFp32:
      AppendNumbers<float>(out, data);
      return true;
    case DataType::kFp64:
      AppendNumbers<double>(out, data);
      return true;
    case DataType::kBytes:
      return AppendStrings(out, data);
    case DataType::kFp16:
    case DataType::kBf16:
      return false;
  }
  return false;
}

}  // namespace tactus
