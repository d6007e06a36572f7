#include "server/kserve/model_config.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kExits = R"(name: "net"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1, 28, 28 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 10 ] label_filename: "labels.txt" } ]
dynamic_batching { max_queue_delay_microseconds: 100 }
instance_group [ { kind: KIND_CPU count: 2 } ]
parameters { key: "slo_ms" value { string_value: "12.5" } }
parameters { key: "priority" value { string_value: "2" } }
parameters { key: "exits" value { string_value: "early.onnx, late.onnx" } }
parameters { key: "exit_names" value { string_value: "early,late" } }
parameters { key: "accuracy" value { string_value: "0.75, 0.9" } }
parameters { key: "theirs" value { string_value: "kept" } }
)";

class ModelConfigTest : public testing::Test {
 protected:
  ModelConfigTest() { fs::create_directories(folder_); }

  void Config(std::string_view text) { std::ofstream(folder_ / "config.pbtxt") << text; }
  void Graph(std::string_view version, std::string_view file) {
    fs::create_directories(folder_ / version);
    std::ofstream(folder_ / version / file) << "graph";
  }
  // Reads version 1 with this configuration and says what is wrong with it, from its place on.
  std::string Mistake(std::string_view text) {
    Config(text);
    Graph("1", "model.onnx");
    const auto spec = ReadModelSpec(folder_, 1, "");
    if (spec) return "no mistake";
    const std::string& message = spec.error().message;
    const std::string file = (folder_ / "config.pbtxt").string() + ":";
    return message.starts_with(file) ? message.substr(file.size()) : message;
  }

  const TemporaryFolder root_;
  const fs::path folder_ = root_ / "net";
};

TEST_F(ModelConfigTest, ReadsTheLabelsOfItsOutputs) {
  Config(kExits);
  Graph("1", "early.onnx");
  Graph("1", "late.onnx");
  std::vector<std::string> doubts;
  const auto unnamed = ReadModelSpec(folder_, 1, "", {.platforms = {}, .doubts = &doubts});
  ASSERT_TRUE(unnamed.has_value());
  EXPECT_TRUE(unnamed->labels.empty());
  EXPECT_THAT(doubts, testing::Contains(HasSubstr("label_filename: 'labels.txt' is no file")));
  std::ofstream(folder_ / "labels.txt") << "cat\r\nlarge dog\n";
  const auto named = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(named.has_value());
  EXPECT_THAT(named->labels.at("y"), ElementsAre("cat", "large dog"));
}

TEST_F(ModelConfigTest, ReadsWhatAnEarlyExitModelDeclares) {
  Config(kExits);
  Graph("3", "early.onnx");
  Graph("3", "late.onnx");
  const auto spec = ReadModelSpec(folder_, 3, "");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->name, "net");
  EXPECT_EQ(spec->version, 3);
  EXPECT_EQ(spec->max_batch, 8);
  EXPECT_EQ(spec->slo, Micros(12'500));
  EXPECT_EQ(spec->priority, 2);
  ASSERT_EQ(spec->inputs.size(), 1U);
  EXPECT_THAT(spec->inputs[0].dims, ElementsAre(-1, 1, 28, 28));
  ASSERT_EQ(spec->exits.size(), 2U);
  EXPECT_EQ(spec->exits[0].name, "early");
  EXPECT_EQ(spec->exits[1].graph, folder_ / "3" / "late.onnx");
  EXPECT_DOUBLE_EQ(spec->exits[1].accuracy, 0.9);
  EXPECT_EQ(spec->parameters.at("theirs"), "kept");
}

TEST_F(ModelConfigTest, AFolderWithoutConfigurationHoldsAnOnnxModel) {
  Graph("1", "model.onnx");
  const auto spec = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->platform, "onnxruntime_onnx");
  EXPECT_EQ(spec->max_batch, -1) << "for the engine to find out";
  EXPECT_EQ(spec->slo, Duration{});
  ASSERT_EQ(spec->exits.size(), 1U);
  EXPECT_EQ(spec->exits[0].graph, folder_ / "1" / "model.onnx");
}

