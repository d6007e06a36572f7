#include "server/kserve/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/kserve/error_mapping.h"

namespace tactus {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const ModelSpec> Model() {
  ModelSpec spec;
  spec.name = "m";
  spec.max_batch = 4;
  spec.inputs = {{"image", DataType::kFp32, {-1, 2}}, {"words", DataType::kBytes, {-1, -1}}};
  spec.outputs = {{"p", DataType::kFp32, {-1, 1}}, {"q", DataType::kFp32, {-1, 1}}};
  return std::make_shared<const ModelSpec>(std::move(spec));
}

const std::array<std::byte, 4096> kZeros{};

CallMessage Good() {
  CallMessage message;
  // Out of order, and one row: 2 floats; 3 empty strings.
  message.inputs = {{"words", "BYTES", {1, 3}, std::span(kZeros).first(12)},
                    {"image", "FP32", {1, 2}, std::span(kZeros).first(8)}};
  return message;
}

Expected<InferCall> Make(const CallMessage& message) {
  return MakeCall(Model(), message, std::chrono::steady_clock::time_point{});
}

TEST(MakeCall, PutsTheInputsIntoTheModelsOrder) {
  CallMessage message = Good();
  message.outputs = {"q"};
  message.parameters = {{"timeout", std::int64_t{3000}}, {"priority", std::uint64_t{2}}};
  const auto call = Make(message);
  ASSERT_TRUE(call.has_value()) << call.error().message;
  EXPECT_EQ(call->inputs[0].name, "image");
  EXPECT_EQ(call->inputs[1].data.size(), 12U);
  EXPECT_THAT(call->outputs, ElementsAre(1));
  EXPECT_EQ(call->priority, 2U);
  EXPECT_EQ(call->limit.shortest(), Micros(3000));
}

// A step of another node's pipeline brings its own time; without one the model's SLO must hold.
TEST(MakeCall, AStepOfAnotherNodeIsDueByItsOwnTimeIfItSaysOne) {
  CallMessage message = Good();
  message.parameters = {{"tactus_step", true}, {"timeout", std::int64_t{3000}}};
  EXPECT_TRUE(Make(message)->due_by_limit);
  message.parameters = {{"tactus_step", true}};
  EXPECT_FALSE(Make(message)->due_by_limit);
  message.parameters = {{"timeout", std::int64_t{3000}}};
  EXPECT_FALSE(Make(message)->due_by_limit);
  message.parameters = {{"tactus_step", std::int64_t{1}}};
  EXPECT_THAT(Make(message).error().message, HasSubstr("tactus_step"));
}

constexpr std::int64_t kLarge = std::int64_t{1} << 40;
struct BadInput {
  const char* what;
  void (*spoil)(CallMessage&);
  const char* answer;
};
const BadInput kBadInputs[] = {
    {"unknown input", [](CallMessage& m) { m.inputs[0].name = "x"; },
     "unexpected inference input 'x' for model 'm', which has ['image','words']"},
    {"missing input", [](CallMessage& m) { m.inputs.pop_back(); },
     "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['words'], but missing "
     "required input(s) ['image']. Please provide all required input(s)."},
    {"no inputs", [](CallMessage& m) { m.inputs.clear(); },
     "expected 2 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing required "
     "input(s) ['image','words']. Please"},
    {"twice", [](CallMessage& m) { m.inputs.push_back(m.inputs[0]); }, "'words' is given twice"},
    {"type", [](CallMessage& m) { m.inputs[1].datatype = "INT32"; },
     "data-type is 'INT32', but the model expects 'FP32'"},
    {"no such type", [](CallMessage& m) { m.inputs[1].datatype = "float"; }, "'float'"},
    {"rank",
     [](CallMessage& m) {
       m.inputs[1].shape = {1, 1, 2};
     },
     "unexpected shape for input 'image' for model 'm'. Expected [-1,2], got [1,1,2]"},
    {"no rank", [](CallMessage& m) { m.inputs[1].shape = {}; }, "unexpected shape"},
    {"size of a dimension",
     [](CallMessage& m) {
       m.inputs[1].shape = {1, 3};
     },
     "unexpected shape"},
    {"negative",
     [](CallMessage& m) {
       m.inputs[0].shape = {1, -3};
     },
     "negative dimension -3"},
    {"overflow",
     [](CallMessage& m) {
       m.inputs[0].shape = {kLarge, kLarge};
     },
     "'words': shape [1099511627776,1099511627776] causes total element count to exceed maximum "
     "size of 9223372036854775807"},
    {"overflow of bytes",
     [](CallMessage& m) {
       m.inputs[1].shape = {4, (std::int64_t{1} << 60) + 2};
     },
     "byte size overflow for input 'image'"},
    {"large, no overflow",
     [](CallMessage& m) {
       m.inputs[0].shape = {1, kLarge};
     },
     "expected 1099511627776 string elements for inference input 'words' for model 'm', got"},
    {"no rows",
     [](CallMessage& m) {
       m.inputs[1].shape = {0, 2};
     },
     "the batch has no rows"},
    {"too many rows",
     [](CallMessage& m) {
       m.inputs[1].shape = {5, 2};
       m.inputs[1].data = std::span(kZeros).first(40);
     },
     "batch-size must be <= 4 for 'm', got 5"},
    {"rows differ",
     [](CallMessage& m) {
       m.inputs[1].shape = {2, 2};
       m.inputs[1].data = std::span(kZeros).first(16);
     },
     "2 rows, but the inputs before it have 1"},
    {"too few bytes", [](CallMessage& m) { m.inputs[1].data = std::span(kZeros).first(7); },
     "input byte size mismatch for input 'image' for model 'm'. Expected 8, got 7"},
    {"too many bytes", [](CallMessage& m) { m.inputs[1].data = std::span(kZeros).first(12); },
     "Expected 8, got 12: its shape is [1,2] of FP32"},
    {"too few strings", [](CallMessage& m) { m.inputs[0].data = std::span(kZeros).first(8); },
     "expected 3 string elements for inference input 'words' for model 'm', got 2"},
    {"more than the strings",
     [](CallMessage& m) { m.inputs[0].data = std::span(kZeros).first(13); },
     "unexpected number of string elements 4 for inference input 'words' for model 'm', expecting "
     "3: 1 bytes are left"},
    {"string past the end",
     [](CallMessage& m) {
       static constexpr std::array<std::byte, 12> kLong{std::byte{9}};
       m.inputs[0].data = kLong;
     },
     "BYTES element 0 says 9 bytes where 8 are left"},
    {"unknown output", [](CallMessage& m) { m.outputs = {"r"}; },
     "unexpected inference output 'r' for model 'm', which has ["},
    {"output twice",
     [](CallMessage& m) {
       m.outputs = {"p", "p"};
     },
     "Duplicate output name 'p' is not allowed in a request"},
};

TEST(MakeCall, BadInputHasAnAnswer) {
  for (const BadInput& c : kBadInputs) {
    CallMessage message = Good();
    c.spoil(message);
    const auto call = Make(message);
    ASSERT_FALSE(call.has_value()) << c.what;
    EXPECT_EQ(call.error().code, ErrorCode::kInvalidArgument) << c.what;
    EXPECT_THAT(call.error().message, HasSubstr(c.answer)) << c.what;
  }
}

// Whoever declared no batch would look for this number in vain.
TEST(MakeCall, MoreRowsThanABatchThatNobodyDeclaredSaySo) {
  ModelSpec assumed = *Model();
  assumed.batch_origin = BatchOrigin::kAssumed;
  CallMessage message = Good();
  message.inputs[1].shape = {5, 2};
  message.inputs[1].data = std::span(kZeros).first(40);
  const auto call = MakeCall(std::make_shared<const ModelSpec>(assumed), message,
                             std::chrono::steady_clock::time_point{});
  ASSERT_FALSE(call);
  EXPECT_THAT(call.error().message, HasSubstr("got 5; nobody has declared this batch"));
}

TEST(MakeCall, OnlyOptionalInputsMayBeLeftOut) {
  ModelSpec spec = *Model();
  spec.inputs[1].optional = true;
  const auto make = [&](const CallMessage& message) {
    return MakeCall(std::make_shared<const ModelSpec>(spec), message, {});
  };
  CallMessage message = Good();
  EXPECT_FALSE(make(message)->inputs[1].absent);
  message.inputs.erase(message.inputs.begin());  // the words
  const auto call = make(message);
  ASSERT_TRUE(call.has_value()) << call.error().message;
  EXPECT_FALSE(call->inputs[0].absent);
  EXPECT_TRUE(call->inputs[1].absent);
  EXPECT_EQ(call->inputs[1].name, "words");
  message = Good();
  message.inputs.pop_back();
  const auto missing = make(message);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(missing.error().message,
            "expected number of inputs between 1 and 2 but got 1 inputs for model 'm'. Got "
            "input(s) ['words'], but missing required input(s) ['image']. Please provide all "
            "required input(s).");
}

// Of a graph that states no shape.
TEST(MakeCall, AnInputOfAnyShapeKeepsIt) {
  ModelSpec spec{.name = "m", .max_batch = 0};
  spec.inputs = {{.name = "x", .type = DataType::kFp32, .dims = {-1}, .any_shape = true}};
  const auto make = [&](const Shape& shape) {
    CallMessage message;
    const auto bytes = static_cast<std::size_t>(*ElementCount(shape)) * 4;
    message.inputs = {{"x", "FP32", shape, std::span(kZeros).first(bytes)}};
    return MakeCall(std::make_shared<const ModelSpec>(spec), message, {});
  };
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{2, 1, 3}}) {
    const auto call = make(shape);
    ASSERT_TRUE(call) << ToString(shape) << ": " << call.error().message;
    EXPECT_EQ(call->inputs[0].shape, shape);
  }
  spec.max_batch = 4;
  EXPECT_TRUE(make({2, 3}));
  EXPECT_FALSE(make({5, 3}));
  EXPECT_FALSE(make({}));
}

