#include "server/kserve/json_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/kserve/json_text.h"
#include "server/kserve/rest_bodies.h"

namespace tactus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A body with the padding that decoders may look at.
struct Padded {
  explicit Padded(std::string_view text) : size(text.size()), bytes(size + kBodyPadding) {
    std::memcpy(bytes.data(), text.data(), size);
  }
  std::span<const std::byte> view() const { return std::span(bytes).first(size); }
  std::size_t size;
  std::vector<std::byte> bytes;
};

class DecodeTest : public testing::Test {
 protected:
  Expected<InferRequest> Decode(std::string_view text,
                                std::optional<std::size_t> json_length = std::nullopt) {
    auto request = Read(text, json_length);
    if (!request) return request;
    for (const InputMessage& input : request->message.inputs) {
      if (input.wrong_data) return std::unexpected(*input.wrong_data);
    }
    return request;
  }
  // What is wrong with data is left to those who know the model.
  Expected<InferRequest> Read(std::string_view text,
                              std::optional<std::size_t> json_length = std::nullopt) {
    body_.push_back(std::make_shared<Padded>(text));
    return decoder_.Decode(body_.back()->view(), json_length, body_.back());
  }
  // One input with this data.
  Expected<InferRequest> Tensor(std::string_view type, std::string_view shape,
                                std::string_view data) {
    return Decode(
        fmt::format(R"({{"inputs":[{{"name":"x","datatype":"{}","shape":{},"data":{}}}]}})", type,
                    shape, data));
  }
  template <class T>
  std::vector<T> Values(const Expected<InferRequest>& request) {
    if (!request) ADD_FAILURE() << request.error().message;
    if (!request) return {};
    const auto bytes = request->message.inputs.at(0).data;
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  InferRequestDecoder decoder_;
  std::vector<std::shared_ptr<Padded>> body_;
};

TEST_F(DecodeTest, NestedAndFlatDataMeanTheSame) {
  EXPECT_THAT(Values<float>(Tensor("FP32", "[2,2]", "[1,2.5,-3e2,4]")),
              ElementsAre(1, 2.5, -300, 4));
  EXPECT_THAT(Values<float>(Tensor("FP32", "[2,2]", "[[1,2],[3,4]]")), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Values<float>(Tensor("FP32", "[2,0]", "[[],[]]")), ElementsAre());
  EXPECT_THAT(Values<float>(Tensor("FP32", "[1,2,1]", "[[[1],[2]]]")), ElementsAre(1, 2));
  EXPECT_THAT(Values<float>(Tensor("FP32", "[]", "[7]")), ElementsAre(7));
}

// The right number of elements in the wrong places would be answered as if it were another tensor.
TEST_F(DecodeTest, DataNestedOtherwiseThanItsShapeIsRefused) {
  const std::pair<const char*, const char*> kCases[] = {
      {"[2,2]", "[[1,2,3],[4]]"},       {"[2,2]", "[[1],[2,3,4]]"}, {"[2,2]", "[[1,2],3,4]"},
      {"[2,2]", "[1,2,[3,4]]"},         {"[2,2]", "[[1,2,3,4]]"},   {"[2,2]", "[[[1,2],[3,4]]]"},
      {"[2,2]", "[[1],[2],[3],[4]]"},   {"[4]", "[[1,2,3,4]]"},     {"[4]", "[[1],[2],[3],[4]]"},
      {"[2,3]", "[[1,2],[3,4],[5,6]]"}, {"[2,0]", "[[]]"},          {"[]", "[[1]]"},
      {"[2,2]", "[[1,2],[3,4],[]]"},
  };
  for (const auto& [shape, data] : kCases) {
    const auto request = Tensor("FP32", shape, data);
    ASSERT_FALSE(request.has_value()) << shape << ' ' << data;
    EXPECT_THAT(request.error().message,
                HasSubstr(std::string("neither nested as its shape ") + shape + " says nor flat"))
        << data;
  }
}

// Clients made for Triton send the values of a tensor in brackets as they please.
TEST_F(DecodeTest, LikeTritonDataMayBeNestedInAnyWay) {
  decoder_ = InferRequestDecoder(/*like_triton=*/true);
  for (const char* data : {"[1,2,3,4]", "[[1,2,3],[4]]", "[[[1,2],[3,4]]]", "[1,[2,[3]],4]"}) {
    EXPECT_THAT(Values<float>(Tensor("FP32", "[2,2]", data)), ElementsAre(1, 2, 3, 4)) << data;
  }
  const auto nested = [](int depth, std::string_view value) {
    return std::string(depth, '[') + std::string(value) + std::string(depth, ']');
  };
  EXPECT_THAT(Values<std::int64_t>(Tensor("INT64", "[1,1]", nested(100, "123"))), ElementsAre(123));
  EXPECT_EQ(Values<char>(Tensor("BYTES", "[1,1]", nested(50, R"("hello")"))).size(), 9U);
  const auto error = [&](std::string_view shape, std::string_view data) {
    return Tensor("FP32", shape, data).error().message;
  };
  EXPECT_THAT(error("[1,1]", nested(101, "1")),
              HasSubstr("JSON nesting depth exceeds maximum allowed limit (100)"));
  const char* const kWrongData =
      "Unable to parse 'data': Shape does not match true shape of 'data' field";
  EXPECT_EQ(error("[4]", "[1,2,3]"), kWrongData);
  EXPECT_EQ(error("[4]", "[1,2,[3,4,5]]"), kWrongData);
  EXPECT_EQ(error("[4000]", "[1]"), kWrongData);
  EXPECT_THAT(error("[2,-5]", "[1]"),
              HasSubstr("Unable to parse 'shape': attempt to access JSON non-unsigned-integer"));
}

TEST_F(DecodeTest, LikeTritonListedOutputsAreTextUnlessTheySayOtherwise) {
  constexpr const char* kBody =
      R"({"parameters":{"binary_data_output":true},"inputs":[],"outputs":[{"name":"a"},)"
      R"({"name":"b","parameters":{"binary_data":true}}]})";
  EXPECT_TRUE(Decode(kBody)->form.Binary(0));
  decoder_ = InferRequestDecoder(/*like_triton=*/true);
  const auto request = Decode(kBody);
  EXPECT_FALSE(request->form.Binary(0));
  EXPECT_TRUE(request->form.Binary(1));
}

TEST_F(DecodeTest, EveryTypeWithItsRange) {
  EXPECT_THAT(Values<std::int8_t>(Tensor("INT8", "[2]", "[-128,127]")), ElementsAre(-128, 127));
  EXPECT_THAT(Values<std::uint8_t>(Tensor("UINT8", "[2]", "[0,255]")), ElementsAre(0, 255));
  EXPECT_THAT(Values<std::int16_t>(Tensor("INT16", "[1]", "[-32768]")), ElementsAre(-32768));
  EXPECT_THAT(Values<std::uint16_t>(Tensor("UINT16", "[1]", "[65535]")), ElementsAre(65535));
  EXPECT_THAT(Values<std::int32_t>(Tensor("INT32", "[1]", "[-2147483648]")),
              ElementsAre(std::numeric_limits<std::int32_t>::min()));
  EXPECT_THAT(Values<std::uint32_t>(Tensor("UINT32", "[1]", "[4294967295]")),
              ElementsAre(4294967295U));
  EXPECT_THAT(Values<std::int64_t>(Tensor("INT64", "[1]", "[-9223372036854775808]")),
              ElementsAre(std::numeric_limits<std::int64_t>::min()));
  EXPECT_THAT(Values<std::uint64_t>(Tensor("UINT64", "[1]", "[18446744073709551615]")),
              ElementsAre(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_THAT(Values<double>(Tensor("FP64", "[1]", "[1e300]")), ElementsAre(1e300));
  EXPECT_THAT(Values<char>(Tensor("BOOL", "[2]", "[true,false]")), ElementsAre(1, 0));
  const auto special = Values<float>(Tensor("FP32", "[3]", R"(["NaN","Infinity","-Infinity"])"));
  ASSERT_EQ(special.size(), 3U);
  EXPECT_TRUE(std::isnan(special[0]));
  EXPECT_EQ(special[2], -INFINITY);
  // As Python's json writes them, and tritonclient with it.
  const auto bare = Values<float>(Tensor("FP32", "[2,2]", "[[NaN , Infinity],\n[-Infinity,1.5]]"));
  ASSERT_EQ(bare.size(), 4U);
  EXPECT_TRUE(std::isnan(bare[0]));
  EXPECT_THAT(std::vector(bare.begin() + 1, bare.end()), ElementsAre(INFINITY, -INFINITY, 1.5F));
  EXPECT_EQ(Values<double>(Tensor("FP64", "[1]", "[-Infinity]")), std::vector<double>{-INFINITY});
}

TEST_F(DecodeTest, StringsBecomeLengthAndBytes) {
  const auto request = Tensor("BYTES", "[2]", R"(["h\u00e9","")");
  EXPECT_FALSE(request.has_value());
  EXPECT_THAT(Values<char>(Tensor("BYTES", "[2]", R"(["h\u00e9",""])")),
              ElementsAre(3, 0, 0, 0, 'h', '\xC3', '\xA9', 0, 0, 0, 0));
}

TEST_F(DecodeTest, DataMayStandBeforeItsShape) {
  EXPECT_THAT(Values<float>(Decode(
                  R"({"inputs":[{"data":[[1],[2]],"shape":[2,1],"datatype":"FP32","name":"x"}]})")),
              ElementsAre(1, 2));
}

TEST_F(DecodeTest, FormAndParametersAndUnknownKeys) {
  const auto request = Decode(
      R"({"extra":[{}],"id":"i\n","parameters":{"binary_data_output":true,"timeout":5,"big":)"
      R"(18446744073709551615,"f":0.5,"s":"t"},"inputs":[],"outputs":[{"name":"a","parameters":)"
      R"({"binary_data":false}},{"name":"b","more":1}]})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->form.id, "i\n");
  EXPECT_FALSE(request->form.Binary(0));
  EXPECT_TRUE(request->form.Binary(1));
  EXPECT_EQ(request->message.parameters.size(), 5U);
  EXPECT_EQ(std::get<std::int64_t>(request->message.parameters[1].second), 5);
  EXPECT_THAT(request->message.outputs, ElementsAre("a", "b"));
}

TEST_F(DecodeTest, BinaryTensorsFollowTheJsonInOrder) {
  const std::string json =
      R"({"inputs":[{"name":"x","datatype":"UINT8","shape":[3],)"
      R"("parameters":{"binary_data_size":3}},)"
      R"({"name":"z","datatype":"UINT8","shape":[1],"data":[9]},)"
      R"({"name":"y","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":2}}]})";
  const auto request = Decode(json + "abcde", json.size());
  ASSERT_TRUE(request.has_value()) << request.error().message;
  const auto text = [&](int i) {
    const auto data = request->message.inputs[i].data;
    return std::string_view(reinterpret_cast<const char*>(data.data()), data.size());
  };
  EXPECT_EQ(text(0), "abc");
  EXPECT_EQ(text(1), "\x09");
  EXPECT_EQ(text(2), "de");
  const auto error = [&](std::string_view tail, std::optional<std::size_t> length) {
    const auto decoded = Decode(json + std::string(tail), length);
    return decoded ? "decoded" : decoded.error().message;
  };
  EXPECT_THAT(error("abcd", json.size()), HasSubstr("exceeds the 1 bytes left"));
  EXPECT_THAT(error("abcdef", json.size()), HasSubstr("1 bytes more than"));
  EXPECT_THAT(error("abcde", json.size() + 6), HasSubstr("Inference-Header-Content-Length says"));
  EXPECT_THAT(error("abcde", json.size() - 1), HasSubstr("failed to parse"));
  EXPECT_THAT(error("abcde", json.size() + 1), HasSubstr("failed to parse"));
  EXPECT_THAT(error("", std::nullopt), HasSubstr("no Inference-Header-Content-Length"));
}

TEST_F(DecodeTest, BadJsonHasAnAnswer) {
  const std::string deep(2000, '[');
  const std::pair<std::string, const char*> kCases[] = {
      {"", "no JSON"},
      {" ", "failed to parse"},
      {"[]", "must be an object"},
      {"7", "must be an object"},
      {"{", "failed to parse"},
      {R"({"inputs":{}})", "'inputs' must be an array"},
      {R"({"inputs":[7]})", "array of objects"},
      {R"({"inputs":[]} {})", "behind its end"},
      {R"({"id":7})", "'id' must be a string"},
      {R"({"parameters":[]})", "'parameters' must be an object"},
      {R"({"parameters":{"a":[]}})", "'a' must be a string, a number or a boolean"},
      {R"({"parameters":{"a":99999999999999999999}})", "'a' must be a number"},
      {R"({"outputs":[{}]})", "'name' must be given for each output"},
      {R"({"outputs":[{"name":"a","parameters":{"classification":-3}}]})", "not below 0"},
      {R"({"outputs":[{"name":"a","parameters":{"binary_data":1}}]})", "must be a boolean"},
      {R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32"}]})", "neither 'data' nor"},
      {R"({"inputs":[{"name":"x","shape":[1],"data":[1]}]})", "'datatype' must be given"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","data":[1]}]})", "'shape' must be given"},
      {R"({"inputs":[{"shape":[1],"datatype":"FP32","data":[1]}]})", "'name' must be given"},
      {R"({"inputs":[{"name":"x","shape":[1.5],"datatype":"FP32","data":[1]}]})", "whole numbers"},
      {R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1],"data":[1]}]})",
       "'data' is given twice"},
      {R"({"inputs":[],"id":"a","inputs":[]})", "'inputs' is given twice"},
      {R"({"parameters":{"timeout":1,"timeout":2}})", "'timeout' is given twice"},
      {R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,)"
       R"("o":1,"p":1,"q":1,"r":1,"q":2})",
       "'q' is given twice"},
      {R"({"id":nul})", "failed to parse"},
      {R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":null}]})",
       "neither 'data' nor"},
      {R"({"inputs":[{"name":null,"shape":[1],"datatype":"FP32","data":[1]}]})",
       "'name' must be given"},
      {R"({"inputs":[],"inputs":[]})", "'inputs' is given twice"},
      {R"({"id":"a","i\u0064":"b"})", "'id' is given twice"},
      {R"({"parameters":{"a":1,"b":1,"a":2}})", "'a' is given twice"},
      {R"({"0":0,"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"8":0})",
       "'8' is given twice"},
      {R"({"outputs":[{"name":"a","name":"b"}]})", "'name' is given twice"},
      {R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","parameters":)"
       R"({"shared_memory_region":"r"}}]})",
       "shared memory is not supported"},
      {R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":7}]})",
       "'data' must be an array"},
      {R"({"id":"\xff"})", "failed to parse"},
      {"{\"id\":\"\xff\xfe\"}", "failed to parse"},
      {R"({"extra":)" + deep, "failed to parse"},
      {R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":)" + std::string(40, '[') +
           "1" + std::string(40, ']') + "}]}",
       "neither nested as its shape [1] says"},
  };
  for (const auto& [text, answer] : kCases) {
    const auto request = Decode(text);
    ASSERT_FALSE(request.has_value()) << text;
    EXPECT_THAT(request.error().message, HasSubstr(answer)) << text;
  }
}