TEST_F(ModelConfigTest, ABatchMayBeAssumed) {
  Graph("1", "model.onnx");
  const auto spec = [&](const std::string& text) {
    Config(text);
    return ReadModelSpec(folder_, 1, "");
  };
  const std::string assumed = "parameters { key: 'batch' value { string_value: 'assumed' } }\n";
  EXPECT_EQ(spec("max_batch_size: 8")->batch_origin, BatchOrigin::kDeclared);
  const auto eight = spec("max_batch_size: 8 " + assumed);
  ASSERT_TRUE(eight) << eight.error().message;
  EXPECT_EQ(eight->batch_origin, BatchOrigin::kAssumed);
  EXPECT_EQ(eight->max_batch, 8);
  const auto unknown = spec(assumed + "input { name: 'x' data_type: TYPE_FP32 dims: [ -1, 4 ] }");
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_EQ(unknown->batch_origin, BatchOrigin::kAssumed);
  EXPECT_EQ(unknown->max_batch, -1);
  EXPECT_EQ(unknown->inputs[0].dims, (Shape{-1, 4}));
}

TEST_F(ModelConfigTest, ModelsWithoutGraphsNeedNoFiles) {
  Config(
      "backend: 'emulated' max_batch_size: 4 "
      "parameters { key: 'exit_names' value { string_value: 'a,b,c' } }");
  EXPECT_THAT(*ListVersions(folder_, ""), ElementsAre(1));
  const auto spec = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->platform, "emulated");
  EXPECT_EQ(spec->exits.size(), 3U);
}

TEST_F(ModelConfigTest, AChainOfOperatorsMayHaveADataFile) {
  constexpr std::string_view kChain = R"(platform: "tactus_op"
parameters { key: "op" value { string_value: "ctc" } }
parameters { key: "ctc.what" value { string_value: "5" } }
parameters { key: "thing" value { string_value: "5" } }
)";
  Config(kChain);
  EXPECT_THAT(ListVersions(folder_, "").value(), ElementsAre(1)) << "no file, no folder";
  std::vector<std::string> doubts;
  const auto without = ReadModelSpec(folder_, 1, "", {.platforms = {}, .doubts = &doubts});
  ASSERT_TRUE(without.has_value()) << without.error().message;
  EXPECT_TRUE(without->exits.at(0).graph.empty());
  // The operators' own keys are their engine's to judge.
  EXPECT_THAT(doubts, ElementsAre(HasSubstr("parameters[\"thing\"]")));
  Config(std::string(kChain) + "default_model_filename: \"alphabet.txt\"\n");
  EXPECT_FALSE(ListVersions(folder_, "").has_value());
  Graph("2", "alphabet.txt");
  const auto with = ReadModelSpec(folder_, 2, "");
  ASSERT_TRUE(with.has_value()) << with.error().message;
  EXPECT_EQ(with->exits.at(0).graph, folder_ / "2" / "alphabet.txt");
  EXPECT_EQ(ReadPlatform(folder_, "").value(), "tactus_op");
  EXPECT_EQ(ReadPlatform(folder_, R"({"backend": "identity"})").value(), "identity");
  Config("platfrom: 5");
  EXPECT_THAT(ReadPlatform(folder_, "").error().message, HasSubstr("config.pbtxt:1"));
}

TEST_F(ModelConfigTest, AnEmulatedModelNamesItsLatencies) {
  const auto read = [&](const std::string& platform, const std::string& file) {
    Config("platform: '" + platform + "'\n" +
           "parameters { key: 'profile' value { string_value: '" + file + "' } }");
    return ReadModelSpec(folder_, 1, "");
  };
  EXPECT_EQ(read("emulated", "a100.csv")->profile, folder_ / "a100.csv");
  EXPECT_THAT(
      read("emulated", "../a100.csv").error().message,
      HasSubstr("config.pbtxt:2:19: parameters[\"profile\"]: '../a100.csv' is not a file of "
                "the model's folder"));
  EXPECT_THAT(read("onnxruntime_onnx", "a100.csv").error().message,
              HasSubstr("only emulated models bring their latencies along"));
}

TEST_F(ModelConfigTest, TheVersionPolicyChooses) {
  for (const char* version : {"1", "2", "10", "007", "x", "-3"}) Graph(version, "model.onnx");
  const auto versions = [&](std::string_view policy) {
    Config(fmt::format("version_policy {{ {} }}", policy));
    return ListVersions(folder_, "");
  };
  EXPECT_THAT(*versions(""), ElementsAre(10));
  EXPECT_THAT(*versions("latest { num_versions: 2 }"), ElementsAre(2, 10));
  EXPECT_THAT(*versions("all {}"), ElementsAre(1, 2, 10));
  EXPECT_THAT(*versions("specific { versions: [ 10, 1 ] }"), ElementsAre(1, 10));
  EXPECT_THAT(*versions("specific { versions: [ 1, 5 ] }"), ElementsAre(1)) << "as Triton";
  EXPECT_THAT(versions("specific { versions: 5 }").error().message,
              HasSubstr("version_policy: there is no version 5"));
  EXPECT_FALSE(versions("latest { num_versions: 0 }").has_value());
  EXPECT_THAT(*ListVersions(folder_, R"({"version_policy":{"all":{}}})"), ElementsAre(1, 2, 10));
}

