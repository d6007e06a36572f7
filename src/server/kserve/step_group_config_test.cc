// Steps as one node tells them to another. What is lost on the way would run differently there.
#include "server/kserve/step_group_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/tensors.h"

namespace tactus {
namespace {

using testing::HasSubstr;

EnsembleDeclaration GroupSteps() {
  EnsembleDeclaration steps;
  steps.model = {.name = "street[find#2+read+join]",
                 .platform = "ensemble",
                 .inputs = {{"x", DataType::kUint8, {-1, 3}}},
                 .outputs = {{"y", DataType::kBytes, {-1}}}};
  PipelineDeclaration& pipeline = steps.pipeline;
  pipeline.name = steps.model.name;
  pipeline.slo = Micros(123456);
  pipeline.deadlines = DeadlineRule::kPersist;
  pipeline.answer = AnswerRule::kEach;
  pipeline.stages = {{.name = "find#2",
                      .model = "find",
                      .demultiply = true,
                      .demultiply_most = 7,
                      .budget = Micros(1500),
                      .version = 3,
                      .inputs = {{"in", "x"}},
                      .outputs = {{"rows", "boxes"}}},
                     {.name = "read",
                      .model = "read",
                      .budget = Micros(2500),
                      .inputs = {{"in", "boxes"}},
                      .outputs = {{"out", "texts"}}},
                     {.name = "join",
                      .model = "join",
                      .gather = "find#2",
                      .budget = Micros(500),
                      .inputs = {{"in", "texts"}},
                      .outputs = {{"out", "y"}}}};
  EXPECT_TRUE(LinkStages(steps));
  return steps;
}

TEST(StepGroupConfig, WhatIsDescribedIsReadAsItWas) {
  const EnsembleDeclaration steps = GroupSteps();
  const auto described = DescribeSteps(steps);
  ASSERT_TRUE(described) << described.error().message;
  const auto read = ReadSteps(*described);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->model.name, steps.model.name);
  EXPECT_EQ(read->model.inputs[0].type, DataType::kUint8);
  EXPECT_EQ(read->model.inputs[0].dims, (Shape{-1, 3}));
  EXPECT_EQ(read->model.outputs[0].type, DataType::kBytes);
  EXPECT_EQ(read->pipeline.slo, steps.pipeline.slo);
  EXPECT_EQ(read->pipeline.deadlines, DeadlineRule::kPersist);
  EXPECT_EQ(read->pipeline.answer, AnswerRule::kEach);
  ASSERT_EQ(read->pipeline.stages.size(), 3u);
  for (std::size_t s = 0; s < 3; ++s) {
    const StageDeclaration& is = read->pipeline.stages[s];
    const StageDeclaration& was = steps.pipeline.stages[s];
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.after, was.after);
    EXPECT_EQ(is.model, was.model);
    EXPECT_EQ(is.version, was.version);
    EXPECT_EQ(is.demultiply, was.demultiply);
    EXPECT_EQ(is.demultiply_most, was.demultiply ? was.demultiply_most : 64);
    EXPECT_EQ(is.gather, was.gather);
    EXPECT_EQ(is.budget, was.budget);
    EXPECT_EQ(is.inputs[0].as, was.inputs[0].as);
  }
}

TEST(StepGroupConfig, ANameThatCannotStandInAListIsRefused) {
  EnsembleDeclaration steps = GroupSteps();
  steps.pipeline.stages[1].name = "read,";
  steps.pipeline.stages[2].after = {"read,"};
  EXPECT_FALSE(DescribeSteps(steps));
}

// It comes from another node, which may be of another version, or broken.
TEST(StepGroupConfig, GarbageIsRefusedWithAReason) {
  const std::string fine = *DescribeSteps(GroupSteps());
  const auto why = [](const std::string& text) {
    const auto read = ReadSteps(text);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(why(fine), "");
  EXPECT_NE(why(""), "");
  EXPECT_NE(why("{}"), "");
  EXPECT_NE(why(fine.substr(0, fine.size() / 2)), "");
  EXPECT_THAT(why(std::string(kMostDescription + 1, ' ')), HasSubstr("too long"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = fine;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return why(text.replace(at, from.size(), to));
  };
  EXPECT_THAT(with("\"platform\":\"ensemble\"", "\"platform\":\"ensemble\",\"max_batch_size\":4"),
              HasSubstr("max_batch_size must be 0"));
  EXPECT_THAT(with("\"platform\":\"ensemble\"", "\"platform\":\"identity\""),
              HasSubstr("no ensemble"));
  EXPECT_THAT(with("find#2,read,join", "find#2,read"), HasSubstr("fewer names"));
  EXPECT_THAT(with("find#2,read,join", "find#2,read,join,more"), HasSubstr("more names"));
  EXPECT_THAT(with("find#2,read,join", "read,read,join"), HasSubstr("read"));
  EXPECT_NE(with("street[", "../street/["), "") << "a name is no path";
  EXPECT_THAT(with("\"boxes\"", "\"texts\""), HasSubstr("step"));
}

}  // namespace
}  // namespace tactus