// Clients write what they do not know as null, and whole numbers as their language does.
TEST_F(DecodeTest, NullIsAsIfItWereNotThereAndAWholeNumberMayHaveAPoint) {
  const auto request =
      Decode(R"({"id":null,"parameters":null,"outputs":null,"inputs":[{"name":"x","shape":[1.0,2],)"
             R"("datatype":"FP32","parameters":null,"data":[1,2]}]})");
  EXPECT_THAT(Values<float>(request), ElementsAre(1, 2));
  EXPECT_TRUE(request->form.id.empty());
  EXPECT_TRUE(request->message.outputs.empty());
  EXPECT_THAT(request->message.inputs[0].shape, ElementsAre(1, 2));
  const auto timeout = Decode(R"({"parameters":{"timeout":null,"priority":3},"inputs":[]})");
  ASSERT_TRUE(timeout.has_value());
  EXPECT_EQ(timeout->message.parameters.size(), 1U);
}

TEST_F(DecodeTest, BadTensorsHaveAnAnswer) {
  struct Case {
    const char *type, *shape, *data, *answer;
  };
  for (const Case& c : {Case{"FP32", "[2]", "[1]", "fewer"},
                        {"FP32", "[2]", "[1,2,3]", "more"},
                        {"FP32", "[2]", "[[1],[2],[3]]", "neither nested"},
                        {"FP32", "[1]", "[\"one\"]", "element 0 of data"},
                        {"FP32", "[1]", "[1e39]", "element 0 of data"},
                        {"FP32", "[1]", "[null]", "element 0 of data"},
                        {"FP32", "[1]", "[NaNa]", "data is not JSON"},
                        {"FP32", "[1]", "[-Infinite]", "element 0 of data"},
                        {"INT32", "[1]", "[NaN]", "element 0 of data"},
                        {"BYTES", "[1]", "[NaN]", "element 0 of data"},
                        {"FP32", "[1]", "[{}]", "element 0 of data"},
                        {"INT32", "[1]", "[1.0]", "element 0 of data"},
                        {"INT8", "[2]", "[1,128]", "element 1 of data"},
                        {"UINT8", "[1]", "[-1]", "element 0 of data"},
                        {"UINT64", "[1]", "[18446744073709551616]", "element 0 of data"},
                        {"BOOL", "[1]", "[1]", "element 0 of data"},
                        {"BYTES", "[1]", "[1]", "element 0 of data"},
                        {"FP16", "[1]", "[1]", "no JSON form"},
                        {"BF16", "[1]", "[1]", "no JSON form"},
                        {"FLOAT", "[1]", "[1]", "unknown datatype 'FLOAT'"},
                        {"FP32", "[-1]", "[1]", "negative dimension -1"},
                        {"FP32", "[4611686018427387904,4611686018427387904]", "[1]",
                         "causes total element count to exceed maximum size of"},
                        {"FP32", "[4,1152921504606846978]", "[1]", "byte size overflow for input"},
                        {"FP32", "[4611686018427387904]", "[1]", "byte size overflow for input"},
                        {"FP32", "[4294967296,1000]", "[1]", "fewer"},
                        {"FP32", "[1]", "[1", "JSON"},
                        {"FP32", "[1]", "[01]", "element 0 of data"}}) {
    const auto request = Tensor(c.type, c.shape, c.data);
    ASSERT_FALSE(request.has_value()) << c.type << c.shape << c.data;
    EXPECT_THAT(request.error().message, HasSubstr(c.answer)) << c.type << c.shape << c.data;
  }
}