TEST_F(ModelConfigTest, MissingFilesAreNamed) {
  EXPECT_EQ(ListVersions(folder_ / "none", "").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(ListVersions(folder_, "").error().message, HasSubstr("no version folder"));
  Config("default_model_filename: 'other.onnx'");
  EXPECT_THAT(ReadModelSpec(folder_, 1, "").error().message, HasSubstr("1/other.onnx"));
}

// The graph that people have is nearly right; what is said must be what they are to do.
TEST_F(ModelConfigTest, AGraphOfAnotherNameIsFoundAndNamed) {
  const auto why = [this] { return ReadModelSpec(folder_, 1, "").error().message; };
  Graph("1", "notes.txt");
  EXPECT_THAT(why(), testing::EndsWith("exit '1')"));
  Graph("1", "net.pt");
  EXPECT_THAT(why(), HasSubstr("net.pt is no ONNX graph: export the model to ONNX"));
  Graph("1", "net.onnx");
  EXPECT_THAT(why(), HasSubstr("net.onnx is there: rename it to model.onnx, or state "
                               "`default_model_filename: \"net.onnx\"`"));
  Graph("1", "big.onnx");
  EXPECT_THAT(why(), HasSubstr("big.onnx, net.onnx are there"));
}

// Triton's layout for a graph whose weights lie beside it.
TEST_F(ModelConfigTest, ALinkToNothingAndAPipeInTheGraphsPlaceAreNamedAsSuch) {
  const auto graph = folder_ / "1/model.onnx";
  std::filesystem::create_directories(folder_ / "1");
  std::filesystem::create_symlink("gone.onnx", graph);
  EXPECT_THAT(ReadModelSpec(folder_, 1, "").error().message,
              ::testing::EndsWith("it is a link to gone.onnx, which is not there"));
  std::filesystem::remove(graph);
  ASSERT_EQ(mkfifo(graph.c_str(), 0600), 0);
  EXPECT_THAT(ReadModelSpec(folder_, 1, "").error().message,
              ::testing::EndsWith("what is there is a pipe or a device, no file"));
}

TEST_F(ModelConfigTest, AFolderOfTheGraphsNameHoldsTheGraph) {
  Graph("1/model.onnx", "weights.bin");
  EXPECT_THAT(ReadModelSpec(folder_, 1, "").error().message, HasSubstr("no such graph file"));
  Graph("1/model.onnx", "model.onnx");
  const auto spec = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->exits[0].graph, folder_ / "1/model.onnx/model.onnx");
}

TEST_F(ModelConfigTest, AMarkOfTheEncodingInFrontIsNoMistake) {
  EXPECT_EQ(Mistake("\xEF\xBB\xBFmax_batch_size: 8\n"), "no mistake");
  EXPECT_THAT(Mistake("\xEF\xBB\xBF\nmax_batchsize: 8\n"), HasSubstr("2:14: "));
  EXPECT_THAT(Mistake("{ \"max_batch_size\": 8 }"),
              testing::AllOf(testing::StartsWith("1:1: "), HasSubstr("looks like JSON")));
}

TEST_F(ModelConfigTest, AKeyOfAnOverrideThatStandsTwiceIsAMistake) {
  Graph("1/model.onnx", "graph");
  const auto said = [this](const char* json) {
    return ReadModelSpec(folder_, 1, json).error().message;
  };
  EXPECT_EQ(said(R"({"max_batch_size":8,"max_batch_size":4})"),
            "config: 'max_batch_size' is given twice");
  EXPECT_EQ(said(R"({"max_batch_size":8,"maxBatchSize":4})"),
            "config: 'maxBatchSize' is given twice");
  EXPECT_EQ(said(R"({"input":[{"name":"a"},{"name":"b","name":"c"}]})"),
            "config: 'name' is given twice");
}

