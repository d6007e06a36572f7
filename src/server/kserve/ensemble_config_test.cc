// Configurations of ensembles: what they come to, and what a mistake in one says.
#include "server/kserve/ensemble_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/kserve/config_fields.h"
#include "server/kserve/declared_config.h"

namespace tactus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kHead = R"(platform: "ensemble"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 4 ] } ]
)";
constexpr std::string_view kSteps = R"(ensemble_scheduling { step [
  { model_name: "find" input_map { key: "in" value: "x" } output_map { key: "out" value: "m" } },
  { model_name: "read" model_version: 2
    input_map { key: "in" value: "m" } output_map { key: "out" value: "n" } },
  { model_name: "read" input_map { key: "in" value: "n" } output_map { key: "out" value: "y" } }
] }
)";

std::string ParameterText(std::string_view key, std::string_view value) {
  return "parameters { key: \"" + std::string(key) + "\" value: { string_value: \"" +
         std::string(value) + "\" } }\n";
}

Expected<EnsembleDeclaration> ReadText(std::string text) {
  const auto config = DeclaredConfig::FromText(std::move(text), "m/config.pbtxt");
  if (!config) return std::unexpected(config.error());
  return EnsembleOf(*config, "/models/m", 1);
}
Expected<EnsembleDeclaration> With(std::string_view key, std::string_view value) {
  return ReadText(std::string(kHead) + std::string(kSteps) + ParameterText(key, value));
}
std::string ErrorOf(const Expected<EnsembleDeclaration>& read) {
  return read ? "no error" : read.error().message;
}
// With the steps changed.
std::string ErrorWith(std::string_view old, std::string_view replaced) {
  std::string text = std::string(kHead) + std::string(kSteps);
  const std::size_t at = text.find(old);
  EXPECT_NE(at, text.npos);
  return ErrorOf(ReadText(text.replace(at, old.size(), replaced)));
}

TEST(EnsembleConfig, BecomesAPipeline) {
  const auto read =
      ReadText(std::string(kHead) + std::string(kSteps) + ParameterText("slo_ms", "80") +
               ParameterText("demultiply", "find") + ParameterText("demultiply_most", "7") +
               ParameterText("gather", "read#2") + ParameterText("answer", "each") +
               ParameterText("budget_ms.find", "20") + ParameterText("budget_ms.read", "30") +
               ParameterText("budget_ms.read#2", "30"));
  ASSERT_TRUE(read) << ErrorOf(read);
  const PipelineDeclaration& pipeline = read->pipeline;
  EXPECT_EQ(pipeline.name, "m");
  EXPECT_EQ(pipeline.slo, Millis(80));
  EXPECT_EQ(pipeline.deadlines, DeadlineRule::kSpare);
  EXPECT_EQ(pipeline.answer, AnswerRule::kEach);
  ASSERT_EQ(pipeline.stages.size(), 3u);
  EXPECT_EQ(pipeline.stages[0].name, "find");
  EXPECT_TRUE(pipeline.stages[0].demultiply);
  EXPECT_EQ(pipeline.stages[0].demultiply_most, 7);
  EXPECT_EQ(pipeline.stages[0].place, "m/config.pbtxt:6:5");
  EXPECT_EQ(pipeline.stages[1].version, 2);
  EXPECT_THAT(pipeline.stages[1].after, ElementsAre("find"));
  EXPECT_EQ(pipeline.stages[2].name, "read#2");
  EXPECT_EQ(pipeline.stages[2].model, "read");
  EXPECT_EQ(pipeline.stages[2].version, -1);
  EXPECT_THAT(pipeline.stages[2].after, ElementsAre("read"));
  EXPECT_EQ(pipeline.stages[2].gather, "find");
  EXPECT_EQ(pipeline.stages[2].budget, Millis(30));
  EXPECT_EQ(StepsOf(read->model), "find, read, read");
}

