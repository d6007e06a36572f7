// gzip and deflate (zlib) bodies.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace tactus {

enum class Coding { kIdentity, kGzip, kDeflate };

// A Content-Encoding header. Unimplemented for codings that the server does not know, and for
// several at once.
Expected<Coding> ParseContentEncoding(std::string_view header);
// The coding that an Accept-Encoding header likes best among those known; kIdentity without one.
Coding ChooseCoding(std::string_view accept_encoding);
std::string_view Name(Coding coding);

struct InflatedBody {
  std::shared_ptr<std::byte[]> data;  // kBodyPadding bytes more are readable behind `size`
  std::size_t size = 0;
};
// kResourceExhausted as soon as the result would exceed `limit`, however small the input is;
// InvalidArgument for data that is damaged, cut off or followed by something else.
Expected<InflatedBody> Inflate(Coding coding, std::span<const std::byte> body, std::size_t limit);

// One body out of several pieces.
std::string Deflate(Coding coding, std::span<const std::span<const std::byte>> pieces);

}  // namespace tactus