TEST_F(ModelConfigTest, MistakesNameLineColumnAndField) {
  EXPECT_EQ(Mistake("name: \"net\"\nmax_batchsize: 8\n"),
            "2:14: Message type \"inference.ModelConfig\" has no field named \"max_batchsize\".");
  EXPECT_THAT(Mistake("\n\nmax_batch_size: -1\n"), HasSubstr("3:1: max_batch_size: -1"));
  EXPECT_THAT(Mistake("max_batch_size: \"8\""), testing::StartsWith("1:17: Expected integer"));
  EXPECT_THAT(Mistake("name: \"other\""),
              HasSubstr("1:1: name: 'other' is not the folder's name 'net'; make them equal"));
  EXPECT_THAT(Mistake("input [ {"), testing::StartsWith("1:10: "));
  EXPECT_THAT(Mistake("input { name: 'a' data_type: TYPE_FP32 dims: 1 }\n"
                      "input { name: 'a' data_type: TYPE_FP32 dims: 1 }"),
              HasSubstr("2:1: input: 'a' is declared twice"));
  EXPECT_THAT(Mistake("input { name: 'a' dims: 1 }"), HasSubstr("'a': data_type is missing"));
  EXPECT_THAT(Mistake("input { name: 'a' data_type: TYPE_FP32 }"), HasSubstr("dims is missing"));
  EXPECT_THAT(Mistake("output { name: 'a' data_type: TYPE_FP32 dims: -2 }"),
              HasSubstr("1:1: output: 'a': dims: -2 is neither"));
  EXPECT_THAT(Mistake("input { name: 'a' data_type: TYPE_FP64 dims: [ 4294967296, 4294967296 ] }"),
              HasSubstr("too large"));
  EXPECT_THAT(Mistake("sequence_batching {}"), HasSubstr("1:1: sequence_batching: not supported"));
  EXPECT_THAT(Mistake("default_model_filename: '../../secret'"),
              HasSubstr("not a file of the version folder"));
}

TEST_F(ModelConfigTest, ReshapeIsWhatTheModelHasInPlaceOfDims) {
  Config(
      "max_batch_size: 8\n"
      "input { name: 'x' data_type: TYPE_FP32 dims: 1 reshape { shape: [] } }\n"
      "input { name: 'z' data_type: TYPE_FP32 dims: [ 4, -1, 6 ] reshape { shape: [ 2, 2, -1, 3, "
      "2 ] } }\n"
      "output { name: 'y' data_type: TYPE_FP32 dims: [ 2, 3 ] reshape { shape: 6 } }\n"
      "output { name: 'w' data_type: TYPE_FP32 dims: 5 reshape { shape: 5 } }");
  Graph("1", "model.onnx");
  auto spec = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_THAT(spec->inputs[0].dims, ElementsAre(-1, 1));
  EXPECT_EQ(spec->inputs[0].reshape, (Shape{-1}));
  EXPECT_EQ(spec->inputs[1].reshape, (Shape{-1, 2, 2, -1, 3, 2}));
  EXPECT_THAT(spec->outputs[0].dims, ElementsAre(-1, 2, 3));
  EXPECT_EQ(spec->outputs[0].reshape, (Shape{-1, 6}));
  EXPECT_FALSE(spec->outputs[1].reshape) << "nothing to do";
  // The engine knows an open dimension.
  spec->inputs[1].dims[2] = 9;
  spec->inputs[1].reshape->at(3) = 9;
  const auto config = nlohmann::json::parse(ModelConfigJson(*spec).value());
  EXPECT_EQ(config["input"][0]["dims"], (std::vector{1}));
  EXPECT_EQ(config["input"][0]["reshape"]["shape"], nlohmann::json::array());
  EXPECT_EQ(config["input"][1]["reshape"]["shape"], (std::vector{2, 2, 9, 3, 2}));
  EXPECT_EQ(config["output"][0]["reshape"]["shape"], (std::vector{6}));
  EXPECT_EQ(config["output"][1]["reshape"]["shape"], (std::vector{5}));

  Config("input { name: 'x' data_type: TYPE_FP32 dims: 1 reshape { shape: [] } }");
  const auto scalar = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(scalar.has_value()) << scalar.error().message;
  EXPECT_EQ(scalar->inputs[0].reshape, Shape{});
}