TEST(ReadParameters, WhatClientsSendIsUnderstood) {
  const std::vector<Parameter> parameters{{"priority", std::int64_t{0}},
                                          {"timeout", std::uint64_t{0}},
                                          {"sequence_id", std::uint64_t{0}},
                                          {"sequence_start", false},
                                          {"triton_enable_empty_final_response", true},
                                          {"binary_data_output", true},
                                          {"anything", std::string_view("else")}};
  const auto read = ReadParameters(parameters);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->priority, 0U);
  EXPECT_EQ(read->timeout, std::nullopt);
}

TEST(ReadParameters, WhatCannotBeMetIsRefused) {
  const auto error = [](std::string_view name, ParameterValue value) {
    const std::vector<Parameter> parameters{{name, value}};
    const auto read = ReadParameters(parameters);
    return read ? Error{ErrorCode::kInternal, "accepted"} : read.error();
  };
  EXPECT_THAT(error("priority", std::int64_t{-1}).message, HasSubstr("'priority'"));
  EXPECT_THAT(error("priority", std::string_view("1")).message, HasSubstr("'priority'"));
  EXPECT_THAT(error("priority", std::int64_t{1'000'001}).message,
              HasSubstr("'priority': must be a whole number from 1, the highest, to 1000000"));
  EXPECT_THAT(error("priority", std::uint64_t{1} << 40).message, HasSubstr("'priority'"));
  EXPECT_THAT(error("timeout", std::int64_t{-1}).message, HasSubstr("microseconds"));
  EXPECT_THAT(error("timeout", 1.5).message, HasSubstr("microseconds"));
  EXPECT_THAT(error("triton_debug", true).message,
              HasSubstr("parameter keys starting with 'triton_' are reserved"));
  EXPECT_EQ(error("sequence_id", std::uint64_t{7}).code, ErrorCode::kUnimplemented);
  EXPECT_EQ(error("sequence_end", true).code, ErrorCode::kUnimplemented);
}