// Data of another tensor has another length: who is told of that looks in the wrong place.
TEST_F(DecodeTest, NameTypeAndShapeAreCheckedBeforeTheDataWhateverTheOrderOfTheKeys) {
  ModelSpec spec;
  spec.name = "m";
  spec.inputs = {{"x", DataType::kFp32, {2, 2}}, {"last", DataType::kFp32, {1}}};
  const auto model = std::make_shared<const ModelSpec>(std::move(spec));
  struct Case {
    const char *name, *type, *shape, *data, *answer;
  };
  for (const Case& c : {Case{"z", "FP32", "[2,2]", "[1,2,3]", "unexpected inference input 'z'"},
                        {"x", "INT64", "[2,2]", "[1.5,2,3]", "data-type is 'INT64'"},
                        {"x", "FP32", "[3,2]", "[[1,2],[3,4],5]", "unexpected shape for input 'x'"},
                        {"x", "FP32", "[2,2]", "[[1,2],[3]]", "neither nested"},
                        {"x", "FP32", "[2,2]", "[1,2,3]", "fewer than the 4 elements"},
                        {"x", "FP32", "[2,2]", "[1,2,3,4,5]", "more than the 4 elements"}}) {
    std::vector<std::string> keys = {
        fmt::format(R"("data":{})", c.data), fmt::format(R"("datatype":"{}")", c.type),
        fmt::format(R"("name":"{}")", c.name), fmt::format(R"("shape":{})", c.shape)};
    const std::string last = R"({"name":"last","datatype":"FP32","shape":[1],"data":[1]})";
    do {
      const auto request =
          Read(fmt::format(R"({{"inputs":[{{{}}},{}]}})", fmt::join(keys, ","), last));
      ASSERT_TRUE(request && request->message.inputs.size() == 2) << fmt::format("{}", keys);
      const auto call = MakeCall(model, request->message, {});
      EXPECT_THAT(call ? "" : call.error().message, HasSubstr(c.answer)) << fmt::format("{}", keys);
    } while (std::ranges::next_permutation(keys).found);
  }
}