TEST(EnsembleConfig, MistakesInStepsNameTheLineAndTheRemedy) {
  EXPECT_THAT(ErrorWith("value: \"m\" } output_map", "value: \"q\" } output_map"),
              HasSubstr("m/config.pbtxt:7:5: step 'read': reads 'q', which no step makes"));
  EXPECT_THAT(
      ErrorWith("\"out\" value: \"n\"", "\"out\" value: \"m\""),
      HasSubstr("m/config.pbtxt:7:5: step 'read': makes 'm', and step 'find' makes it too"));
  EXPECT_THAT(ErrorWith("\"out\" value: \"m\"", "\"out\" value: \"x\""),
              HasSubstr("m/config.pbtxt:6:5: step 'find': makes 'x', and it is an input"));
  EXPECT_THAT(ErrorWith("output_map { key: \"out\" value: \"n\" }",
                        "output_map { key: \"out\" value: \"n\" } "
                        "output_map { key: \"rest\" value: \"r\" }"),
              HasSubstr("m/config.pbtxt:7:5: step 'read': makes 'r', which no step reads; leave"));
  EXPECT_THAT(ErrorWith("\"in\" value: \"x\"", "\"in\" value: \"n\""),
              HasSubstr("m/config.pbtxt:3:11: ensemble 'm': input 'x' is read by no step; name it "
                        "in a step's input_map, or leave it out"));
  EXPECT_THAT(ErrorWith("input_map { key: \"in\" value: \"x\" }",
                        "input_map { key: \"in\" value: \"x\" } "
                        "input_map { key: \"loop\" value: \"n\" }"),
              AllOf(HasSubstr("m/config.pbtxt:5:1: ensemble_scheduling"),
                    HasSubstr("its steps wait for each other in a circle")));
  EXPECT_THAT(ErrorWith("\"out\" value: \"y\"", "\"out\" value: \"z\""),
              HasSubstr("m/config.pbtxt:4:12: ensemble 'm': output 'y' is made by no step; name it "
                        "in a step's output_map, or leave it out"));
  EXPECT_THAT(ErrorWith("output_map { key: \"out\" value: \"n\" }",
                        "output_map { key: \"out\" value: \"n\" } "
                        "output_map { key: \"rest\" value: \"n\" }"),
              HasSubstr("m/config.pbtxt:7:5: step 'read': makes 'n' twice; give one of"));
  EXPECT_THAT(ErrorWith("model_name: \"find\" ", ""),
              HasSubstr("m/config.pbtxt:5:23: step 1: model_name is missing"));
  EXPECT_THAT(ErrorOf(ReadText(std::string(kHead))),
              HasSubstr("ensemble_scheduling: an ensemble needs steps"));
  EXPECT_THAT(ErrorOf(ReadText("platform: \"ensemble\"\n" + std::string(kSteps))),
              HasSubstr("m/config.pbtxt:1:1: platform: an ensemble needs inputs and outputs"));
}

// The later of the two would silently replace the other.
TEST(EnsembleConfig, ATensorThatIsMappedTwiceIsNamedWithItsLine) {
  EXPECT_THAT(ErrorWith("input_map { key: \"in\" value: \"m\" }",
                        "input_map { key: \"in\" value: \"m\" }\n"
                        "    input_map { key: \"in\" value: \"x\" }"),
              HasSubstr("m/config.pbtxt:9:5: step 'read': input_map names 'in' twice; leave one"));
  EXPECT_THAT(ErrorWith("output_map { key: \"out\" value: \"y\" }",
                        "output_map { key: \"out\" value: \"y\" }\n"
                        "    output_map { key: \"out\" value: \"again\" }"),
              HasSubstr("m/config.pbtxt:10:5: step 'read#2': output_map names 'out' twice"));
}

TEST(EnsembleConfig, AMistypedKeyIsToldTheKeysOfEnsembles) {
  const auto config = DeclaredConfig::FromText(
      std::string(kHead) + std::string(kSteps) + ParameterText("demultipy", "find"),
      "m/config.pbtxt");
  ASSERT_TRUE(config);
  EXPECT_THAT(Doubts(*config),
              ElementsAre(AllOf(HasSubstr("m/config.pbtxt:11:"), HasSubstr("demultiply, "),
                                HasSubstr("budget_ms.STEP"), Not(HasSubstr("exits")))));
}

TEST(EnsembleConfig, MistakesInKeysNameTheLineAndTheRemedy) {
  EXPECT_THAT(ErrorOf(With("deadlines", "soon")),
              AllOf(HasSubstr("m/config.pbtxt:11:"), HasSubstr("none of spare, redivide")));
  EXPECT_THAT(ErrorOf(With("answer", "some")), HasSubstr("neither all nor each"));
  EXPECT_THAT(ErrorOf(With("as_step", "yes")), HasSubstr("neither true nor false"));
  EXPECT_THAT(ErrorOf(With("demultiply", "who")),
              HasSubstr("there is no step 'who'; there are: find, read, read#2"));
  EXPECT_THAT(ErrorOf(With("budget_ms.find", "0")), HasSubstr("not a number of milliseconds"));
  EXPECT_THAT(ErrorOf(With("budget_ms.find", "9")), HasSubstr("step 'read' has no budget_ms"));
  EXPECT_THAT(ErrorOf(With("gather", "read")), HasSubstr("no step demultiplies"));
  EXPECT_THAT(ErrorOf(With("demultiply_most.read", "9")), HasSubstr("does not demultiply"));
  EXPECT_THAT(ErrorOf(With("demultiply_most.who", "9")), HasSubstr("there is no step 'who'"));
  EXPECT_THAT(ErrorOf(With("gather.read", "find")), HasSubstr("does not demultiply"));
  EXPECT_THAT(ErrorOf(With("slo_ms", "-1")), HasSubstr("not a number of milliseconds"));
  std::string batching(kHead);
  batching.replace(batching.find("size: 0"), 7, "size: 4");
  EXPECT_THAT(
      ErrorOf(ReadText(batching + std::string(kSteps) + ParameterText("demultiply", "find"))),
      HasSubstr("say max_batch_size: 0"));
}

TEST(EnsembleConfig, OfAnotherPlatformIsRefused) {
  std::string text(kSteps);
  EXPECT_THAT(ErrorOf(ReadText("platform: \"identity\"\n" + text)),
              HasSubstr("only for platform \"ensemble\""));
}

}  // namespace
}  // namespace tactus
