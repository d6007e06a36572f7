// A mistake in a chain must be told when it is loaded, with the operator and the argument: else it
// is found out by requests.
#include "engines/op/chain.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "engines/op/samples.h"

namespace tactus::op {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec SpecOf(std::map<std::string, std::string> parameters) {
  ModelSpec spec;
  spec.name = "m";
  spec.parameters = std::move(parameters);
  return spec;
}

std::string WhyNot(ModelSpec spec) {
  const auto chain = Chain::Make(spec);
  return chain ? "it loads" : chain.error().message;
}

const std::map<std::string, std::string> kPrepare{
    {"op", "decode_jpeg, resize ,normalize"}, {"resize.height", "32"}, {"resize.width", "48"}};

TEST(Chain, CompletesInputsAndOutputsOfAModelThatDeclaresNone) {
  ModelSpec spec = SpecOf(kPrepare);
  ASSERT_EQ(WhyNot(spec), "it loads");
  ASSERT_TRUE(Chain::Make(spec));
  ASSERT_EQ(spec.inputs.size(), 1u);
  EXPECT_EQ(spec.inputs[0].name, "jpeg");
  EXPECT_EQ(spec.inputs[0].dims, (Shape{-1}));
  std::vector<std::string> names;
  for (const TensorSpec& output : spec.outputs) names.push_back(output.name);
  EXPECT_THAT(names, ElementsAre("frame", "tensor")) << "pixels and resized are read again";
}

// Sizes that an operator keeps are known where those before it are: by metadata and by the steps
// of a pipeline.
TEST(Chain, KnowsTheSizesThatItsOperatorsKeep) {
  for (const auto& [layout, dims] :
       {std::pair<const char*, Shape>{"nchw", {1, 3, 32, 48}}, {"nhwc", {1, 32, 48, 3}}}) {
    ModelSpec spec = SpecOf(kPrepare);
    spec.parameters["normalize.layout"] = layout;
    ASSERT_EQ(WhyNot(spec), "it loads");
    const auto chain = Chain::Make(spec);
    EXPECT_EQ(spec.outputs[1].dims, dims) << layout;
    const auto results = chain->Run(chain->Sample());
    ASSERT_TRUE(results) << results.error().message;
    EXPECT_EQ((*results)[1].shape, dims) << layout;
  }
}

TEST(Chain, GivesWhatTheModelDeclaresAlsoFromTheMiddle) {
  ModelSpec spec = SpecOf(kPrepare);
  spec.inputs = {{"jpeg", DataType::kUint8, {-1}}};
  spec.outputs = {{"pixels", DataType::kUint8, {-1, -1, 3}},
                  {"tensor", DataType::kFp32, {1, 3, 32, 48}}};
  const auto chain = Chain::Make(spec);
  ASSERT_TRUE(chain) << chain.error().message;
  const auto results = chain->Run(chain->Sample());
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ((*results)[0].shape, (Shape{kSampleHeight, kSampleWidth, 3}));
  EXPECT_EQ((*results)[1].shape, (Shape{1, 3, 32, 48}));
}

TEST(Chain, EveryOperatorRunsOnItsOwnSample) {
  TemporaryFolder folder;
  std::ofstream(folder / "alphabet.txt") << "a\nb\n";
  for (const OperatorKind& kind : OperatorKinds()) {
    SCOPED_TRACE(kind.name);
    const std::string name(kind.name);
    ModelSpec spec = SpecOf({{"op", name}});
    spec.exits = {{"1", folder / "alphabet.txt", 0}};
    if (name == "resize" || name == "letterbox" || name == "crop" || name == "decode_jpegs") {
      spec.parameters[name + ".height"] = "24";
      spec.parameters[name + ".width"] = "16";
    }
    const auto chain = Chain::Make(spec);
    ASSERT_TRUE(chain) << chain.error().message;
    const auto first = chain->Run(chain->Sample());
    ASSERT_TRUE(first) << first.error().message;
    const auto again = chain->Run(chain->Sample());
    ASSERT_EQ(first->size(), spec.outputs.size());
    for (std::size_t i = 0; i < first->size(); ++i) {
      EXPECT_GT((*first)[i].bytes.size(), 0u) << spec.outputs[i].name;
      EXPECT_TRUE(std::ranges::equal((*first)[i].bytes, (*again)[i].bytes)) << "it is not pure";
    }
  }
}

TEST(Chain, MistakesNameTheOperatorAndTheArgument) {
  const auto with = [](std::string key, std::string value) {
    auto parameters = kPrepare;
    parameters[key] = value;
    return WhyNot(SpecOf(parameters));
  };
  EXPECT_THAT(WhyNot(SpecOf({})), HasSubstr("model 'm': parameters lack 'op'"));
  EXPECT_THAT(with("op", "decode_jpg"),
              HasSubstr("no operator 'decode_jpg'; there are: crop, ctc"));
  EXPECT_THAT(with("op", "resize, resize"), HasSubstr("'resize' stands twice: name one"));
  EXPECT_EQ(with("resize.width", "0"),
            "model 'm': operator 'resize': argument resize.width: '0' is not a whole number from 1 "
            "to 8192");
  EXPECT_THAT(with("resize.width", "4e2"), HasSubstr("argument resize.width: '4e2'"));
  EXPECT_THAT(with("resize.widht", "5"), HasSubstr("argument resize.widht: the operator knows no"));
  EXPECT_THAT(with("crop.width", "5"), HasSubstr("[\"crop.width\"]: the chain has no operator"));
  EXPECT_THAT(with("normalize.mean", "0,0"), HasSubstr("normalize.mean: '0,0' is not 3 numbers"));
  EXPECT_THAT(with("normalize.std", "1,1,0"), HasSubstr("normalize.std"));
  EXPECT_THAT(with("normalize.mean", "nan,0,0"), HasSubstr("normalize.mean"));
  EXPECT_THAT(with("normalize.layout", "hwc"), HasSubstr("'hwc' is none of nchw, nhwc"));
  EXPECT_THAT(WhyNot(SpecOf({{"op", "resize"}, {"resize.width", "5"}})),
              HasSubstr("argument resize.height: is missing"));
  EXPECT_THAT(WhyNot(SpecOf({{"op", "crop"}, {"crop.height", "8000"}, {"crop.width", "8000"}})),
              HasSubstr("crop.most: that many crops"));
  EXPECT_THAT(WhyNot(SpecOf({{"op", "ctc"}})), HasSubstr("default_model_filename"));
}

TEST(Chain, TensorsThatDoNotFitAreTold) {
  ModelSpec spec = SpecOf(kPrepare);
  spec.parameters["normalize.pixels"] = "frame";
  EXPECT_THAT(WhyNot(spec), HasSubstr("operator 'normalize': its pixels is 'frame', which is FP32 "
                                      "[4]; it must be UINT8 [-1,-1,3]"));
  spec.inputs = {{"jpeg", DataType::kUint8, {-1}}};
  spec.parameters["normalize.pixels"] = "nobody";
  EXPECT_THAT(WhyNot(spec), HasSubstr("operator 'normalize': it reads 'nobody'"));
  spec = SpecOf(kPrepare);
  spec.inputs = {{"image", DataType::kUint8, {-1}}};
  EXPECT_THAT(WhyNot(spec), HasSubstr("name another tensor in decode_jpeg.jpeg"));
  spec = SpecOf(kPrepare);
  spec.inputs = {{"jpeg", DataType::kUint8, {-1}}, {"more", DataType::kUint8, {-1}}};
  EXPECT_THAT(WhyNot(spec), HasSubstr("no operator reads its input 'more'"));
  spec = SpecOf(kPrepare);
  spec.outputs = {{"tensor", DataType::kFp32, {1, 32, 48, 3}}};
  EXPECT_THAT(WhyNot(spec), HasSubstr("output 'tensor' is declared FP32 [1,32,48,3], but operator "
                                      "'normalize' writes FP32 [1,3,32,48]"));
  spec.outputs = {{"tensor", DataType::kFp32, {1, 3, 48, 48}}};
  EXPECT_THAT(WhyNot(spec), HasSubstr("writes FP32 [1,3,32,48]")) << "the size is that of resize";
  spec.outputs = {{"pixels", DataType::kUint8, {9, 9, 3}}};
  const auto chain = Chain::Make(spec);
  ASSERT_TRUE(chain) << chain.error().message;
  EXPECT_THAT(chain->Run(chain->Sample()).error().message, HasSubstr("but is declared [9,9,3]"));
  spec = SpecOf(kPrepare);
  spec.max_batch = 4;
  EXPECT_THAT(WhyNot(spec), HasSubstr("set max_batch_size to 0, or to 1"));
}

}  // namespace
}  // namespace tactus::op
