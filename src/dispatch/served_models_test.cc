// New changes of the served models under way: models come and go while requests wait and batches
// run.
#include "dispatch/dispatcher_fixture_for_test.h"

namespace tactus {
namespace {

TEST_F(DispatcherTest, RefusesWhatWaitsForAnUnloadedModel) {
  Open({});
  Arrive(kA, 0);
  Arrive(kB, 0);
  Answer(Run(kA, 1));
  Step(0);
  Arrive(kA, 1);
  auto without = TwoModels();
  without->models[0].loaded = false;
  dispatcher_->Configure(without);
  EXPECT_EQ(dispatcher_->waiting(), 1u);
  Arrive(kA, 2);
  Finish(0, 20);
  EXPECT_EQ(Said(),
            "launch b0 of m0: exit 1, lane 0 [1]\n"
            "reject 3 of m0: unloaded\n"
            "reject 4 of m0: unloaded\n"
            "complete b0 ok [1]\n");
}

// The id of an unloaded model may be given to another while a batch of the old one still runs; if
// that batch is lost, its requests must not run on the new model.
TEST_F(DispatcherTest, NeverRunsRequestsOnTheSuccessorOfTheirModel) {
  Open({});
  Arrive(kA, 0);
  Answer(Run(kA, 1));
  Step(0);
  auto without = TwoModels();
  without->models[0].loaded = false;
  dispatcher_->Configure(without);
  auto successor = TwoModels();
  successor->models[0].name = "c";
  dispatcher_->Configure(successor);
  Finish(0, 5, BatchStatus::kLost);
  EXPECT_EQ(dispatcher_->waiting(), 0u);
  EXPECT_EQ(Said(), "launch b0 of m0: exit 1, lane 0 [1]\nreject 1 of m0: unloaded\n");
}

TEST_F(DispatcherTest, KeepsQueuesAndBatchesThroughANewServedModels) {
  Open({.queue_capacity = 4});
  for (int i = 0; i < 4; ++i) Arrive(kA, 0);
  Answer(Run(kA, 1));
  Step(0);
  auto larger = TwoModels(16);
  larger->models.push_back(larger->models[0]);
  ProfileTable::ModelRows row{.exits = 2, .max_batch = 16};
  row.latency.assign(32, Millis(1));
  larger->profile = ProfileTable(1, std::vector<ProfileTable::ModelRows>{row, row, row});
  dispatcher_->Configure(larger);
  EXPECT_EQ(script_.heard.back(), "prepare");
  Arrive(ModelId{2}, 1);
  Finish(0, 2);
  Answer(Run(kA, 3));
  Step(2);
  Finish(1, 3, BatchStatus::kLost);
  for (int i = 0; i < 20; ++i) Arrive(kA, 3);
  EXPECT_EQ(dispatcher_->waiting(), 5u);
  EXPECT_THAT(Said(), ::testing::StartsWith("launch b0 of m0: exit 1, lane 0 [1]\n"
                                            "complete b0 ok [1]\n"
                                            "launch b1 of m0: exit 1, lane 0 [2 3 4]\n"
                                            "reject 7 of m0: queue full\n"));
}

TEST_F(DispatcherTest, ALaneServesWhatItHolds) {
  Open({}, {LaneSpec{}, LaneSpec{}});
  const auto serves = [&](int lane, ModelId m) {
    return dispatcher_->view().lanes[lane].serves.contains(m);
  };
  dispatcher_->SetLaneHolds(kLane, kA, false);
  EXPECT_THAT(script_.heard, ::testing::ElementsAre("prepare"));
  EXPECT_FALSE(serves(0, kA));
  EXPECT_TRUE(serves(0, kB));
  EXPECT_TRUE(serves(1, kA));
  dispatcher_->Configure(TwoModels());
  EXPECT_FALSE(serves(0, kA)) << "a new set of models does not bring it back";
  dispatcher_->SetLaneHolds(kLane, kB, false);
  EXPECT_FALSE(serves(0, kB));
  dispatcher_->SetLaneHolds(kLane, kA, true);
  EXPECT_TRUE(serves(0, kA));
  EXPECT_FALSE(serves(0, kB));
  dispatcher_->Adopt(std::make_shared<const Plan>(
      Plan{.lanes = {{.entries = {{.model = kA}, {.model = kB}}}, {.entries = {{.model = kB}}}}}));
  EXPECT_TRUE(serves(0, kA));
  EXPECT_FALSE(serves(0, kB)) << "whatever the plan";
  EXPECT_TRUE(serves(1, kB));
}

TEST_F(DispatcherTest, TheSuccessorOfAModelThatALaneLackedIsThere) {
  Open({});
  dispatcher_->SetLaneHolds(kLane, kA, false);
  auto without = TwoModels();
  without->models[0].loaded = false;
  dispatcher_->Configure(without);
  dispatcher_->Configure(TwoModels());
  EXPECT_TRUE(dispatcher_->view().lanes[0].serves.contains(kA));
}

// A quicker model: what was unmeetable under the old profile is not under the new one, and vice
// versa.
TEST_F(DispatcherTest, JudgesHopeByTheNewProfile) {
  Open({});
  Arrive(kA, 0);
  auto slower = TwoModels();
  ProfileTable::ModelRows row{.exits = 2, .max_batch = 4};
  row.latency.assign(8, Millis(48));
  slower->profile = ProfileTable(1, std::vector<ProfileTable::ModelRows>{row, row});
  dispatcher_->Configure(slower);
  Step(3);
  EXPECT_EQ(Said(), "reject 1 of m0: expired\n");
}

}  // namespace
}  // namespace tactus
