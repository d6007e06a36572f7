// Crops that cross a link as JPEGs must be the crops that were found, each in its place; and what a
// client sends for them must not turn into nonsense.
#include "engines/op/jpegs.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/op/chain.h"

namespace tactus::op {
namespace {

using ::testing::HasSubstr;

Chain ChainOf(std::map<std::string, std::string> parameters) {
  ModelSpec spec;
  spec.name = "m";
  spec.parameters = std::move(parameters);
  return Chain::Make(spec).value();
}

// Pictures of one colour each, which JPEG keeps to within a step or two.
Tensor Colours(const std::vector<int>& values) {
  std::vector<std::uint8_t> pixels;
  for (const int value : values)
    pixels.insert(pixels.end(), 24 * 16 * 3, static_cast<std::uint8_t>(value));
  return Own(DataType::kUint8, {static_cast<std::int64_t>(values.size()), 24, 16, 3}, pixels);
}

Tensor Encoded(const std::vector<int>& values) {
  const std::vector<Tensor> in{Colours(values)};
  return ChainOf({{"op", "encode_jpegs"}}).Run(in).value().front();
}

Expected<std::vector<Tensor>> Decoded(const Tensor& jpegs, const std::string& width = "16",
                                      std::uint32_t* cut_jpegs = nullptr) {
  const std::vector<Tensor> in{jpegs};
  return ChainOf({{"op", "decode_jpegs"},
                  {"decode_jpegs.height", "24"},
                  {"decode_jpegs.width", width},
                  {"decode_jpegs.most", "4"}})
      .Run(in, cut_jpegs);
}

// `jpegs` without the last two bytes of those at these places.
Tensor CutShort(const Tensor& jpegs, const std::vector<std::size_t>& places) {
  std::vector<std::byte> out;
  std::span<const std::byte> rest = jpegs.bytes;
  for (std::size_t i = 0; !rest.empty(); ++i) {
    std::uint32_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    const auto jpeg = rest.subspan(sizeof length, length);
    rest = rest.subspan(sizeof length + length);
    if (std::ranges::count(places, i) > 0) length -= 2;
    const auto head = std::as_bytes(std::span(&length, 1));
    out.insert(out.end(), head.begin(), head.end());
    out.insert(out.end(), jpeg.begin(), jpeg.begin() + length);
  }
  return Own(DataType::kBytes, jpegs.shape, std::move(out));
}

// As some cameras send them: whoever runs the server is to know how many.
TEST(Jpegs, ThatLackTheirEndAreDecodedAndCounted) {
  const Tensor jpegs = Encoded({40, 200, 90});
  std::uint32_t cut = 0;
  const auto whole = Decoded(jpegs, "16", &cut);
  ASSERT_TRUE(whole);
  EXPECT_EQ(cut, 0u);
  const auto back = Decoded(CutShort(jpegs, {0, 2}), "16", &cut);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(cut, 2u);
  EXPECT_TRUE(std::ranges::equal(whole->front().bytes, back->front().bytes));
}

TEST(Jpegs, ComeBackInTheirPlaces) {
  for (const std::vector<int>& values : {std::vector<int>{}, {40}, {200, 10, 90}}) {
    const Tensor jpegs = Encoded(values);
    const auto count = static_cast<std::int64_t>(values.size());
    EXPECT_EQ(jpegs.shape, (Shape{count, 1}));
    const auto back = Decoded(jpegs);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->front().shape, (Shape{count, 24, 16, 3}));
    const auto pixels = back->front().As<std::uint8_t>();
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      ASSERT_LE(std::abs(pixels[i] - values[i / (24 * 16 * 3)]), 3) << i;
    }
  }
}

TEST(Jpegs, OfAnotherSizeTooManyOrCutOffAreRefusedByNumber) {
  EXPECT_THAT(Decoded(Encoded({1, 2}), "8").error().message, HasSubstr("JPEG"));
  EXPECT_THAT(Decoded(Encoded({1, 2}), "32").error().message,
              HasSubstr("JPEG 0 has 16 x 24 pixels, not 32 x 24"));
  EXPECT_THAT(Decoded(Encoded({1, 2, 3, 4, 5})).error().message, HasSubstr("5 JPEGs"));
  Tensor cut = Encoded({1, 2});
  cut.bytes = cut.bytes.first(cut.bytes.size() - 1);
  EXPECT_THAT(Decoded(cut).error().message, HasSubstr("JPEG 1 is cut off"));
  cut.bytes = cut.bytes.first(2);
  EXPECT_THAT(Decoded(cut).error().message, HasSubstr("JPEG 0 is missing"));
}

}  // namespace
}  // namespace tactus::op
