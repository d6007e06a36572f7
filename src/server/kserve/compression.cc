#include "server/kserve/compression.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "base/check.h"
#include "server/kserve/json_codec.h"

namespace tactus {
namespace {

constexpr int kWindowBits = 15;
constexpr int kGzipFormat = 16;  // added to the window bits: zlib's way to say gzip
// zlib counts in 32 bits: larger data goes through in slices.
constexpr std::size_t kSlice = std::size_t{1} << 30;
constexpr std::size_t kFirstGuess = 64 << 10;

int FormatOf(Coding coding) {
  return coding == Coding::kGzip ? kWindowBits + kGzipFormat : kWindowBits;
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool SameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x - 'A' + 'a' : x) == y; });
}

// "gzip;q=0.5": the coding and how much it is wanted; malformed weights count as 1.
std::pair<std::string_view, double> ReadWeighted(std::string_view item) {
  const std::size_t semicolon = item.find(';');
  const std::string_view name = Trimmed(item.substr(0, semicolon));
  if (semicolon == item.npos) return {name, 1};
  std::string_view weight = Trimmed(item.substr(semicolon + 1));
  if (!weight.starts_with("q=")) return {name, 1};
  weight.remove_prefix(2);
  double q = 1;
  std::from_chars(weight.data(), weight.data() + weight.size(), q);
  return {name, q};
}

// Output space that doubles up to the limit.
class Growing {
 public:
  Growing(std::size_t first, std::size_t limit) : limit_(limit) { Reserve(std::min(first, limit)); }

  std::span<std::byte> Space() const { return {data_.get() + size_, capacity_ - size_}; }
  void Filled(std::size_t n) { size_ += n; }
  std::size_t size() const { return size_; }
  // False at the limit.
  bool Grow() {
    if (capacity_ == limit_) return false;
    Reserve(capacity_ > limit_ / 2 ? limit_ : capacity_ * 2);
    return true;
  }
  InflatedBody Take() && { return {std::move(data_), size_}; }

 private:
  void Reserve(std::size_t capacity) {
    auto larger = std::make_shared_for_overwrite<std::byte[]>(capacity + kBodyPadding);
    std::copy_n(data_.get(), size_, larger.get());
    data_ = std::move(larger);
    capacity_ = capacity;
  }

  std::size_t limit_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  std::shared_ptr<std::byte[]> data_;
};

struct InflateStream {
  explicit InflateStream(Coding coding) {
    CHECK(inflateInit2(&z, FormatOf(coding)) == Z_OK, "zlib has no memory for its window");
  }
  ~InflateStream() { inflateEnd(&z); }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;
  z_stream z{};
};

struct DeflateStream {
  explicit DeflateStream(Coding coding) {
    // Level 1: an answer is awaited, and tensors compress little at any level.
    CHECK(deflateInit2(&z, 1, Z_DEFLATED, FormatOf(coding), 8, Z_DEFAULT_STRATEGY) == Z_OK,
          "zlib has no memory for its window");
  }
  ~DeflateStream() { deflateEnd(&z); }
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;
  z_stream z{};
};

}  // namespace

std::string_view Name(Coding coding) {
  switch (coding) {
    case Coding::kGzip:
      return "gzip";
    case Coding::kDeflate:
      return "deflate";
    case Coding::kIdentity:
      break;
  }
  return "identity";
}

Expected<Coding> ParseContentEncoding(std::string_view header) {
  header = Trimmed(header);
  if (header.empty() || SameWord(header, "identity")) return Coding::kIdentity;
  if (SameWord(header, "gzip") || SameWord(header, "x-gzip")) return Coding::kGzip;
  if (SameWord(header, "deflate")) return Coding::kDeflate;
  return Fail(ErrorCode::kUnimplemented,
              fmt::format("Content-Encoding '{}' is not supported: use gzip, deflate or none",
                          header.substr(0, 64)));
}

Coding ChooseCoding(std::string_view accept_encoding) {
  Coding best = Coding::kIdentity;
  double weight = 0;
  while (!accept_encoding.empty()) {
    const std::size_t comma = accept_encoding.find(',');
    const auto [name, q] = ReadWeighted(accept_encoding.substr(0, comma));
    const bool gzip = SameWord(name, "gzip");
    if ((gzip || SameWord(name, "deflate")) && q > weight) {
      best = gzip ? Coding::kGzip : Coding::kDeflate;
      weight = q;
    }
    if (comma == accept_encoding.npos) break;
    accept_encoding.remove_prefix(comma + 1);
  }
  return best;
}

Expected<InflatedBody> Inflate(Coding coding, std::span<const std::byte> body, std::size_t limit) {
  InflateStream stream(coding);
  z_stream& z = stream.z;
  const auto damaged = [&] {
    return InvalidArgument(fmt::format("the body is not valid {} data", Name(coding)));
  };
  Growing out(std::max(kFirstGuess, body.size() * 2), limit);
  for (;;) {
    if (z.avail_in == 0 && !body.empty()) {
      const std::size_t slice = std::min(body.size(), kSlice);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(body.data()));
      z.avail_in = static_cast<uInt>(slice);
      body = body.subspan(slice);
    }
    const std::span<std::byte> space = out.Space();
    const std::size_t room = std::min(space.size(), kSlice);
    z.next_out = reinterpret_cast<Bytef*>(space.data());
    z.avail_out = static_cast<uInt>(room);
    const int state = inflate(&z, Z_NO_FLUSH);
    out.Filled(room - z.avail_out);
    if (state == Z_STREAM_END) {
      if (z.avail_in == 0 && body.empty()) return std::move(out).Take();
      // gzip may have several members, one after the other (RFC 1952, 2.2).
      if (coding != Coding::kGzip || inflateReset(&z) != Z_OK) return damaged();
      continue;
    }
    if (state != Z_OK && state != Z_BUF_ERROR) return damaged();
    if (z.avail_out > 0 && z.avail_in == 0 && body.empty()) return damaged();  // cut off
    if (z.avail_out == 0 && out.Space().empty() && !out.Grow()) {
      return Fail(ErrorCode::kResourceExhausted,
                  fmt::format("the body inflates to more than the limit of {} bytes", limit));
    }
  }
}

std::string Deflate(Coding coding, std::span<const std::span<const std::byte>> pieces) {
  DeflateStream stream(coding);
  z_stream& z = stream.z;
  std::string out;
  char buffer[16384];
  const auto drain = [&](int flush) {
    do {
      z.next_out = reinterpret_cast<Bytef*>(buffer);
      z.avail_out = sizeof buffer;
      deflate(&z, flush);
      out.append(buffer, sizeof buffer - z.avail_out);
    } while (z.avail_out == 0);
  };
  for (std::span<const std::byte> piece : pieces) {
    while (!piece.empty()) {
      const std::size_t slice = std::min(piece.size(), kSlice);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
      z.avail_in = static_cast<uInt>(slice);
      piece = piece.subspan(slice);
      drain(Z_NO_FLUSH);
    }
  }
  drain(Z_FINISH);
  return out;
}

}  // namespace tactus
