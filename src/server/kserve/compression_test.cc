#include "server/kserve/compression.h"

#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string Packed(Coding coding, std::string_view text) {
  // In two pieces, as a JSON head and a tensor are.
  const std::span<const std::byte> pieces[] = {Bytes(text.substr(0, 3)), Bytes(text.substr(3))};
  return Deflate(coding, pieces);
}
std::string Text(const InflatedBody& body) {
  return {reinterpret_cast<const char*>(body.data.get()), body.size};
}

constexpr Coding kCodings[] = {Coding::kGzip, Coding::kDeflate};

TEST(Compression, ThereAndBack) {
  for (const Coding coding : kCodings) {
    for (const std::size_t size : {3U, 1000U, 300'000U}) {
      std::string text(size, '\0');
      for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i >> 3);
      const auto body = Inflate(coding, Bytes(Packed(coding, text)), size);
      ASSERT_TRUE(body.has_value()) << Name(coding) << " " << size;
      EXPECT_EQ(Text(*body), text);
    }
  }
}

TEST(Compression, TheLimitAppliesToTheInflatedSize) {
  for (const Coding coding : kCodings) {
    const std::string packed = Packed(coding, std::string(1'000'000, 'a'));
    EXPECT_TRUE(Inflate(coding, Bytes(packed), 1'000'000).has_value());
    EXPECT_EQ(Inflate(coding, Bytes(packed), 999'999).error().code, ErrorCode::kResourceExhausted);
  }
}

// As `cat a.gz b.gz` and parallel packers write it.
TEST(Compression, GzipMayHaveSeveralMembers) {
  const std::string two = Packed(Coding::kGzip, "one and ") + Packed(Coding::kGzip, "two");
  const auto body = Inflate(Coding::kGzip, Bytes(two), 100);
  ASSERT_TRUE(body.has_value());
  EXPECT_EQ(Text(*body), "one and two");
  EXPECT_FALSE(Inflate(Coding::kGzip, Bytes(two.substr(0, two.size() - 1)), 100).has_value());
  EXPECT_FALSE(Inflate(Coding::kGzip, Bytes(two), 10).has_value()) << "the limit is of all";
  const std::string deflated = Packed(Coding::kDeflate, "one") + Packed(Coding::kDeflate, "two");
  EXPECT_FALSE(Inflate(Coding::kDeflate, Bytes(deflated), 100).has_value());
}

TEST(Compression, DamageIsNoticed) {
  for (const Coding coding : kCodings) {
    const std::string packed = Packed(coding, std::string(5000, 'a') + "b");
    std::string changed = packed;
    changed[changed.size() - 3] ^= 1;  // in the checksum
    for (const std::string& bad : {packed.substr(0, packed.size() - 1), packed + "x", changed,
                                   std::string("plain text"), std::string()}) {
      EXPECT_EQ(Inflate(coding, Bytes(bad), 100'000).error().code, ErrorCode::kInvalidArgument)
          << Name(coding) << " " << bad.size();
    }
  }
}

TEST(Compression, Headers) {
  EXPECT_EQ(ParseContentEncoding(""), Coding::kIdentity);
  EXPECT_EQ(ParseContentEncoding(" GZip "), Coding::kGzip);
  EXPECT_EQ(ParseContentEncoding("br").error().code, ErrorCode::kUnimplemented);
  EXPECT_EQ(ParseContentEncoding("gzip, gzip").error().code, ErrorCode::kUnimplemented);
  EXPECT_EQ(ChooseCoding(""), Coding::kIdentity);
  EXPECT_EQ(ChooseCoding("br, gzip;q=0"), Coding::kIdentity);
  EXPECT_EQ(ChooseCoding("gzip;q=0.5, deflate"), Coding::kDeflate);
  EXPECT_EQ(ChooseCoding("gzip, deflate, br"), Coding::kGzip);
}

}  // namespace
}  // namespace tactus
