// Without this a plan could be read in the ids of another list of models, and each be served where
// its neighbour belongs.
#include "placement/plan_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PlanQuestion, AsksForEachModelOnTheSharesOfEachDevice) {
  const Model a{.name = "a", .slo = Millis(20), .exits = {{}}};
  const Model b{.name = "b", .slo = Millis(50), .exits = {{}}};
  ProfileTable::ModelRows row{.exits = 1, .max_batch = 1, .latency = {Millis(4), Millis(2)}};
  const std::vector<ProfileTable::ModelRows> rows(2, row);
  const std::vector<ModelToPlace> models = {{.model = a, .rate_rps = 100, .memory_mb = 7},
                                            {.model = b}};
  const PlanQuestion question = MakePlanQuestion(std::make_shared<ProfileTable>(2, rows), models,
                                                 {.count = 3, .shares = {0.5, 1}});
  const PlanInput& input = question.input;
  EXPECT_TRUE(Validate(input)) << Validate(input).error().message;
  EXPECT_EQ(input.devices, 3);
  EXPECT_TRUE(input.device.HasMemoryFor(1e9)) << "nobody said how much there is";
  EXPECT_EQ(input.models[0].rate_rps, 100);
  EXPECT_EQ(input.models[0].memory_mb, 7);
  EXPECT_EQ(input.models[1].slo, Millis(50));
  EXPECT_EQ(input.Latency(ModelId{1}, 1, input.whole()), Millis(2));
  EXPECT_THAT(NamesOf(input), ElementsAre("a", "b"));
}

TEST(Renumbered, KeepsWhoIsMeantAndLeavesOutWhoIsNotThere) {
  const Plan plan{
      .lanes = {{.entries = {{.model = ModelId{0}, .batch = 4}, {.model = ModelId{1}, .batch = 2}}},
                {.entries = {{.model = ModelId{1}, .batch = 8}}}}};
  const std::vector<std::string> theirs = {"a", "b"};
  const std::vector<std::string> ours = {"c", "b", "a"};
  const Plan here = Renumbered(
      plan, theirs, [&](LaneId, const std::string& name) { return FindModel(ours, name); });
  ASSERT_EQ(here.lanes.size(), 2u);
  EXPECT_EQ(here.lanes[0].entries[0].model, ModelId{2});
  EXPECT_EQ(here.lanes[0].entries[0].batch, 4);
  EXPECT_EQ(here.lanes[0].entries[1].model, ModelId{1});
  EXPECT_EQ(here.lanes[1].entries[0].model, ModelId{1});
  // b is loaded on lane 0 only, and a is gone.
  const Plan some = Renumbered(plan, theirs, [&](LaneId lane, const std::string& name) {
    return lane == LaneId{0} && name == "b" ? FindModel(ours, name) : std::nullopt;
  });
  ASSERT_EQ(some.lanes[0].entries.size(), 1u);
  EXPECT_EQ(some.lanes[0].entries[0].batch, 2);
  EXPECT_THAT(some.lanes[1].entries, IsEmpty());
}

}  // namespace
}  // namespace tactus
