// Which steps go as one, and what becomes of the pipeline. A group that is wrong would wait for
// what it need not, run in a circle, or hand rows to steps that take wholes.
#include "pipeline/step_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/build.h"
#include "pipeline/tensors.h"

namespace tactus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A pipeline of models with any number of inputs, built for each question.
struct Grouped {
  EnsembleDeclaration ensemble;
  std::vector<std::shared_ptr<const ModelSpec>> models;
  std::vector<std::string> places;

  explicit Grouped(std::vector<std::string> answers, Shape answer = {-1}) {
    ensemble.model.name = ensemble.pipeline.name = "e";
    ensemble.model.platform = "ensemble";
    ensemble.model.inputs = {{"x", DataType::kFp32, {-1}}};
    for (const std::string& each : answers) {
      ensemble.model.outputs.push_back({each, DataType::kFp32, answer});
    }
    ensemble.pipeline.slo = Millis(100);
    ensemble.pipeline.deadlines = DeadlineRule::kSpare;
  }
  // A step that makes the tensor of its name.
  void Add(std::string name, std::vector<std::string> reads, std::string place, int max_batch = 0,
           StageDeclaration more = {}, Shape in = {-1}, Shape out = {-1}) {
    ModelSpec model{.name = "m-" + name, .max_batch = max_batch};
    StageDeclaration step = std::move(more);
    step.name = name;
    step.model = model.name;
    for (const std::string& each : reads) {
      model.inputs.push_back({"in-" + each, DataType::kFp32, in});
      step.inputs.push_back({"in-" + each, each});
    }
    model.outputs = {{"out", DataType::kFp32, std::move(out)}};
    step.outputs = {{"out", name}};
    models.push_back(std::make_shared<const ModelSpec>(std::move(model)));
    ensemble.pipeline.stages.push_back(std::move(step));
    places.push_back(std::move(place));
  }
  struct Built {
    EnsembleDeclaration declared;
    Pipeline pipeline;
    BuiltEnsemble view(const Grouped& of) const {
      return {declared, pipeline.graph, pipeline.levels, of.models};
    }
  };
  std::unique_ptr<Built> Build() const {
    auto built = std::make_unique<Built>(Built{ensemble, {}});
    const Status linked = LinkStages(built->declared);
    EXPECT_TRUE(linked) << linked.error().message;
    std::vector<StageCost> costs(models.size(), {.name = "m", .by_batch = {Micros(1)}});
    auto pipeline = BuildPipeline(built->declared.pipeline, costs);
    EXPECT_TRUE(pipeline) << pipeline.error().message;
    built->pipeline = *std::move(pipeline);
    const auto bound =
        BindTensors(built->declared, built->pipeline.graph, built->pipeline.levels, models);
    EXPECT_TRUE(bound) << bound.error().message;
    return built;
  }
  // Each group as the names of its steps.
  std::vector<std::string> Groups() const {
    const auto built = Build();
    std::vector<std::string> groups;
    for (const StageMask mask : FindStepGroups(built->view(*this), places)) {
      std::string& names = groups.emplace_back();
      for (std::size_t s = 0; s < models.size(); ++s) {
        if ((mask >> s & 1) != 0)
          names += (names.empty() ? "" : " ") + built->declared.pipeline.stages[s].name;
      }
    }
    return groups;
  }
  // Of its only group; both parts can be built and bound.
  SplitEnsemble Split() const {
    const auto built = Build();
    const auto groups = FindStepGroups(built->view(*this), places);
    EXPECT_EQ(groups.size(), 1u);
    auto split = SplitAtGroup(built->view(*this), groups.at(0));
    EXPECT_TRUE(split) << split.error().message;
    Check(split->outer, split->models);
    Check(split->inner, split->inner_models);
    return *std::move(split);
  }
  static void Check(const EnsembleDeclaration& part,
                    const std::vector<std::shared_ptr<const ModelSpec>>& models) {
    std::vector<StageCost> costs(models.size(), {.name = "m", .by_batch = {Micros(1)}});
    const auto pipeline = BuildPipeline(part.pipeline, costs);
    ASSERT_TRUE(pipeline) << pipeline.error().message;
    const auto bound = BindTensors(part, pipeline->graph, pipeline->levels, models);
    EXPECT_TRUE(bound) << part.model.name << ": " << bound.error().message;
  }
};

std::vector<std::string> StepNames(const PipelineDeclaration& pipeline) {
  std::vector<std::string> names;
  for (const StageDeclaration& each : pipeline.stages) names.push_back(each.name);
  return names;
}