// The model would be run with a tensor of another size than its bytes.
TEST_F(ModelConfigTest, AReshapeOfOtherElementsIsAMistake) {
  const auto mistake = [&](std::string_view dims, std::string_view shape,
                           std::string_view model = "max_batch_size: 4") {
    return Mistake(fmt::format(
        "{}\ninput {{ name: 'x' data_type: TYPE_FP32 dims: [ {} ] reshape {{ shape: [ {} ] }} }}",
        model, dims, shape));
  };
  EXPECT_EQ(mistake("2, 3", "4"),
            "2:1: input: 'x': reshape: [4] does not have as many elements as dims [2,3]; make the "
            "products of their sizes equal");
  EXPECT_EQ(mistake("2", ""),
            "2:1: input: 'x': reshape: [] does not have as many elements as dims [2]; make the "
            "products of their sizes equal");
  EXPECT_EQ(
      mistake("6", "-1"),
      "2:1: input: 'x': reshape: [-1] has 1 of -1, and dims [6] has 0; state as many in both");
  EXPECT_THAT(mistake("-1, -1", "-1"), HasSubstr("[-1] has 1 of -1, and dims [-1,-1] has 2"));
  EXPECT_EQ(mistake("-1, 6", "6, -1"),
            "2:1: input: 'x': reshape: [6,-1] does not have as many elements as dims [-1,6]; make "
            "the products of their sizes equal before, between and behind the -1");
  EXPECT_THAT(mistake("6", "0, 6"), HasSubstr("'x': reshape: 0 is neither a size nor -1"));
  EXPECT_THAT(mistake("6", "-2"), HasSubstr("'x': reshape: -2 is neither a size nor -1"));
  EXPECT_THAT(mistake("6", "4294967296, 4294967296"), HasSubstr("reshape: their product is too"));
  EXPECT_THAT(Mistake("output { name: 'y' data_type: TYPE_FP32 dims: 2 reshape { shape: 3 } }"),
              HasSubstr("1:1: output: 'y': reshape: [3] does not have as many"));
}

TEST_F(ModelConfigTest, AModelWithoutAGraphOfItsOwnHasNoReshape) {
  const std::string input =
      "input { name: 'x' data_type: TYPE_FP32 dims: 1 reshape { shape: [] } }\n";
  EXPECT_THAT(Mistake("platform: 'ensemble'\n" + input + "ensemble_scheduling {}"),
              testing::StartsWith("2:1: input: 'x': reshape: an ensemble has no graph of its own; "
                                  "state it in the configuration of the step's model"));
  EXPECT_THAT(Mistake("platform: 'tactus_op'\n" + input),
              testing::StartsWith("2:1: input: 'x': reshape: operators take tensors as they are"));
}

TEST_F(ModelConfigTest, OptionalInputsAreThoseThatARequestMayLeaveOut) {
  const std::string tensors =
      "input { name: 'x' data_type: TYPE_FP32 dims: 4 }\n"
      "input { name: 'z' data_type: TYPE_FP32 dims: 4 optional: true }\n";
  Config("max_batch_size: 8\n" + tensors);
  Graph("1", "model.onnx");
  const auto spec = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_FALSE(spec->inputs[0].optional);
  EXPECT_TRUE(spec->inputs[1].optional);
  const auto config = nlohmann::json::parse(ModelConfigJson(*spec).value());
  EXPECT_EQ(config["input"][0]["optional"], false);
  EXPECT_EQ(config["input"][1]["optional"], true);
  EXPECT_THAT(Mistake("platform: 'ensemble'\n" + tensors + "ensemble_scheduling {}"),
              testing::StartsWith("3:1: input: 'z': optional: an ensemble passes on all of its"));
  const std::string all = "input { name: 'z' data_type: TYPE_FP32 dims: 4 optional: true }\n";
  EXPECT_THAT(Mistake(all + "max_batch_size: 8"),
              testing::StartsWith("1:1: input: optional: all inputs are, and with max_batch_size"));
  EXPECT_EQ(Mistake(all), "no mistake");
}

