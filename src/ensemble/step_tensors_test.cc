// Rows out of answers and answers into rows: a wrong offset is another picture's text.
#include "ensemble/step_tensors.h"

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using testing::HasSubstr;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string TextOf(const OutputTensor& tensor) {
  std::string text;
  for (const auto& part : tensor.parts) {
    text.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return text;
}
OutputTensor Letters(Shape shape, std::vector<std::string_view> parts) {
  OutputTensor tensor{"letters", DataType::kUint8, std::move(shape), {}};
  for (const std::string_view part : parts) tensor.parts.push_back(Bytes(part));
  return tensor;
}
// A BYTES element.
std::string Element(std::string_view text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes.append(text);
}

TEST(StepTensors, TakesRowsAlsoAcrossParts) {
  // Parts that are no neighbours, one of which ends within a row.
  const OutputTensor whole = Letters({3, 2}, {"abc", "-", "def"});
  const OutputTensor holed = Letters({3, 2}, {"abc", "def"});
  EXPECT_EQ(TextOf(*TakeRow(holed, 0, false, true)), "ab");
  EXPECT_EQ(TakeRow(holed, 0, false, true)->shape, (Shape{1, 2}));
  EXPECT_EQ(TextOf(*TakeRow(holed, 1, false, false)), "cd");
  EXPECT_EQ(TakeRow(holed, 1, false, false)->shape, (Shape{2}));
  EXPECT_EQ(TextOf(*TakeRow(holed, 2, false, true)), "ef");
  EXPECT_FALSE(TakeRow(holed, 3, false, true));
  EXPECT_EQ(TextOf(*TakeRow(Letters({1, 3, 2}, {"abcdef"}), 1, true, true)), "cd");
  EXPECT_EQ(CountRowsOf({&whole, 1}, false).value_or(-1), 3);
}

TEST(StepTensors, TakesRowsOfStrings) {
  const std::string bytes = Element("one") + Element("") + Element("three") + Element("4");
  OutputTensor words{"words", DataType::kBytes, {2, 2}, {Bytes(bytes)}};
  EXPECT_EQ(TextOf(*TakeRow(words, 0, false, true)), Element("one") + Element(""));
  EXPECT_EQ(TextOf(*TakeRow(words, 1, false, true)), Element("three") + Element("4"));
  words.parts = {Bytes(bytes).first(9)};
  EXPECT_FALSE(TakeRow(words, 1, false, true));
}

TEST(StepTensors, PutsRowsTogetherWithoutCopies) {
  const std::string_view text = "abcdef";
  const OutputTensor a = Letters({1, 2}, {text.substr(0, 2)});
  const OutputTensor b = Letters({1, 2}, {text.substr(2, 2)});
  const OutputTensor c = Letters({1, 2}, {"xy"});
  const TensorSpec made{"letters", DataType::kUint8, {-1, 2}};
  const OutputTensor* neighbours[] = {&a, &b};
  const auto joined = PutTogether(neighbours, true, made);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->shape, (Shape{2, 2}));
  EXPECT_EQ(joined->parts.size(), 1u);
  std::vector<std::shared_ptr<const void>> owners;
  EXPECT_EQ(InOnePiece(*joined, owners).data(), Bytes(text).data());
  EXPECT_TRUE(owners.empty());

  const OutputTensor* apart[] = {&a, &c};
  const auto gathered = PutTogether(apart, true, made);
  EXPECT_EQ(gathered->parts.size(), 2u);
  const auto piece = InOnePiece(*gathered, owners);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(piece.data()), piece.size()), "abxy");
  EXPECT_EQ(owners.size(), 1u);  // of the copy

  const OutputTensor wide = Letters({1, 3}, {"abc"});
  const OutputTensor* unlike[] = {&a, &wide};
  EXPECT_THAT(PutTogether(unlike, true, made).error().message, HasSubstr("differ in shape"));
  // As of a model whose batch was disproved.
  for (const Shape& shape : {Shape{2, 2}, Shape{0, 2}, Shape{}}) {
    const OutputTensor other{"y", DataType::kFp32, shape, {}};
    const std::vector<const OutputTensor*> one{&other};
    EXPECT_THAT(PutTogether(one, true, made).error().message, HasSubstr("for one row"));
  }
  EXPECT_EQ(PutTogether({}, true, made)->shape, (Shape{0, 2}));
}

TEST(StepTensors, RefusesAnswersWhoseRowsDiffer) {
  const OutputTensor answer[] = {Letters({3, 2}, {"abcdef"}), Letters({2, 2}, {"abcd"})};
  EXPECT_THAT(CountRowsOf(answer, false).error().message, HasSubstr("3 rows and 2 rows"));
  EXPECT_THAT(CountRowsOf({answer, 1}, true).error().message, HasSubstr("takes one row at a time"));
}

}  // namespace
}  // namespace tactus