TEST(StepGroups, StepsInARowAtOnePlaceGoAsOne) {
  Grouped chain({"d"});
  chain.Add("a", {"x"}, "");
  chain.Add("b", {"a"}, "server");
  chain.Add("c", {"b"}, "server");
  chain.Add("d", {"c"}, "");
  EXPECT_THAT(chain.Groups(), ElementsAre("b c"));
  const SplitEnsemble split = chain.Split();
  EXPECT_THAT(StepNames(split.outer.pipeline), ElementsAre("a", "b+c", "d"));
  EXPECT_EQ(split.step, 1u);
  EXPECT_EQ(split.outer.pipeline.stages[1].model, "e[b+c]");
  EXPECT_EQ(split.models[1]->name, "e[b+c]");
  EXPECT_THAT(StepNames(split.inner.pipeline), ElementsAre("b", "c"));
  ASSERT_EQ(split.inner.model.inputs.size(), 1u);
  EXPECT_EQ(split.inner.model.inputs[0].name, "a");
  ASSERT_EQ(split.inner.model.outputs.size(), 1u) << "what is between them stays there";
  EXPECT_EQ(split.inner.model.outputs[0].name, "c");
}

TEST(StepGroups, OtherPlacesAndNoPlaceStayApart) {
  Grouped chain({"d"});
  chain.Add("a", {"x"}, "near");
  chain.Add("b", {"a"}, "far");
  chain.Add("c", {"b"}, "");
  chain.Add("d", {"c"}, "");
  EXPECT_THAT(chain.Groups(), IsEmpty());
  chain.places = {"near", "near", "far", "far"};
  EXPECT_THAT(chain.Groups(), ElementsAre("a b", "c d"));
  chain.ensemble.pipeline.deadlines = DeadlineRule::kEqual;
  EXPECT_THAT(chain.Groups(), IsEmpty()) << "one step would have the time of one";
}

// Steps side by side that do not meet have nothing to save.
TEST(StepGroups, OnlyStepsThatPassTensorsAreConnected) {
  Grouped fork({"b", "c"});
  fork.Add("a", {"x"}, "");
  fork.Add("b", {"a"}, "server");
  fork.Add("c", {"a"}, "server");
  EXPECT_THAT(fork.Groups(), IsEmpty());
}

TEST(StepGroups, ADiamondGoesWholeAndAGroupWaitsForNothingThatItNeedNot) {
  Grouped diamond({"d"});
  diamond.Add("a", {"x"}, "server");
  diamond.Add("b", {"a"}, "server");
  diamond.Add("c", {"a"}, "server");
  diamond.Add("d", {"b", "c"}, "server");
  EXPECT_THAT(diamond.Groups(), ElementsAre("a b c d"));
  diamond.places[1] = "";  // b runs here: a's answer is wanted at once, and d waits for both
  EXPECT_THAT(diamond.Groups(), IsEmpty());
  // An input from here that the first step of a group does not wait for.
  Grouped late({"d"});
  late.Add("a", {"x"}, "");
  late.Add("b", {"x"}, "server");
  late.Add("c", {"b"}, "server");
  late.Add("d", {"c", "a"}, "server");
  EXPECT_THAT(late.Groups(), ElementsAre("b c")) << "d waits for a, the others need not";
}

// What one step of the group makes and somebody outside reads comes back beside the rest.
TEST(StepGroups, TensorsThatCrossBackAreTheInnersOutputs) {
  Grouped chain({"b", "d"});
  chain.Add("a", {"x"}, "");
  chain.Add("b", {"a"}, "server");
  chain.Add("c", {"b", "a"}, "server");
  chain.Add("d", {"c"}, "");
  const SplitEnsemble split = chain.Split();
  ASSERT_EQ(split.inner.model.inputs.size(), 1u) << "one tensor for two readers crosses once";
  ASSERT_EQ(split.inner.model.outputs.size(), 2u);
  EXPECT_EQ(split.inner.model.outputs[0].name, "b");
  EXPECT_EQ(split.inner.model.outputs[1].name, "c");
}

Grouped GroupedRows(const std::vector<std::string>& places) {
  Grouped rows({"join", "find"});
  rows.Add("look", {"x"}, places[0]);
  rows.Add("find", {"look"}, places[1], 0, {.demultiply = true, .demultiply_most = 5}, {-1},
           {-1, 2});
  rows.Add("crop", {"find"}, places[2], 8, {}, {-1, 2}, {-1, 2});
  rows.Add("read", {"crop"}, places[3], 8, {}, {-1, 2}, {-1, 3});
  rows.Add("join", {"read"}, places[4], 0, {.gather = "find"}, {-1, 3});
  rows.ensemble.model.outputs[1].dims = {-1, 2};
  return rows;
}