TEST_F(ModelConfigTest, AParameterSaysThatATensorHasAnyShape) {
  const std::string tensors =
      "input { name: 'x' data_type: TYPE_FP32 dims: -1 }\n"
      "input { name: 'z' data_type: TYPE_FP32 dims: -1 }\n";
  const auto any = [](const std::string& tensor, const std::string& value) {
    return "parameters { key: 'any_shape." + tensor + "' value { string_value: '" + value +
           "' } }\n";
  };
  Config(tensors + any("x", "true"));
  Graph("1", "model.onnx");
  std::vector<std::string> doubts;
  auto spec = ReadModelSpec(folder_, 1, "", {{}, &doubts});
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_THAT(doubts, testing::IsEmpty());
  EXPECT_TRUE(spec->inputs[0].any_shape);
  EXPECT_FALSE(spec->inputs[1].any_shape);
  // An engine may find it out, and clients are to know it.
  spec->inputs[1].any_shape = true;
  const auto config = nlohmann::json::parse(ModelConfigJson(*spec).value());
  EXPECT_EQ(config["parameters"]["any_shape.x"]["string_value"], "true");
  EXPECT_EQ(config["parameters"]["any_shape.z"]["string_value"], "true");
  EXPECT_EQ(config["input"][1]["dims"], nlohmann::json({-1}));
  EXPECT_THAT(Mistake(tensors + any("x", "yes")),
              testing::StartsWith("3:19: parameters[\"any_shape.x\"]: must be true"));
  for (const char* const before :
       {"max_batch_size: 4\n", "input { name: 'w' data_type: TYPE_FP32 dims: 2 }\n"}) {
    EXPECT_THAT(Mistake(before + tensors + any(before[0] == 'm' ? "x" : "w", "true")),
                HasSubstr("state `dims: [ -1 ]`"));
  }
  Config(tensors + any("nobody", "true") + "output { name: 'y' data_type: TYPE_FP32 dims: 2 }");
  ASSERT_TRUE(ReadModelSpec(folder_, 1, "", {{}, &doubts}));
  EXPECT_THAT(doubts, testing::ElementsAre(HasSubstr("any_shape.nobody\"]: no key of Tactus")));
}

TEST_F(ModelConfigTest, TextThatIsNotUtf8IsAMistake) {
  EXPECT_EQ(Mistake("backend:\n \"\xFF\""), "2:3: the text is not UTF-8");
  EXPECT_THAT(Mistake(R"(backend: "\xff")"), HasSubstr("do not spell UTF-8"));
}

TEST_F(ModelConfigTest, MistakesInOurParametersNameTheKeysLine) {
  const auto mistake = [&](std::string_view key, std::string_view value) {
    return Mistake(
        fmt::format("name: 'net'\nparameters {{\n  key: \"{}\" value {{ string_value: \"{}\" }} }}",
                    key, value));
  };
  EXPECT_EQ(mistake("slo_ms", "soon"),
            "3:8: parameters[\"slo_ms\"]: 'soon' is not a number of milliseconds above 0, up to a "
            "day");
  for (const char* value : {"0", "-5", "nan", "inf", "1e99", "", "5ms"}) {
    EXPECT_THAT(mistake("slo_ms", value), HasSubstr("3:8: parameters[\"slo_ms\"]")) << value;
  }
  EXPECT_THAT(mistake("priority", "0"), HasSubstr("3:8: parameters[\"priority\"]"));
  EXPECT_THAT(mistake("priority", "1000001"),
              HasSubstr("'1000001' is not a whole number from 1 (highest) to 1000000"));
  EXPECT_THAT(mistake("exits", "a.onnx,,b.onnx"), HasSubstr("'' is not a file"));
  EXPECT_THAT(mistake("exits", "../a.onnx"), HasSubstr("not a file of the version folder"));
  EXPECT_THAT(mistake("exit_names", "a,b"), HasSubstr("2 names for 1 exits"));
  EXPECT_THAT(mistake("accuracy", "0.5,0.6"), HasSubstr("2 values for 1 exits"));
  EXPECT_THAT(mistake("accuracy", "90"), HasSubstr("not a fraction"));
  EXPECT_THAT(mistake("batch", "8"),
              HasSubstr("3:8: parameters[\"batch\"]: '8' is not \"assumed\""));
  EXPECT_THAT(Mistake("platform: 'identity'\n"
                      "parameters { key: \"batch\" value { string_value: \"assumed\" } }"),
              HasSubstr("only graphs of ONNX are tried"));
}

