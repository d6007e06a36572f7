#include "server/kserve/classification.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A reply with one output `y` of these values, in two parts as a call of two batches leaves it.
template <class T>
InferReply ReplyOf(DataType type, Shape shape, const std::vector<T>& values, int max_batch = 8) {
  auto model = std::make_shared<ModelSpec>();
  model->name = "m";
  model->max_batch = max_batch;
  model->outputs = {{"y", type, {-1, -1}}};
  model->labels["y"] = {"zero", "one"};
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  const std::span<const std::byte> all = *bytes;
  const std::size_t half = values.size() / 2 * sizeof(T);
  InferReply reply;
  reply.outputs.push_back(
      {model->outputs[0].name, type, std::move(shape), {all.first(half), all.subspan(half)}});
  reply.storage = std::move(bytes);
  reply.model = std::move(model);
  return reply;
}

std::vector<std::string> Strings(const OutputTensor& output) {
  std::vector<std::string> strings;
  std::vector<std::byte> bytes;
  for (const auto part : output.parts) bytes.insert(bytes.end(), part.begin(), part.end());
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, &bytes[at], sizeof length);
    at += sizeof length;
    strings.emplace_back(reinterpret_cast<const char*>(&bytes[at]), length);
    at += length;
  }
  return strings;
}

TEST(Classify, GivesTheHighestOfEachRowWithIndexAndLabel) {
  const std::uint32_t classes[] = {2};
  InferReply reply = ReplyOf<float>(DataType::kFp32, {2, 3}, {0.25F, 7, -1, 3, 3, 3.5F});
  ASSERT_TRUE(Classify(classes, reply));
  const OutputTensor& output = reply.outputs[0];
  EXPECT_EQ(output.type, DataType::kBytes);
  EXPECT_THAT(output.shape, ElementsAre(2, 2));
  EXPECT_THAT(Strings(output),
              ElementsAre("7.000000:1:one", "0.250000:0:zero", "3.500000:2", "3.000000:0:zero"));
}

TEST(Classify, OfAModelWithoutBatchesAllElementsAreOneRow) {
  const std::uint32_t classes[] = {5};
  InferReply reply = ReplyOf<std::int8_t>(DataType::kInt8, {2, 2}, {-3, 5, 4, -128}, 0);
  ASSERT_TRUE(Classify(classes, reply));
  EXPECT_THAT(reply.outputs[0].shape, ElementsAre(4)) << "no more than there are";
  EXPECT_THAT(Strings(reply.outputs[0]), ElementsAre("5:1:one", "4:2", "-3:0:zero", "-128:3"));
}

// What classes mean does not change while a model serves.
TEST(Classify, OfAModelThatHadOrMayGetABatchEachRowHasItsOwn) {
  const std::uint32_t classes[] = {1};
  InferReply reply = ReplyOf<float>(DataType::kFp32, {2, 2}, {1, 2, 4, 3}, 0);
  const auto before = reply.model;  // the output's name is its
  ModelSpec model = *before;
  model.rows_in_front = true;
  reply.model = std::make_shared<const ModelSpec>(model);
  ASSERT_TRUE(Classify(classes, reply));
  EXPECT_THAT(reply.outputs[0].shape, ElementsAre(2, 1));
  EXPECT_THAT(Strings(reply.outputs[0]), ElementsAre("2.000000:1:one", "4.000000:0:zero"));
}

TEST(Classify, NaNIsTheLowest) {
  const std::uint32_t classes[] = {3};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  InferReply reply = ReplyOf<double>(DataType::kFp64, {1, 3}, {nan, -INFINITY, nan});
  ASSERT_TRUE(Classify(classes, reply));
  EXPECT_THAT(Strings(reply.outputs[0]), ElementsAre("-inf:1:one", testing::EndsWith("nan:0:zero"),
                                                     testing::EndsWith("nan:2")));
}

TEST(Classify, LeavesWhatNoClassesAreAskedOf) {
  const std::uint32_t none[] = {0};
  InferReply reply = ReplyOf<float>(DataType::kFp32, {1, 2}, {1, 2});
  ASSERT_TRUE(Classify(none, reply));
  ASSERT_TRUE(Classify({}, reply));
  EXPECT_EQ(reply.outputs[0].type, DataType::kFp32);
  EXPECT_THAT(reply.outputs[0].shape, ElementsAre(1, 2));
  const std::uint32_t classes[] = {1};
  InferReply empty = ReplyOf<float>(DataType::kFp32, {0, 2}, {});
  ASSERT_TRUE(Classify(classes, empty));
  EXPECT_THAT(empty.outputs[0].shape, ElementsAre(0, 0));
  InferReply failed;
  failed.status = Internal("broken");
  EXPECT_TRUE(Classify(classes, failed)) << "its error stays its error";
}

TEST(Classify, RefusesRowsThatAreTooLargeAndTypesWithoutClasses) {
  const std::uint32_t classes[] = {1};
  const auto most = static_cast<std::size_t>(kMostClasses);
  InferReply fits =
      ReplyOf<std::uint8_t>(DataType::kUint8, {1, kMostClasses}, std::vector<std::uint8_t>(most));
  EXPECT_TRUE(Classify(classes, fits));
  InferReply large = ReplyOf<std::uint8_t>(DataType::kUint8, {1, kMostClasses + 1},
                                           std::vector<std::uint8_t>(most + 1));
  EXPECT_THAT(Classify(classes, large).error().message,
              HasSubstr("classification output tensor too large"));
  InferCall call;
  auto model = std::make_shared<ModelSpec>();
  model->outputs = {{"y", DataType::kBytes, {-1}}};
  call.model = model;
  call.outputs = {0};
  call.classes = {3};
  EXPECT_THAT(CheckClasses(call).error().message,
              HasSubstr("class result not available for output due to unsupported type 'BYTES'"));
  call.classes = {0};
  EXPECT_TRUE(CheckClasses(call));
}

}  // namespace
}  // namespace tactus