TEST(RawInferRequest, TheOpenDimensionFollowsFromTheSize) {
  ModelSpec model;
  model.name = "m";
  model.max_batch = 4;
  model.inputs = {{"x", DataType::kInt16, {-1, -1, 3}}};
  const std::vector<std::byte> body(12);
  const auto request = RawInferRequest(model, body, nullptr);
  ASSERT_TRUE(request.has_value());
  EXPECT_THAT(request->message.inputs[0].shape, ElementsAre(1, 2, 3));
  model.inputs[0].dims = {-1, -1, -1};
  const auto error = [&] { return RawInferRequest(model, body, nullptr).error().message; };
  EXPECT_THAT(error(), HasSubstr("The shape of the raw input 'x' can not be deduced because there "
                                 "are more than one variable-sized dimension"));
  model.inputs[0] = {"x", DataType::kBytes, {-1, 1}};
  EXPECT_EQ(RawInferRequest(model, body, nullptr)->message.inputs[0].data.size(), 16U);
  model.inputs[0].dims = {-1, -1};
  EXPECT_THAT(error(), HasSubstr("For BYTE datatype raw input 'x', the model must have input shape "
                                 "[1]"));
  model.inputs.push_back(model.inputs[0]);
  EXPECT_THAT(error(), HasSubstr("Raw request must only have 1 input (found 1) to be deduced but "
                                 "got 2 inputs in 'm' model configuration"));
}

