// What is sent fits what the model takes, and images go only where they belong.
#include "load/inputs.h"

#include <array>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"

namespace tactus {
namespace {

using ::testing::AllOf;
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
  const auto inputs = PrepareInputs("m", specs, {.images = &images}, 1);
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
    const auto inputs = PrepareInputs("m", specs, {.images = &images}, 1);
    ASSERT_TRUE(inputs) << inputs.error().message;
    EXPECT_EQ(inputs->labels, nullptr);
    EXPECT_EQ(inputs->tensors[0].sample_bytes, 2 * ElementSize(specs[0].type));
  }
}

TEST(PrepareInputs, TheSameSeedSendsTheSameBytes) {
  const std::array<TensorSpec, 2> specs{
      {{"a", DataType::kFp32, {-1, 5}}, {"b", DataType::kBytes, {-1, 2}}}};
  const auto one = PrepareInputs("m", specs, {}, 1);
  const auto again = PrepareInputs("m", specs, {}, 1);
  const auto other = PrepareInputs("m", specs, {}, 2);
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
  const auto unsaid = PrepareInputs("ocr", specs, {}, 1);
  ASSERT_FALSE(unsaid);
  EXPECT_THAT(unsaid.error().message, HasSubstr("--shape x="));
  const auto said = PrepareInputs("ocr", specs, {.shapes = {{"x", {3, 8, 16}}}}, 1);
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_THAT(said->tensors[0].shape, ElementsAre(1, 3, 8, 16));
  const auto too_long = PrepareInputs("ocr", specs, {.shapes = {{"x", {1, 1, 3, 8, 16}}}}, 1);
  EXPECT_FALSE(too_long);
  const InputChoice served{.sizes = {{"x", {3, 64, 64}}}};
  const auto named = PrepareInputs("ocr", specs, served, 1);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_THAT(named->tensors[0].shape, ElementsAre(1, 3, 64, 64));
}

// The last dynamic dimension is as long as the file; the batch is one.
TEST(PrepareInputs, AFileIsTheTensorOfEveryRequest) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "picture";
  ASSERT_TRUE(WriteWhole("JPEG!?", path, "picture"));
  const InputChoice choice{.files = {{"jpeg", path}}};
  const std::array<std::array<TensorSpec, 1>, 4> takers{{
      {{{"jpeg", DataType::kUint8, {-1}}}},
      {{{"jpeg", DataType::kUint8, {-1, -1}}}},
      {{{"jpeg", DataType::kUint16, {-1, 3}}}},
      {{{"jpeg", DataType::kBytes, {-1, 1}}}},
  }};
  const std::array<Shape, 4> shapes{Shape{6}, {1, 6}, {1, 3}, {1, 1}};
  for (std::size_t i = 0; i < takers.size(); ++i) {
    SCOPED_TRACE(i);
    const auto inputs = PrepareInputs("m", takers[i], choice, 1);
    ASSERT_TRUE(inputs) << inputs.error().message;
    EXPECT_EQ(inputs->samples, 1U);
    EXPECT_EQ(inputs->tensors[0].shape, shapes[i]);
    EXPECT_EQ(inputs->tensors[0].sample_bytes, i == 3 ? 4U + 6 : 6U);
    EXPECT_TRUE(CheckUsed(choice, {&*inputs, 1}));
  }
}

TEST(PrepareInputs, AFileThatDoesNotFitIsNamed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteWhole("1234567", folder / "seven", "picture"));
  const InputChoice choice{.files = {{"x", folder / "seven"}}};
  const std::array<TensorSpec, 1> floats{{{"x", DataType::kFp32, {-1}}}};
  const auto odd = PrepareInputs("m", floats, choice, 1);
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().message, AllOf(HasSubstr("seven: 7 bytes"), HasSubstr("--shape")));
  const std::array<TensorSpec, 1> fixed{{{"x", DataType::kUint8, {2, 4}}}};
  EXPECT_FALSE(PrepareInputs("m", fixed, choice, 1));
  const InputChoice absent{.files = {{"x", "/nowhere/at/all"}}};
  const auto unread = PrepareInputs("m", floats, absent, 1);
  ASSERT_FALSE(unread);
  EXPECT_THAT(unread.error().message, HasSubstr("/nowhere/at/all"));
  const std::array<TensorSpec, 1> others{{{"y", DataType::kFp32, {4}}}};
  const auto unused = PrepareInputs("m", others, choice, 1);
  ASSERT_TRUE(unused);
  const Status used = CheckUsed(choice, {&*unused, 1});
  ASSERT_FALSE(used);
  EXPECT_THAT(used.error().message, HasSubstr("input 'x'"));
  const Status unsized = CheckUsed({.shapes = {{"x", {4}}}}, {&*unused, 1});
  ASSERT_FALSE(unsized);
  EXPECT_THAT(unsized.error().message, HasSubstr("--shape x="));
}

TEST(PrepareInputs, AShapeThatAnInputDoesNotTakeIsRefused) {
  const std::array<TensorSpec, 1> specs{{{"x", DataType::kFp32, {-1, 3, -1, -1}}}};
  const auto refused = PrepareInputs("ocr", specs, {.shapes = {{"x", {4, 8, 16}}}}, 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("dimension 1 of input 'x' the size 4"), HasSubstr("[-1,3,-1,-1]")));
}

}  // namespace
}  // namespace tactus