// A deadline whose key is misspelt would otherwise silently be the server's default.
TEST_F(ModelConfigTest, WhatIsNotHeededIsNamedWithItsLine) {
  for (const char* graph : {"model.onnx", "early.onnx", "late.onnx"}) Graph("1", graph);
  std::ofstream(folder_ / "labels.txt") << "one\n";
  const auto doubts = [&](std::string_view text) {
    Config(text);
    std::vector<std::string> lines;
    const auto spec = ReadModelSpec(folder_, 1, "", {.doubts = &lines});
    EXPECT_TRUE(spec) << spec.error().message;
    const std::string file = (folder_ / "config.pbtxt").string() + ":";
    for (std::string& line : lines) {
      if (line.starts_with(file)) line.erase(0, file.size());
    }
    return lines;
  };
  EXPECT_THAT(doubts("name: 'net'\nparameters { key: 'slo-ms' value { string_value: '5' } }"),
              ElementsAre(HasSubstr(
                  "2:19: parameters[\"slo-ms\"]: no key of Tactus (did you mean 'slo_ms'?)")));
  EXPECT_THAT(doubts(kExits),
              ElementsAre(HasSubstr("13:19: parameters[\"theirs\"]: no key of Tactus"),
                          HasSubstr("7:1: instance_group: not heeded"),
                          HasSubstr("6:1: dynamic_batching: preferred_batch_size and max_queue")));
  EXPECT_THAT(doubts("input { name: 'x' data_type: TYPE_FP32 dims: -1 }\n"
                     "parameters { key: 'profile_shape.x' value { string_value: '5' } }\n"
                     "parameters { key: 'profile_shape.y' value { string_value: '5' } }"),
              ElementsAre(HasSubstr("3:19: parameters[\"profile_shape.y\"]")));
  EXPECT_THAT(doubts("dynamic_batching { default_queue_policy { max_queue_size: 4 } }\n"
                     "model_warmup {} model_warmup {}\nresponse_cache { enable: true }\n"
                     "instance_group { kind: KIND_CPU count: 1 } instance_group { gpus: 0 }"),
              ElementsAre(HasSubstr("4:44: instance_group"), HasSubstr("1:1: dynamic_batching"),
                          HasSubstr("2:17: model_warmup"), HasSubstr("3:1: response_cache")));
  EXPECT_THAT(doubts("name: 'net'\ndynamic_batching { max_queue_delay_microseconds: 100 }"),
              ElementsAre(HasSubstr("2:1: dynamic_batching: preferred_batch_size and max_queue")));
  EXPECT_THAT(doubts("dynamic_batching { preferred_batch_size: 4 priority_levels: 2 }\n"
                     "optimization { graph { level: 1 } }\n"
                     "model_operations { op_library_filename: 'ops.so' }"),
              ElementsAre(HasSubstr("1:1: dynamic_batching: preferred_batch_size"),
                          HasSubstr("1:1: dynamic_batching: its priority levels"),
                          HasSubstr("2:1: optimization"), HasSubstr("3:1: model_operations")));
  EXPECT_THAT(doubts("name: 'net'\ndynamic_batching {}"), ElementsAre());
}

// Without it a graph that takes no made-up row is served without a profile.
TEST_F(ModelConfigTest, ReadsTheRowToMeasureWithFromTheFirstWarmup) {
  const std::string model =
      "backend: 'emulated' max_batch_size: 4 input { name: 'a' data_type: TYPE_STRING dims: [2] } "
      "input { name: 'b' data_type: TYPE_FP32 dims: [-1] }\n";
  Config(model +
         "model_warmup { inputs { key: 'b' value { data_type: TYPE_FP32 dims: [3] random_data: "
         "true } } inputs { key: 'a' value { data_type: TYPE_STRING dims: [2] input_data_file: "
         "'words' } } }");
  const auto spec = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  ASSERT_EQ(spec->sample.size(), 2U);
  EXPECT_EQ(spec->sample[0].input, "a");
  EXPECT_EQ(spec->sample[0].data, StatedSample::Data::kFile);
  EXPECT_EQ(spec->sample[0].file, folder_ / "warmup" / "words");
  EXPECT_EQ(spec->sample[1].data, StatedSample::Data::kNoise);
  EXPECT_THAT(spec->sample[1].dims, ElementsAre(3));

  const auto mistake = [&](const std::string& input) {
    return Mistake(model + "model_warmup { inputs { " + input + " } }");
  };
  EXPECT_EQ(mistake("key: 'c' value { data_type: TYPE_FP32 dims: [3] zero_data: true }"),
            "2:1: model_warmup: input 'c': the model declares no such input");
  EXPECT_THAT(mistake("key: 'b' value { data_type: TYPE_INT32 dims: [3] zero_data: true }"),
              HasSubstr("data_type is not that of the model's input"));
  EXPECT_THAT(mistake("key: 'b' value { data_type: TYPE_FP32 dims: [-1] zero_data: true }"),
              HasSubstr("dims: -1 is no size"));
  EXPECT_THAT(mistake("key: 'b' value { data_type: TYPE_FP32 zero_data: true }"),
              HasSubstr("dims is missing"));
  EXPECT_THAT(mistake("key: 'b' value { data_type: TYPE_FP32 dims: [3] }"),
              HasSubstr("zero_data, random_data or input_data_file is missing"));
  for (const char* out : {"../x", "/etc/passwd", "a/../../x", ""}) {
    EXPECT_THAT(mistake("key: 'b' value { data_type: TYPE_FP32 dims: [3] input_data_file: '" +
                        std::string(out) + "' }"),
                HasSubstr("is not a file of the model's folder 'warmup'"))
        << out;
  }
}

