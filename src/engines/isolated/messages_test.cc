// What a server reads of an engine's process. Without these a process that went mad would have its
// server read memory that is not there.
#include "engines/isolated/messages.h"

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus::isolated {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TensorSpec> Outputs() {
  return {{"numbers", DataType::kFp32, {-1, 2}}, {"text", DataType::kBytes, {-1, 1}}};
}

// Two rows: [1,2] and [3,4], "a" and "bcd", in `memory`.
RunAnswer GoodAnswer(std::vector<std::byte>& memory) {
  const float numbers[] = {1, 2, 3, 4};
  const char text[] = "\1\0\0\0a\3\0\0\0bcd";
  memory.resize(128);
  std::memcpy(memory.data(), numbers, sizeof numbers);
  std::memcpy(memory.data() + 64, text, 12);
  RunAnswer answer;
  answer.infer = Millis(3);
  answer.cut_jpegs = 2;
  answer.tensors = {{{2, 2}, 0, 16, {}}, {{2, 1}, 64, 12, {5, 7}}};
  return answer;
}

Expected<std::shared_ptr<const BatchOutput>> Take(const RunAnswer& answer,
                                                  const std::vector<std::byte>& memory) {
  ByteWriter bytes;
  bytes(answer);
  const auto read = ReadAnswer<RunAnswer>(bytes.bytes(), "a batch's output");
  EXPECT_TRUE(read);
  const std::vector<TensorSpec> outputs = Outputs();
  return MakeOutput(*read, {outputs, true, 2}, memory, nullptr);
}

TEST(Messages, AnAnswersTensorsAreWhereItSays) {
  std::vector<std::byte> memory;
  const RunAnswer answer = GoodAnswer(memory);
  const auto output = Take(answer, memory);
  ASSERT_TRUE(output) << output.error().message;
  const auto& tensors = (*output)->tensors;
  EXPECT_EQ((*output)->cut_jpegs, 2u);
  EXPECT_EQ(tensors[0].data.data(), memory.data()) << "numbers are not copied";
  EXPECT_THAT(tensors[0].shape, ElementsAre(2, 2));
  memory.assign(memory.size(), std::byte{255});
  EXPECT_EQ(tensors[1].Row(0, 2).size(), 5u);
  EXPECT_EQ(tensors[1].Row(1, 2)[4], std::byte{'b'}) << "strings are copied";
}

TEST(Messages, AnAnswerThatDoesNotFitIsRefused) {
  const struct {
    const char* what;
    void (*spoil)(RunAnswer&);
  } cases[] = {
      {"number of outputs", [](RunAnswer& a) { a.tensors.pop_back(); }},
      {"beyond the memory", [](RunAnswer& a) { a.tensors[0].offset = 120; }},
      {"beyond the memory", [](RunAnswer& a) { a.tensors[0].offset = ~0ULL - 7; }},
      {"beyond the memory", [](RunAnswer& a) { a.tensors[1].bytes = ~0ULL; }},
      {"negative",
       [](RunAnswer& a) {
         a.tensors[0].shape = {2, -2};
       }},
      {"too many elements",
       [](RunAnswer& a) {
         a.tensors[0].shape = {2, 1L << 62, 1L << 62};
       }},
      {"does not match its shape",
       [](RunAnswer& a) {
         a.tensors[0].shape = {2, 3};
       }},
      {"does not match its shape", [](RunAnswer& a) { a.tensors[0].bytes = 15; }},
      {"one row for each",
       [](RunAnswer& a) {
         a.tensors[0].shape = {1, 4};
       }},
      {"one row for each", [](RunAnswer& a) { a.tensors[1].shape = {}; }},
      {"part for each row", [](RunAnswer& a) { a.tensors[1].row_bytes = {12}; }},
      {"beyond their tensor",
       [](RunAnswer& a) {
         a.tensors[1].row_bytes = {5, 8};
       }},
      {"beyond their tensor",
       [](RunAnswer& a) {
         a.tensors[1].row_bytes = {5, ~0ULL};
       }},
      {"do not add up",
       [](RunAnswer& a) {
         a.tensors[1].row_bytes = {4, 8};
       }},
      {"behind the last", [](RunAnswer& a) { a.tensors[1].bytes = 13; }},
  };
  for (const auto& each : cases) {
    std::vector<std::byte> memory;
    RunAnswer answer = GoodAnswer(memory);
    each.spoil(answer);
    const auto output = Take(answer, memory);
    ASSERT_FALSE(output) << each.what;
    EXPECT_EQ(output.error().code, ErrorCode::kInternal);
    EXPECT_THAT(output.error().message, HasSubstr(each.what));
  }
}

// Every cut of every answer is refused, and so is one byte too many.
template <class Answer>
void ExpectOnlyWhole(const Answer& answer) {
  const auto read = [](std::span<const std::byte> bytes) {
    return ReadAnswer<Answer>(bytes, "it").has_value();
  };
  ByteWriter bytes;
  bytes(answer);
  ASSERT_TRUE(read(bytes.bytes()));
  for (std::size_t size = 0; size < bytes.bytes().size(); ++size) {
    EXPECT_FALSE(read(bytes.bytes().first(size))) << size;
  }
  bytes(std::uint8_t{0});
  EXPECT_FALSE(read(bytes.bytes()));
}

TEST(Messages, AnAnswerThatIsCutOffIsNone) {
  std::vector<std::byte> memory;
  ExpectOnlyWhole(GoodAnswer(memory));
  ExpectOnlyWhole(RunAnswer{.status = Internal("no")});
  ExpectOnlyWhole(HelloAnswer{.status = {}, .name = "onnxruntime 1", .terminates = true});
  ExpectOnlyWhole(LoadAnswer{.status = {},
                             .handle = 3,
                             .max_batch = 4,
                             .inputs = Outputs(),
                             .outputs = {{"y", DataType::kFp32, {-1, 1}, Shape{-1}}},
                             .exits = {"1", "2"}});
  ExpectOnlyWhole(MemoryUse{1, 2});
  ExpectOnlyWhole(std::vector<ArenaUse>{{"m", 1, 20, 10}, {"n", 2, 3, 0}});
  ExpectOnlyWhole(std::vector<SampleTensor>{{{1, 2}, {std::byte{1}}}});
}

TEST(Messages, CountsThatCannotBeTakeNoMemory) {
  ByteWriter bytes;
  bytes(std::uint32_t{0xffffffff});
  EXPECT_FALSE(ReadAnswer<std::vector<SampleTensor>>(bytes.bytes(), "samples"));
  ByteReader numbers(bytes.bytes());
  EXPECT_TRUE(numbers.Take<Shape>().empty());
  EXPECT_FALSE(numbers.good());
}

TEST(Messages, ATensorOfNoTypeIsRefused) {
  LoadAnswer answer{.status = {}, .inputs = Outputs(), .outputs = {}, .exits = {}};
  answer.inputs[0].type = static_cast<DataType>(77);
  ByteWriter bytes;
  bytes(answer);
  EXPECT_FALSE(ReadAnswer<LoadAnswer>(bytes.bytes(), "a model"));
  answer.inputs[0].type = DataType::kInt8;
  answer.inputs[0].dims = {-2};
  ByteWriter dims;
  dims(answer);
  EXPECT_FALSE(ReadAnswer<LoadAnswer>(dims.bytes(), "a model"));
  answer.inputs[0].dims = {-1, 2};
  for (const Shape& reshape : {Shape{-1, 3}, Shape{-2, 2}, Shape{2}}) {
    answer.inputs[0].reshape = reshape;
    ByteWriter other;
    other(answer);
    EXPECT_FALSE(ReadAnswer<LoadAnswer>(other.bytes(), "a model")) << ToString(reshape);
  }
}

TEST(Messages, AModelArrivesAsItWasSent) {
  ModelSpec spec{.name = "m", .version = 3, .platform = "p", .max_batch = -1};
  spec.inputs = Outputs();
  spec.inputs[0].reshape = {-1, 1, 2};
  spec.inputs[1].optional = true;
  spec.inputs[1].any_shape = true;
  spec.load = 9;
  spec.exits = {{"1", "/a/b.onnx", 0.5}};
  spec.parameters = {{"key", "value"}};
  ByteWriter bytes;
  bytes(spec, CpuPlacement{.threads = 2, .cores = {4, 5}});
  ByteReader from(bytes.bytes());
  const auto got = from.Take<ModelSpec>();
  const auto placement = from.Take<CpuPlacement>();
  EXPECT_TRUE(from.whole());
  EXPECT_EQ(got.name, "m");
  EXPECT_EQ(got.version, 3);
  EXPECT_EQ(got.max_batch, -1);
  EXPECT_EQ(got.load, 9u);
  EXPECT_EQ(got.inputs[0].reshape, (Shape{-1, 1, 2}));
  EXPECT_EQ(got.inputs[1].type, DataType::kBytes);
  EXPECT_FALSE(got.inputs[1].reshape);
  EXPECT_FALSE(got.inputs[0].optional);
  EXPECT_TRUE(got.inputs[1].optional);
  EXPECT_FALSE(got.inputs[0].any_shape);
  EXPECT_TRUE(got.inputs[1].any_shape);
  EXPECT_EQ(got.exits[0].graph, "/a/b.onnx");
  EXPECT_EQ(got.parameters, spec.parameters);
  EXPECT_EQ(placement.threads, 2);
  EXPECT_THAT(placement.cores, ElementsAre(4, 5));
}

TEST(Messages, ABatchArrivesAsItWasSent) {
  const std::vector<std::byte> memory(256);
  const Shape one{1, 2}, other{1, 3};
  const TensorView rows[2][2] = {{{nullptr, 8, one}, {nullptr, 3, one}},
                                 {{nullptr, 8, one}, {nullptr, 5, other}}};
  const std::vector<RowInputs> inputs{{rows[0], nullptr}, {rows[1], nullptr}};
  const std::vector<std::size_t> offsets{0, 64};
  ByteWriter bytes;
  PutRun(bytes, 9, {BatchId{7}, ModelId{0}, ExitId{1}, inputs}, offsets, 2);
  ByteReader from(bytes.bytes());
  const auto run = TakeRun(from, memory);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->handle, 9u);
  EXPECT_EQ(run->id, BatchId{7});
  EXPECT_EQ(run->output_segment, 2u);
  ASSERT_EQ(run->rows.size(), 2u);
  EXPECT_EQ(run->rows[1].inputs[0].data, memory.data() + 8);
  EXPECT_EQ(run->rows[1].inputs[1].data, memory.data() + 64 + 3);
  EXPECT_THAT(run->rows[1].inputs[1].shape, ElementsAre(1, 3));
  ByteReader again(bytes.bytes());
  EXPECT_FALSE(TakeRun(again, std::span(memory).first(66))) << "beyond the memory";
}

TEST(Messages, AnInputThatABatchLeavesOutIsLeftOutThere) {
  const std::vector<std::byte> memory(64);
  const Shape one{1, 2};
  const TensorView rows[2][2] = {{{.absent = true}, {nullptr, 8, one}},
                                 {{.absent = true}, {nullptr, 8, one}}};
  const std::vector<RowInputs> inputs{{rows[0], nullptr}, {rows[1], nullptr}};
  const std::vector<std::size_t> offsets{0, 0};
  ByteWriter bytes;
  PutRun(bytes, 9, {BatchId{7}, ModelId{0}, ExitId{1}, inputs}, offsets, 2);
  ByteReader from(bytes.bytes());
  const auto run = TakeRun(from, memory);
  ASSERT_TRUE(run);
  for (const RowInputs& row : run->rows) {
    EXPECT_TRUE(row.inputs[0].absent);
    EXPECT_FALSE(row.inputs[1].absent);
  }
  EXPECT_EQ(run->rows[1].inputs[1].data, memory.data() + 8);
}

}  // namespace
}  // namespace tactus::isolated
