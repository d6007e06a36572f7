// What clients can send must not end the process, take memory without bound or turn into nonsense:
// broken pictures, absurd sizes, no detection and ten thousand.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "engines/op/chain.h"
#include "engines/op/crop.h"
#include "engines/op/db_boxes.h"
#include "engines/op/decode_jpeg.h"
#include "engines/op/nanodet.h"
#include "engines/op/samples.h"
#include "engines/op/text_crop.h"
#include "engines/op/top_k.h"

namespace tactus::op {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMostPixels = 1 << 20;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string WhyNoPicture(std::span<const std::byte> jpeg, std::int64_t most = kMostPixels) {
  const auto image = DecodeJpeg(jpeg, most);
  return image ? "it is one" : image.error().message;
}

TEST(BadJpeg, IsAnErrorThatSaysWhy) {
  const std::vector<std::byte> jpeg = SampleJpeg(64, 96);
  EXPECT_EQ(WhyNoPicture(jpeg), "it is one");
  EXPECT_THAT(WhyNoPicture({}), HasSubstr("empty"));
  const std::string text = "GIF89a, which is no JPEG";
  EXPECT_THAT(WhyNoPicture(std::as_bytes(std::span(text))), HasSubstr("cannot be decoded"));
  EXPECT_THAT(WhyNoPicture(jpeg, 64 * 96 - 1), HasSubstr("96 x 64 pixels"));
}

TEST(BadJpeg, ThatIsCutOffAnywhereIsRefused) {
  const std::vector<std::byte> jpeg = SampleJpeg(64, 96);
  // Its last two bytes say that it ends, which is no part of the picture.
  for (std::size_t kept = 0; kept + 2 < jpeg.size(); kept += 7) {
    EXPECT_THAT(WhyNoPicture(std::span(jpeg).first(kept)), HasSubstr("decoded")) << kept;
  }
}

// As some cameras send them.
TEST(BadJpeg, ThatLacksOnlyItsEndIsThePicture) {
  const std::vector<std::byte> jpeg = SampleJpeg(64, 96);
  const auto whole = DecodeJpeg(jpeg, kMostPixels);
  const auto without = DecodeJpeg(std::span(jpeg).first(jpeg.size() - 2), kMostPixels);
  ASSERT_TRUE(whole && without) << without.error().message;
  EXPECT_EQ(whole->image.pixels, without->image.pixels);
  EXPECT_FALSE(whole->cut);
  EXPECT_TRUE(without->cut);
}

TEST(BadJpeg, ThatClaimsToBeHugeTakesNoMemory) {
  std::vector<std::byte> jpeg = SampleJpeg(64, 96);
  for (std::size_t i = 0; i + 8 < jpeg.size(); ++i) {
    if (jpeg[i] != std::byte{0xff} || jpeg[i + 1] != std::byte{0xc0}) continue;
    for (std::size_t k = 5; k < 9; ++k) jpeg[i + k] = std::byte{0x7f};
    break;
  }
  EXPECT_THAT(WhyNoPicture(jpeg), HasSubstr("32639 x 32639 pixels"));
}

TEST(BadJpeg, WithAnyByteBrokenIsAnAnswer) {
  const std::vector<std::byte> good = SampleJpeg(64, 96);
  Rng rng = Rng::Stream(1, "broken jpegs");
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> jpeg = good;
    jpeg[rng.Below(jpeg.size())] ^= static_cast<std::byte>(1 + rng.Below(255));
    const auto decoded = DecodeJpeg(jpeg, kMostPixels);
    if (decoded) {
      EXPECT_LE(std::int64_t{decoded->image.height} * decoded->image.width, kMostPixels);
    }
  }
}

std::vector<float> Logits(int channels, int side, float value) {
  return std::vector<float>(static_cast<std::size_t>(channels * side * side), value);
}

TEST(Detections, NoneIsNoneAllTheWay) {
  const std::vector<float> logits = Logits(124, 13, -9);
  const NanodetMap map{logits, 124, 13, 13, 32};
  const auto found = DecodeNanodet({&map, 1}, {}, {});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->boxes.empty());
  const Image image{2, 2, std::vector<std::uint8_t>(12)};
  EXPECT_TRUE(Crop(image.view(), found->boxes, {.height = 8, .width = 8}).frames.empty());
  EXPECT_TRUE(CropText(image.view(), {}, {}).widths.empty());
}