TEST_F(ModelConfigTest, APlatformThatNobodyRunsIsNamedWithItsLine) {
  Graph("1", "model.onnx");
  const std::vector<std::string> platforms = {"onnxruntime_onnx", "identity"};
  const auto wrong = [&](std::string_view text) {
    Config(text);
    const auto spec = ReadModelSpec(folder_, 1, "", {.platforms = platforms});
    return spec ? "none" : spec.error().message;
  };
  EXPECT_EQ(wrong("backend: 'onnxruntime'"), "none");
  EXPECT_EQ(wrong("platform: 'identity'"), "none");
  EXPECT_EQ(wrong(""), "none");
  EXPECT_THAT(wrong("name: 'net'\nbackend: 'pytorch'"),
              HasSubstr("config.pbtxt:2:1: backend: 'pytorch' is none that this server runs; there "
                        "are: onnxruntime_onnx, identity"));
  EXPECT_THAT(wrong("platform: 'tensorrt_plan'"), HasSubstr("config.pbtxt:1:1: platform: 'tens"));
}

TEST_F(ModelConfigTest, JsonReplacesTheFile) {
  Config("this is not a configuration");
  Graph("1", "model.onnx");
  const auto spec = ReadModelSpec(
      folder_, 1, R"({"max_batch_size": 3, "parameters": {"slo_ms": {"string_value": "7"}}})");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->max_batch, 3);
  EXPECT_EQ(spec->slo, Millis(7));
  const std::string long_word = R"({"name": ")" + std::string(std::size_t{1} << 20, 'x') + "\"}";
  EXPECT_THAT(ReadModelSpec(folder_, 1, long_word).error().message,
              HasSubstr("config: 1048588 bytes, and a configuration has 1048576 at most"));
  EXPECT_THAT(ReadModelSpec(folder_, 1, R"({"max_batchsize": 3})").error().message,
              HasSubstr("max_batchsize"));
  EXPECT_EQ(ReadModelSpec(folder_, 1, "[]").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ModelConfigTest, JsonOfTheConfigurationIsCompletedAndKeepsTheRest) {
  Config(kExits);
  Graph("1", "early.onnx");
  Graph("1", "late.onnx");
  auto spec = ReadModelSpec(folder_, 1, "");
  ASSERT_TRUE(spec.has_value());
  // The engine found another output than the folder declares.
  spec->outputs.push_back({"z", DataType::kBytes, {-1, 2, -1}});
  const auto json = ModelConfigJson(*spec);
  ASSERT_TRUE(json.has_value());
  const auto config = nlohmann::json::parse(*json);
  EXPECT_EQ(config["name"], "net");
  EXPECT_EQ(config["backend"], "onnxruntime");
  EXPECT_EQ(config["max_batch_size"], 8);
  EXPECT_EQ(config["input"][0]["dims"], (std::vector{1, 28, 28}));
  EXPECT_EQ(config["output"][0]["label_filename"], "labels.txt");
  EXPECT_EQ(config["output"][1]["data_type"], "TYPE_STRING");
  EXPECT_EQ(config["output"][1]["dims"], (std::vector{2, -1}));
  EXPECT_EQ(config["dynamic_batching"]["max_queue_delay_microseconds"], 100);
  EXPECT_EQ(config["instance_group"][0]["kind"], "KIND_CPU");
  EXPECT_EQ(config["parameters"]["slo_ms"]["string_value"], "12.5");
  EXPECT_EQ(config["version_policy"]["latest"]["num_versions"], 1);
  EXPECT_FALSE(config.contains("sequence_batching"));
}

}  // namespace
}  // namespace tactus