TEST(StepGroups, RowsInsideAGroupAreGatheredThereOrBehindIt) {
  EXPECT_THAT(GroupedRows({"s", "s", "s", "s", "s"}).Groups(),
              ElementsAre("look find crop read join"));
  const Grouped behind = GroupedRows({"", "s", "s", "s", ""});
  EXPECT_THAT(behind.Groups(), ElementsAre("find crop read"));
  const SplitEnsemble split = behind.Split();
  EXPECT_EQ(split.outer.pipeline.stages[2].gather, "") << "they come as one tensor";
  EXPECT_FALSE(split.outer.pipeline.stages[1].demultiply);
  EXPECT_TRUE(split.inner.pipeline.stages[0].demultiply);
  EXPECT_EQ(split.inner.model.outputs[1].dims, (Shape{-1, 3}));
}

TEST(StepGroups, AGroupMayWorkOnOneRow) {
  const Grouped rows = GroupedRows({"", "", "s", "s", ""});
  EXPECT_THAT(rows.Groups(), ElementsAre("crop read"));
  const SplitEnsemble split = rows.Split();
  EXPECT_EQ(split.models[2]->max_batch, 1) << "a row is a batch of one";
  EXPECT_EQ(split.inner.model.max_batch, 0);
  EXPECT_EQ(split.outer.pipeline.stages[3].gather, "find");
  Grouped mixed = GroupedRows({"", "", "s", "s", ""});
  auto plain = std::make_shared<ModelSpec>(*mixed.models[3]);
  plain->max_batch = 0;
  plain->outputs[0].dims = {3};
  mixed.models[3] = plain;
  EXPECT_THAT(mixed.Groups(), IsEmpty()) << "a row would come with a batch, and go without one";
}

TEST(StepGroups, AGroupMayMakeRowsForStepsBehindIt) {
  Grouped rows = GroupedRows({"s", "s", "", "", ""});
  EXPECT_THAT(rows.Groups(), ElementsAre("look find"));
  const SplitEnsemble split = rows.Split();
  EXPECT_TRUE(split.outer.pipeline.stages[0].demultiply);
  EXPECT_EQ(split.outer.pipeline.stages[0].demultiply_most, 5);
  EXPECT_EQ(split.outer.pipeline.stages[3].gather, "look+find");
  EXPECT_FALSE(split.inner.pipeline.stages[1].demultiply);
  // But not where another of its tensors crosses, which has no such rows.
  rows.ensemble.model.outputs.push_back({"look", DataType::kFp32, {-1}});
  EXPECT_THAT(rows.Groups(), IsEmpty());
}

TEST(StepGroups, BudgetsAddUpAlongTheLongestWay) {
  Grouped chain({"c"});
  for (const auto& [name, reads] : {std::pair{"a", "x"}, {"b", "a"}, {"c", "b"}}) {
    chain.Add(name, {reads}, name[0] == 'a' ? "" : "s", 0, {.budget = Millis(20)});
  }
  const SplitEnsemble split = chain.Split();
  EXPECT_EQ(split.outer.pipeline.stages[1].budget, Millis(40));
  EXPECT_EQ(split.inner.pipeline.stages[0].budget, Millis(20));
}

// Of graphs that state no shape: the group would refuse what its steps take.
TEST(StepGroups, ATensorOfAnyShapeIsOneAtTheGroupToo) {
  Grouped of({"b"});
  of.Add("a", {"x"}, "here");
  of.Add("b", {"a"}, "here");
  ModelSpec first = *of.models[0];
  first.inputs[0].any_shape = true;
  of.models[0] = std::make_shared<const ModelSpec>(first);
  ModelSpec last = *of.models[1];
  last.outputs[0].any_shape = true;
  of.models[1] = std::make_shared<const ModelSpec>(last);
  const SplitEnsemble split = of.Split();
  EXPECT_TRUE(split.inner.model.inputs.at(0).any_shape);
  EXPECT_TRUE(split.inner.model.outputs.at(0).any_shape);
}

TEST(StepGroups, AGroupThatWasNotFoundIsRefused) {
  Grouped chain({"c"});
  chain.Add("a", {"x"}, "");
  chain.Add("b", {"a"}, "");
  chain.Add("c", {"b", "a"}, "");
  const auto built = chain.Build();
  const auto split = SplitAtGroup(built->view(chain), 0b101);
  ASSERT_FALSE(split);
  EXPECT_THAT(split.error().message, HasSubstr("do not go as one"));
}

}  // namespace
}  // namespace tactus