TEST(Detections, TenThousandAreTheBestHundred) {
  // Every cell is an object of its own: its sides are a bin of the narrowest from its centre.
  std::vector<float> logits = Logits(124, 100, 0);
  const std::size_t cells = 100 * 100;
  for (std::size_t i = 0; i < cells; ++i) logits[i] = static_cast<float>(i) * 1e-4f;
  for (std::size_t side = 0; side < 4; ++side) {
    for (std::size_t i = 0; i < cells; ++i) logits[(80 + side * 11) * cells + i] = 50;
  }
  for (std::size_t k = 1; k < 80; ++k) {
    for (std::size_t i = 0; i < cells; ++i) logits[k * cells + i] = -9;
  }
  const NanodetMap map{logits, 124, 100, 100, 8};
  const auto found = DecodeNanodet({&map, 1}, {}, {.most = 100});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->scores.size(), 100u);
  EXPECT_NEAR(found->scores[0], 1 / (1 + std::exp(-0.9999)), 1e-6);
  EXPECT_TRUE(std::ranges::is_sorted(found->scores, std::ranges::greater()));
  const Image image{600, 800, std::vector<std::uint8_t>(600 * 800 * 3)};
  const std::vector<float> boxes(10'000 * 4, 1.0f);
  EXPECT_EQ(Crop(image.view(), boxes, {.height = 8, .width = 8, .most = 64}).frames.size(), 64u);
}

TEST(Detections, NumbersThatAreNoneEndInThePicture) {
  const std::vector<float> logits = Logits(124, 4, kNan);
  const NanodetMap map{logits, 124, 4, 4, 8};
  EXPECT_TRUE(DecodeNanodet({&map, 1}, {}, {})->boxes.empty());
  const std::vector<float> endless = Logits(124, 4, kInfinity);
  const NanodetMap infinite{endless, 124, 4, 4, 8};
  const auto found = DecodeNanodet({&infinite, 1}, {}, {});
  EXPECT_TRUE(std::ranges::all_of(found->boxes, [](float edge) { return std::isfinite(edge); }));
  const Image image{9, 7, std::vector<std::uint8_t>(9 * 7 * 3, 5)};
  const std::vector<float> boxes{kNan,      kNan, kNan,  kNan,  -kInfinity, 0,
                                 kInfinity, 3,    1e30f, 1e30f, -1e30f,     -1e30f};
  const Crops crops = Crop(image.view(), boxes, {.height = 4, .width = 4, .margin = 1});
  ASSERT_EQ(crops.frames.size(), 3u);
  EXPECT_TRUE(std::ranges::all_of(crops.pixels, [](std::uint8_t p) { return p == 5; }));
  const std::vector<float> quads{kNan, 0, kInfinity, 0, 1e30f, 9, -kInfinity, kNan};
  EXPECT_EQ(CropText(image.view(), quads, {.height = 4, .width = 6}).widths.size(), 1u);
  EXPECT_EQ(TopK(std::vector{kNan, 1.0f, kNan, 2.0f}, 4, 3).classes,
            (std::vector<std::int32_t>{3, 1, 0}));
}

TEST(TextBoxes, OfAMapFullOfSpecksAreBounded) {
  std::vector<float> map(300 * 300, 0);
  for (std::size_t i = 0; i < map.size(); i += 2) map[i] = i / 300 % 2 == 0 ? 0.9f : 0.0f;
  EXPECT_TRUE(FindTextBoxes(map, 300, 300, {}, {}).scores.empty());
  const std::vector<float> all(300 * 300, 1.0f);
  EXPECT_EQ(FindTextBoxes(all, 300, 300, {}, {}).scores.size(), 1u);
  const std::vector<float> none(300 * 300, kNan);
  EXPECT_TRUE(FindTextBoxes(none, 300, 300, {}, {}).scores.empty());
}

// Sizes of a request are checked against the model's, whose open ones may be anything.
TEST(Sizes, ThatAreAbsurdAreToldBeforeAnythingRuns) {
  const auto why = [](std::map<std::string, std::string> parameters, std::vector<Tensor> inputs) {
    ModelSpec spec;
    spec.parameters = std::move(parameters);
    const auto chain = Chain::Make(spec);
    EXPECT_TRUE(chain) << chain.error().message;
    const auto results = chain->Run(inputs);
    return results ? "it ran" : results.error().message;
  };
  const Tensor nothing{DataType::kUint8, {0, std::int64_t{1} << 40, 3}, {}, nullptr};
  EXPECT_THAT(
      why({{"op", "resize"}, {"resize.height", "4"}, {"resize.width", "4"}}, {nothing}),
      HasSubstr("operator 'resize': 'pixels' is UINT8 [0,1099511627776,3]: a size is absurd"));
  const Tensor steps{DataType::kFp32, {1 << 30, 0}, {}, nullptr};
  EXPECT_THAT(why({{"op", "top_k"}}, {steps}), HasSubstr("only the first dimension may be 0"));
  EXPECT_THAT(why({{"op", "top_k"}}, {SampleNumbers({1, 4}, 0)}), HasSubstr("the best 5 of 4"));
  EXPECT_THAT(why({{"op", "nanodet"}, {"nanodet.strides", "8"}},
                  {SampleNumbers({1, 81, 2, 2}, 0), SampleFrame()}),
              HasSubstr("a map has 81 channels"));
  EXPECT_THAT(why({{"op", "pose"}}, {SampleNumbers({2, 3, 3, 17}, 0),
                                     SampleNumbers({2, 3, 3, 34}, 0), SampleFrames(1)}),
              HasSubstr("do not belong together"));
}

}  // namespace
}  // namespace tactus::op