class EncodeTest : public testing::Test {
 protected:
  EncodeTest() {
    auto model = std::make_shared<ModelSpec>();
    model->name = "m\"";
    reply_.model = model;
    reply_.served = {.exit = "e", .batch = 3, .queue_us = 4, .execution_us = 5};
  }
  template <class T>
  void Output(DataType type, const std::vector<T>& values) {
    auto bytes = std::as_bytes(std::span(values));
    storage_.emplace_back(bytes.begin(), bytes.end());
    reply_.outputs.push_back({"y", type, {static_cast<std::int64_t>(values.size())}, {}});
    // In two parts, as a call that was split into two batches leaves them.
    const std::span<const std::byte> all = storage_.back();
    const std::size_t first = values.size() / 2 * sizeof(T);
    reply_.outputs.back().parts = {all.first(first), all.subspan(first)};
  }
  std::string Json() {
    const auto response = EncodeInferResponse(reply_, {});
    if (!response) return response.error().message;
    const std::size_t at = response->json.find("\"data\":");
    return response->json.substr(at);
  }

  InferReply reply_;
  std::list<std::vector<std::byte>> storage_;
};

TEST_F(EncodeTest, NumbersReadBackAsTheyWere) {
  Output<float>(DataType::kFp32, {0.1F, 1e-30F, -0.0F, 16777216.0F});
  EXPECT_EQ(Json(), R"("data":[0.1,1e-30,-0.0,16777216]}]})");
}

