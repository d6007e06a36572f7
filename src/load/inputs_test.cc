// What is sent fits what the model takes, and images go only where they belong.
#include "load/inputs.h"

#include <array>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two images of 1 x 1 x 2 pixels.
ImageSet TwoImages() {
  const std::array<float, 4> pixels{1, 2, 3, 4};
  const auto bytes = std::as_bytes(std::span(pixels));
  ImageSet images;
  images.samples = 2;
  images.image = {1, 1, 2};
  images.fp32 = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  images.labels = std::make_shared<std::vector<std::uint8_t>>(std::vector<std::uint8_t>{7, 9});
  return images;
}

TEST(PrepareInputs, AModelThatTakesTheImagesGetsThemWithTheirLabels) {
  const ImageSet images = TwoImages();
  const std::array<TensorSpec, 1> specs{{{"x", DataType::kFp32, {-1, 1, 1, 2}}}};
  const auto inputs = PrepareInputs("m", specs, &images, {}, 1);
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(inputs->samples, 2U);
  EXPECT_EQ(inputs->labels, images.labels);
  ASSERT_EQ(inputs->tensors.size(), 1U);
  EXPECT_THAT(inputs->tensors[0].shape, ElementsAre(1, 1, 1, 2));
  std::array<float, 2> second{};
  std::memcpy(second.data(), inputs->tensors[0].Sample(1).data(), sizeof second);
  EXPECT_THAT(second, ElementsAre(3, 4));
}

TEST(PrepareInputs, OtherModelsGetRandomValuesWithoutLabels) {
  const ImageSet images = TwoImages();
  const std::array<std::array<TensorSpec, 1>, 3> others{{
      {{{"x", DataType::kFp32, {-1, 1, 2, 1}}}},
      {{{"x", DataType::kFp64, {-1, 1, 1, 2}}}},
      {{{"x", DataType::kFp32, {2}}}},
  }};
  for (const auto& specs : others) {
    SCOPED_TRACE(ToString(specs[0].dims));
    const auto inputs = PrepareInputs("m", specs, &images, {}, 1);
    ASSERT_TRUE(inputs) << inputs.error().message;
    EXPECT_EQ(inputs->labels, nullptr);
    EXPECT_EQ(inputs->tensors[0].sample_bytes, 2 * ElementSize(specs[0].type));
  }
}

TEST(PrepareInputs, TheSameSeedSendsTheSameBytes) {
  const std::array<TensorSpec, 2> specs{
      {{"a", DataType::kFp32, {-1, 5}}, {"b", DataType::kBytes, {-1, 2}}}};
  const auto one = PrepareInputs("m", specs, nullptr, {}, 1);
  const auto again = PrepareInputs("m", specs, nullptr, {}, 1);
  const auto other = PrepareInputs("m", specs, nullptr, {}, 2);
  ASSERT_TRUE(one && again && other);
  EXPECT_EQ(*one->tensors[0].data, *again->tensors[0].data);
  EXPECT_EQ(*one->tensors[1].data, *again->tensors[1].data);
  EXPECT_NE(*one->tensors[0].data, *other->tensors[0].data);
  // A string of four characters after its length.
  EXPECT_EQ(one->tensors[1].sample_bytes, 2U * (4 + 4));
  EXPECT_EQ(one->tensors[1].Sample(3)[0], std::byte{4});
}

TEST(PrepareInputs, DynamicDimensionsMustBeSaid) {
  const std::array<TensorSpec, 1> specs{{{"x", DataType::kFp32, {-1, 3, -1, -1}}}};
  const auto unsaid = PrepareInputs("ocr", specs, nullptr, {}, 1);
  ASSERT_FALSE(unsaid);
  EXPECT_THAT(unsaid.error().message, HasSubstr("--shape x="));
  const auto said = PrepareInputs("ocr", specs, nullptr, {{"x", {3, 8, 16}}}, 1);
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_THAT(said->tensors[0].shape, ElementsAre(1, 3, 8, 16));
  const auto too_long = PrepareInputs("ocr", specs, nullptr, {{"x", {1, 1, 3, 8, 16}}}, 1);
  EXPECT_FALSE(too_long);
}

}  // namespace
}  // namespace tactus