TEST(ReadParameters, ATimeoutBeyondAllTimeIsNone) {
  const Parameter parameters[] = {{"timeout", std::numeric_limits<std::int64_t>::max()}};
  const auto read = ReadParameters(parameters);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->timeout, std::nullopt);
}

TEST(ParseVersion, DigitsOnly) {
  EXPECT_EQ(ParseVersion(""), -1);
  EXPECT_EQ(ParseVersion("12"), 12);
  for (const char* text : {"-1", "1.0", "one", " 1", "1 ", "+1", "0x1"}) {
    EXPECT_EQ(ParseVersion(text).error().code, ErrorCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(ParseVersion("one").error().message,
              HasSubstr("failed to get model version from specified version string 'one'"));
  EXPECT_EQ(ParseVersion("99999999999999999999").error().code, ErrorCode::kNotFound);
}

TEST(ErrorMapping, OneTableForBothProtocols) {
  struct Row {
    ErrorCode code;
    int http, grpc, strict_http, strict_grpc;
  };
  for (const Row& row :
       {Row{ErrorCode::kInvalidArgument, 400, 3, 400, 3}, Row{ErrorCode::kNotFound, 404, 5, 404, 5},
        Row{ErrorCode::kAlreadyExists, 409, 6, 400, 6},
        Row{ErrorCode::kUnavailable, 503, 14, 503, 14},
        Row{ErrorCode::kResourceExhausted, 503, 8, 503, 14},
        Row{ErrorCode::kDeadlineExceeded, 504, 4, 503, 14},
        Row{ErrorCode::kCancelled, 499, 1, 400, 1},
        Row{ErrorCode::kUnimplemented, 501, 12, 501, 12},
        Row{ErrorCode::kInternal, 500, 13, 500, 13}}) {
    const WireError normal = ToWire({row.code, "text"}, false);
    const WireError strict = ToWire({row.code, "text"}, true);
    EXPECT_EQ(normal.http, row.http);
    EXPECT_EQ(normal.grpc, row.grpc);
    EXPECT_EQ(normal.text, "text");
    EXPECT_EQ(strict.http, row.strict_http);
    EXPECT_EQ(strict.grpc, row.strict_grpc);
  }
  EXPECT_EQ(ToWire({ErrorCode::kDeadlineExceeded, "x"}, true).text, "Request timeout expired");
  EXPECT_LT(ToWire({ErrorCode::kNotFound, std::string(1 << 20, 'x')}, false).text.size(), 2000U);
}

}  // namespace
}  // namespace tactus