TEST_F(EncodeTest, WhatJsonCannotSayIsAWord) {
  Output<double>(DataType::kFp64, {NAN, INFINITY, -INFINITY});
  EXPECT_EQ(Json(), R"("data":["NaN","Infinity","-Infinity"]}]})");
}

// "-0" is a whole number to Python's json, and its sign is lost.
TEST_F(EncodeTest, ZeroKeepsItsSign) {
  Output<double>(DataType::kFp64, {-0.0, 0.0});
  EXPECT_EQ(Json(), R"("data":[-0.0,0]}]})");
}

TEST_F(EncodeTest, Integers) {
  Output<std::uint64_t>(DataType::kUint64, {0, std::numeric_limits<std::uint64_t>::max()});
  EXPECT_EQ(Json(), R"("data":[0,18446744073709551615]}]})");
}

// Made-up answers must not pass for a model's own.
TEST_F(EncodeTest, EmulatedAnswersSaySo) {
  const auto json = [&] { return EncodeInferResponse(reply_, {})->json; };
  EXPECT_THAT(json(), Not(HasSubstr("emulated")));
  reply_.served.emulated = true;
  EXPECT_THAT(json(), HasSubstr(R"("tactus_execution_us":5,"tactus_emulated":true},"outputs")"));
}

TEST_F(EncodeTest, StringsThatAreNotTextMustBeBinary) {
  reply_.outputs.push_back({"y", DataType::kBytes, {1}, {}});
  storage_.emplace_back(
      std::vector{std::byte{1}, std::byte{}, std::byte{}, std::byte{}, std::byte{0xFF}});
  reply_.outputs.back().parts = {storage_.back()};
  EXPECT_THAT(Json(), HasSubstr("ask for it with binary_data"));
  ResponseForm form;
  form.binary = true;
  const auto response = EncodeInferResponse(reply_, form);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->binary_bytes, 5U);
  EXPECT_EQ(response->json,
            R"({"model_name":"m\"","model_version":"1","parameters":{"tactus_exit":"e",)"
            R"("tactus_batch_size":3,"tactus_queue_us":4,"tactus_execution_us":5},"outputs":[)"
            R"({"name":"y","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}}]})");
}

