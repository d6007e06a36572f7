// Ensembles some of whose steps go as one, and parts of ensembles of other nodes, over steps whose
// answers the test gives, in the test's time. Without this a frame could be answered differently
// where its steps run together, twice where they are split meanwhile, or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ensemble/scripted_steps_test.h"
#include "service/step_group.h"

namespace tactus {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Ensembles over steps, with places that the test says.
struct Places {
  std::map<std::string, std::string> of;  // by step
  std::uint64_t number = 1;
  std::map<std::string, EnsembleDeclaration> told;  // by how it is described

  EnsembleOptions Options() {
    EnsembleOptions options;
    options.places = [this](const PipelineDeclaration& pipeline) {
      std::vector<std::string> places;
      for (const StageDeclaration& each : pipeline.stages) places.push_back(of[each.name]);
      return places;
    };
    options.places_number = [this] { return number; };
    options.describe = [this](const EnsembleDeclaration& inner) {
      told[inner.model.name] = inner;
      return Expected<std::string>(inner.model.name);
    };
    options.read_described = [this](std::string_view text) -> Expected<EnsembleDeclaration> {
      const auto found = told.find(std::string(text));
      if (found == told.end()) return InvalidArgument("nobody has said this");
      return found->second;
    };
    return options;
  }
  void Move(std::map<std::string, std::string> to) {
    of = std::move(to);
    ++number;
  }
};

// find (rows) -> read, for each -> join, which gathers; the answer is join's, and boxes.
void DeclareGrouped(EnsembleBench& bench, AnswerRule answer = AnswerRule::kAll) {
  bench.steps.Add(
      FloatModel("find", 0, {{"in", DataType::kFp32, {4}}}, {{"rows", DataType::kFp32, {-1, 2}}}));
  bench.steps.Add(FloatModel("read", 8, {{"in", DataType::kFp32, {-1, 2}}},
                             {{"out", DataType::kFp32, {-1, 3}}}));
  bench.steps.Add(
      FloatModel("join", 0, {{"in", DataType::kFp32, {-1, 3}}}, {{"out", DataType::kFp32, {-1}}}));
  PipelineDeclaration rows;
  rows.deadlines = DeadlineRule::kRedivide;
  rows.answer = answer;
  rows.stages = {
      {.name = "find",
       .model = "find",
       .demultiply = true,
       .demultiply_most = 4,
       .inputs = {{"in", "x"}},
       .outputs = {{"rows", "boxes"}}},
      {.name = "read", .model = "read", .inputs = {{"in", "boxes"}}, .outputs = {{"out", "texts"}}},
      {.name = "join",
       .model = "join",
       .gather = "find",
       .inputs = {{"in", "texts"}},
       .outputs = {{"out", "y"}}}};
  ModelSpec model = FloatModel("rows", 0, {{"x", DataType::kFp32, {4}}},
                               {{"boxes", DataType::kFp32, {-1, 2}}, {"y", DataType::kFp32, {-1}}});
  model.slo = Millis(90);
  bench.Declare(std::move(model), std::move(rows));
  bench.service->Open({"*"});
}

// Answers what find, its two rows and join are asked, as they come; texts are the boxes and a 1.
void AnswerSteps(EnsembleBench& bench) {
  bench.steps.Answer(bench.steps.Of("find").id, {{{2, 2}, {1, 2, 3, 4}}});
  while (bench.steps.CountOf("read") > 0) {
    const auto& call = bench.steps.Of("read");
    const auto* at = reinterpret_cast<const float*>(call.call.inputs[0].data.data());
    bench.steps.Answer(call.id, {{{1, 3}, {at[0], at[1], 1}}});
  }
  const auto& join = bench.steps.Of("join");
  EXPECT_EQ(join.call.inputs[0].shape, (Shape{2, 3}));
  bench.steps.Answer(join.id, {{{2}, {7, 8}}});
}

std::vector<std::vector<float>> AnswerOf(const EnsembleBench::Asked& asked) {
  std::vector<std::vector<float>> values;
  EXPECT_TRUE(asked.reply().status) << asked.reply().status.error().message;
  for (const OutputTensor& each : asked.reply().outputs) values.push_back(FloatsIn(each));
  return values;
}

constexpr const char* kGroup = "rows[find+read]";

// Takes the group's call out of the steps, and has it run as one or one by one.
std::function<void()> RunGroup(EnsembleBench& bench, StepGroup::Where where) {
  auto held = bench.steps.TakeOut(bench.steps.Of(kGroup).id);
  const auto group = std::move(held.call.group);
  EXPECT_NE(group, nullptr);
  held.call.group = nullptr;
  return group->run(std::move(held.call), where);
}

TEST(StepGroupsService, AGroupIsOneCallWithTheCutsTensorsAndItsTime) {
  Places places;
  EnsembleBench bench(places.Options());
  places.Move({{"find", "s"}, {"read", "s"}});
  DeclareGrouped(bench);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  ASSERT_EQ(bench.steps.held.size(), 1u);
  const auto& call = bench.steps.Of(kGroup).call;
  ASSERT_NE(call.group, nullptr);
  EXPECT_EQ(call.group->described, kGroup);
  EXPECT_EQ(call.group->pipeline, "rows");
  ASSERT_EQ(call.group->steps.size(), 2u);
  EXPECT_EQ(call.inputs[0].name, "x");
  EXPECT_EQ(call.step->step, "find+read");
  EXPECT_EQ(call.limit.shortest(), Millis(60)) << "two of three steps";
  bench.Pass(Millis(10));
  bench.steps.Answer(bench.steps.Of(kGroup).id,
                     {{{2, 2}, {1, 2, 3, 4}}, {{2, 3}, {1, 2, 1, 3, 4, 1}}});
  EXPECT_EQ(bench.steps.Of("join").call.limit.shortest(), Millis(80));
  EXPECT_EQ(bench.steps.Of("join").call.inputs[0].shape, (Shape{2, 3}));
  bench.steps.Answer(bench.steps.Of("join").id, {{{2}, {7, 8}}});
  EXPECT_THAT(AnswerOf(asked), ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(7, 8)));
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

// Whoever runs it, the answer is the same.
TEST(StepGroupsService, AnswersAreTheSameTogetherAndOneByOne) {
  Places places;
  EnsembleBench bench(places.Options());
  DeclareGrouped(bench);
  std::vector<std::vector<std::vector<float>>> answers;
  for (int way = 0; way < 4; ++way) {
    if (way > 0) places.Move({{"find", "s"}, {"read", "s"}});
    auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
    if (way == 1) RunGroup(bench, StepGroup::Where::kByRoutes);
    if (way == 2) RunGroup(bench, StepGroup::Where::kHere);
    if (way == 3) {  // on another node
      auto held = bench.steps.TakeOut(bench.steps.Of(kGroup).id);
      const auto entered = bench.service->Enter(held.call.group->described);
      ASSERT_TRUE(entered) << entered.error().message;
      held.call.model = *entered;
      held.call.group = nullptr;
      bench.service->Infer(std::move(held.call));
    }
    if (way > 0) bench.Pass(Millis(1));
    AnswerSteps(bench);
    answers.push_back(AnswerOf(asked));
    // Its rows are side by side: beside join's, a group has the time that passed, a frame's own
    // steps what they come to.
    EXPECT_EQ(asked.reply().served.queue_us + asked.reply().served.execution_us,
              way == 0 ? 4 * 300 : 1000 + 300);
    EXPECT_EQ(answers.back(), answers.front()) << "way " << way;
    EXPECT_EQ(bench.service->unfinished(), 0u);
  }
}

// A plan that splits the group while a frame is under way: that one ends, and the next goes apart.
TEST(StepGroupsService, PlacesThatChangeAreFollowedByTheNextCall) {
  Places places;
  EnsembleBench bench(places.Options());
  places.Move({{"find", "s"}, {"read", "s"}});
  DeclareGrouped(bench);
  auto& before = bench.Call("rows", {4}, {1, 2, 3, 4});
  places.Move({{"find", "s"}, {"read", "other"}});
  auto& after = bench.Call("rows", {4}, {1, 2, 3, 4});
  EXPECT_EQ(bench.steps.CountOf("find"), 1u);
  AnswerSteps(bench);
  RunGroup(bench, StepGroup::Where::kByRoutes);
  AnswerSteps(bench);
  EXPECT_EQ(AnswerOf(before), AnswerOf(after));
  const auto same = *bench.service->Find("rows", -1);
  ++places.number;
  EXPECT_EQ(*bench.service->Find("rows", -1), same) << "routes that say the same change nothing";
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

TEST(StepGroupsService, WhoAsksForSomeOutputsHasTheStepsRunThatTheyNeed) {
  Places places;
  EnsembleBench bench(places.Options());
  places.Move({{"find", "s"}, {"read", "s"}});
  DeclareGrouped(bench);
  for (const int output : {0, 1}) {
    InferCall call;
    call.model = *bench.service->Find("rows", -1);
    const auto bytes = Floats({1, 2, 3, 4});
    call.inputs = {{"x", DataType::kFp32, {4}, BytesIn(*bytes)}};
    call.keepalive = bytes;
    call.received = bench.now;
    call.outputs = {output};
    int replies = 0;
    call.reply = [&](InferReply&&) { ++replies; };
    const CallId id = bench.service->Infer(std::move(call));
    EXPECT_EQ(bench.steps.CountOf("find"), output == 0 ? 1u : 0u);
    EXPECT_EQ(bench.steps.CountOf(kGroup), output == 0 ? 0u : 1u);
    bench.service->Cancel(id);
    EXPECT_EQ(replies, 1);
    EXPECT_TRUE(bench.steps.held.empty());
  }
}

TEST(StepGroupsService, CancellingAPartCancelsItsSteps) {
  Places places;
  EnsembleBench bench(places.Options());
  places.Move({{"find", "s"}, {"read", "s"}});
  DeclareGrouped(bench);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  const auto stop = RunGroup(bench, StepGroup::Where::kHere);
  EXPECT_EQ(bench.steps.CountOf("find"), 1u);
  stop();
  EXPECT_TRUE(bench.steps.held.empty());
  EXPECT_EQ(asked.reply().served.outcome, Outcome::kCancelled);
  stop();  // late, and nobody's
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

// Rows that are late are left out inside the group as they would be outside.
TEST(StepGroupsService, LateRowsAreLeftOutWhereTheAnswerIsOfEach) {
  Places places;
  EnsembleBench bench(places.Options());
  places.Move({{"find", "s"}, {"read", "s"}});
  DeclareGrouped(bench, AnswerRule::kEach);
  bench.steps.runs_on = true;
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  EXPECT_TRUE(bench.steps.Of(kGroup).call.group->leaves_out);
  RunGroup(bench, StepGroup::Where::kHere);
  bench.steps.Answer(bench.steps.Of("find").id, {{{2, 2}, {1, 2, 3, 4}}});
  const CallId second = bench.steps.held[1].id;
  bench.steps.Answer(bench.steps.held[0].id, {{{1, 3}, {1, 2, 1}}});
  bench.Pass(Millis(61));
  ASSERT_EQ(bench.steps.CountOf("join"), 1u) << "the group's time is over";
  EXPECT_EQ(bench.steps.Of("join").call.inputs[0].shape, (Shape{1, 3}));
  bench.steps.Answer(bench.steps.Of("join").id, {{{1}, {7}}});
  EXPECT_TRUE(asked.reply().status);
  bench.steps.End(second, ErrorCode::kCancelled, "late", Outcome::kCancelled);
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

struct Seen final : Observer {
  void OnAnswered(const ModelSpec& model, const RequestRecord&, int) override {
    names.push_back(model.name);
  }
  void OnRefused(std::string_view model, ErrorCode) override { names.emplace_back(model); }
  std::vector<std::string> names;
};

TEST(StepGroupsService, AnErrorInsideAPartNamesItsStepAndPartsAreNotCounted) {
  Places places;
  Seen seen;
  EnsembleOptions options = places.Options();
  options.observer = &seen;
  EnsembleBench bench(std::move(options));
  places.Move({{"find", "s"}, {"read", "s"}});
  DeclareGrouped(bench);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  RunGroup(bench, StepGroup::Where::kByRoutes);
  bench.steps.End(bench.steps.Of("find").id, ErrorCode::kInternal, "it broke", Outcome::kError);
  EXPECT_THAT(asked.reply().status.error().message,
              AllOf(HasSubstr("ensemble 'rows', step 'find+read'"),
                    HasSubstr("ensemble 'rows[find+read]', step 'find': it broke")));
  EXPECT_THAT(seen.names, ElementsAre("rows"));
}

TEST(StepGroupsService, WhatCannotBeEnteredIsUnimplemented) {
  Places places;
  EnsembleBench bench(places.Options());
  places.Move({{"find", "s"}, {"read", "s"}});
  DeclareGrouped(bench);
  bench.Call("rows", {4}, {1, 2, 3, 4});
  const auto why = [&](const std::string& described) {
    const auto entered = bench.service->Enter(described);
    return entered || entered.error().code != ErrorCode::kUnimplemented ? "entered"
                                                                        : entered.error().message;
  };
  EXPECT_THAT(why("garbage"), HasSubstr("nobody has said this"));
  EXPECT_EQ(why(kGroup), "entered");
  bench.steps.models.erase("read");
  EXPECT_THAT(why(kGroup), HasSubstr("step 'read': the repository has no model"));
  bench.steps.Add(FloatModel("read", 8, {{"in", DataType::kFp32, {-1, 5}}},
                             {{"out", DataType::kFp32, {-1, 3}}}));
  EXPECT_THAT(why(kGroup), HasSubstr("'boxes' comes as")) << "a shape that cannot fit";
}

// Descriptions are others' to make, so only so many are kept.
TEST(StepGroupsService, TheOldestPartsAreForgotten) {
  Places places;
  EnsembleBench bench(places.Options());
  places.Move({{"find", "s"}, {"read", "s"}});
  DeclareGrouped(bench);
  bench.Call("rows", {4}, {1, 2, 3, 4});
  const EnsembleDeclaration part = places.told.at(kGroup);
  for (std::size_t i = 0; i <= EnsembleService::kMostEntered; ++i) {
    places.told["part" + std::to_string(i)] = part;
  }
  const auto first = *bench.service->Enter("part0");
  EXPECT_EQ(*bench.service->Enter("part0"), first) << "it is kept";
  std::weak_ptr<const ModelSpec> second = *bench.service->Enter("part1");
  for (std::size_t i = 2; i <= EnsembleService::kMostEntered; ++i) {
    EXPECT_TRUE(bench.service->Enter("part" + std::to_string(i)));
    EXPECT_EQ(*bench.service->Enter("part0"), first) << "it was used";
  }
  EXPECT_TRUE(second.expired());
}

}  // namespace
}  // namespace tactus