TEST(CheckForm, HalfPrecisionMustBeBinary) {
  auto model = std::make_shared<ModelSpec>();
  model->outputs = {{"f", DataType::kFp32, {1}}, {"h", DataType::kFp16, {1}}};
  InferCall call;
  call.model = model;
  EXPECT_FALSE(CheckForm(call, {}).has_value());
  EXPECT_TRUE(CheckForm(call, {.binary = true}).has_value());
  call.outputs = {0};
  EXPECT_TRUE(CheckForm(call, {}).has_value());
}

TEST(AppendJsonString, IsJsonWhateverTheBytes) {
  const auto json = [](std::string_view text) {
    std::string out;
    AppendJsonString(out, text);
    return out;
  };
  EXPECT_EQ(json("a\"\\\n\x01"), R"("a\"\\\n\u0001")");
  EXPECT_EQ(json("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  // Overlong, surrogate, cut off, beyond the last: each byte that fits nowhere is replaced.
  for (const std::string_view bad : {"\xC0", "\xED\xA0", "\xE2\x82", "\xF5", "\x80"}) {
    EXPECT_FALSE(IsUtf8(bad));
    EXPECT_THAT(json(bad), HasSubstr("\xEF\xBF\xBD"));
  }
}

TEST(RestBodies, RequestsOfTheRepository) {
  EXPECT_EQ(ParseIndexRequest(""), false);
  EXPECT_EQ(ParseIndexRequest(R"({"ready":true})"), true);
  EXPECT_FALSE(ParseIndexRequest(R"({"ready":1})").has_value());
  EXPECT_FALSE(ParseIndexRequest("[").has_value());
  EXPECT_FALSE(ParseIndexRequest(R"({"ready":true,"ready":false})").has_value());
  EXPECT_EQ(ParseLoadRequest(R"({"parameters":{"config":"{\"a\":1}"}})")->config, "{\"a\":1}");
  EXPECT_EQ(ParseLoadRequest(R"({"parameters":)").error().message,
            "failed to parse the request JSON: the body is cut off or is no JSON");
  EXPECT_EQ(ParseLoadRequest(R"({"parameters":{"file:1/m":"AQI=","file:l":""}})")->files,
            (ModelFiles{{"1/m", "\1\2"}, {"l", ""}}));
  for (const char* wrong : {R"({"config":{}})", R"({"file:1/m":"AQI"})", R"({"file:1/m":7})",
                            R"({"files":"AQI="})", "[]"}) {
    const auto given = ParseLoadRequest(fmt::format(R"({{"parameters":{}}})", wrong));
    ASSERT_FALSE(given.has_value()) << wrong;
    EXPECT_EQ(given.error().code, ErrorCode::kInvalidArgument) << wrong;
  }
  EXPECT_TRUE(ParseUnloadRequest(R"({"parameters":{"unload_dependents":true}})").has_value());
  EXPECT_FALSE(ParseUnloadRequest("7").has_value());
}

TEST(RestBodies, NullIsAbsentInRequestsOfTheRepository) {
  EXPECT_EQ(ParseIndexRequest(R"({"ready":null})"), false);
  EXPECT_EQ(ParseUnloadRequest(R"({"parameters":{"unload_dependents":null}})"), false);
  for (const char* body : {R"({"parameters":null})", R"({"parameters":{"config":null}})"}) {
    const auto given = ParseLoadRequest(body);
    ASSERT_TRUE(given.has_value()) << given.error().message;
    EXPECT_EQ(given->config, "");
    EXPECT_TRUE(given->files.empty());
  }
}

}  // namespace
}  // namespace tactus
