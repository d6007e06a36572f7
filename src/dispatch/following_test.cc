// The dispatcher follows the machine: what policies are told, what is given up, and that nobody is
// refused for ever for the sake of a ratio.
#include "dispatch/dispatcher_fixture_for_test.h"

namespace tactus {
namespace {

class Following : public DispatcherTest {
 protected:
  void SetUp() override { Open({.follow = {.on = true}}); }

  // Batches of one request of A, at its exit of 20 ms, one after the other from `at`, each of which
  // takes so long. Returns when the last ended.
  int Run20(int at, int batches, int takes) {
    for (int i = 0; i < batches; ++i) {
      Arrive(kA, at, at + 1000);
      Answer(Run(kA, 1));
      Step(at);
      dispatcher_->Finish(kLane, BatchId{batch_++},
                          {.started = kStart + Millis(at), .ended = kStart + Millis(at + takes)},
                          kStart + Millis(at + takes));
      at += takes;
    }
    Said();
    return at;
  }
  Duration Told(ModelId m) {
    return dispatcher_->view().profile.Latency(m, ExitId{1}, 1, LaneClass{0});
  }

  std::uint64_t batch_ = 0;
};

TEST_F(Following, TellsPoliciesWhatBatchesTake) {
  Run20(0, 10, 26);
  EXPECT_GE(Told(kA), Millis(26));
  EXPECT_LT(Told(kA), Micros(26'600));
  EXPECT_EQ(Told(kB), Millis(20));  // of which nobody knows anything
}

TEST_F(Following, LeavesTheProfileWhereItHolds) {
  Run20(0, 200, 20);
  EXPECT_EQ(Told(kA), Millis(20));
}

TEST_F(Following, TellsPoliciesOfAQuickerMachineToo) {
  Run20(0, 130, 14);
  EXPECT_GE(Told(kA), Millis(14));
  EXPECT_LT(Told(kA), Micros(14'400));
}

// The quickest batch of A takes 10 ms by the profile, and 20 here.
TEST_F(Following, GivesUpWhatCannotBeMetOnThisMachine) {
  const int now = Run20(0, 10, 40);
  Arrive(kA, now, now + 15);
  EXPECT_EQ(Said(), "reject 11 of m0: expired\n");
  Arrive(kB, now, now + 15);
  EXPECT_EQ(dispatcher_->waiting(), 1u);
}

// What waits is looked at again when the machine turns out to be slower.
TEST_F(Following, GivesUpWhatWaitsWhenItLearns) {
  int at = Run20(0, 6, 40);
  Arrive(kA, at, at + 1000);
  Answer(Run(kA, 1));
  Step(at);
  Arrive(kA, at, at + 55);
  Said();
  dispatcher_->Finish(kLane, BatchId{6},
                      {.started = kStart + Millis(at), .ended = kStart + Millis(at + 40)},
                      kStart + Millis(at + 40));
  Step(at + 40);
  EXPECT_EQ(Said(), "complete b6 ok [7]\nreject 8 of m0: expired\n");
}

// Requests that are all refused teach nothing: the ratio must fade by itself, and the dispatcher
// must ask to be woken for it.
TEST_F(Following, TriesAgainWhatItRefuses) {
  int at = Run20(0, 130, 80);
  TimePoint wake = Step(at);
  Arrive(kA, at, at + 30);
  EXPECT_EQ(Said(), "reject 131 of m0: expired\n");
  int steps = 0;
  while (wake != kNever && ++steps < 100) wake = dispatcher_->Step(wake);
  EXPECT_LE(steps, 20);
  EXPECT_EQ(Told(kA), Millis(20));
  at += 1000 * steps;
  Arrive(kA, at, at + 30);
  EXPECT_EQ(dispatcher_->waiting(), 1u);
}

TEST_F(Following, LearnsNothingFromFailures) {
  for (int at = 0; at < 20 * 60; at += 60) {
    Arrive(kA, at, at + 1000);
    Answer(Run(kA, 1));
    Step(at);
    dispatcher_->Finish(kLane, BatchId{batch_++},
                        {.started = kStart + Millis(at),
                         .ended = kStart + Millis(at + 60),
                         .status = BatchStatus::kFailed},
                        kStart + Millis(at + 60));
  }
  EXPECT_EQ(Told(kA), Millis(20));
}

// A batch with neighbours tells of them: policies that know what neighbours cost would count it
// twice.
TEST_F(Following, LearnsNothingFromBatchesWithNeighbours) {
  Open({.follow = {.on = true}}, {LaneSpec{.slots = 2}});
  for (int i = 0; i < 20; ++i) {
    const int at = 100 * i;
    Arrive(kA, at, at + 1000);
    Arrive(kA, at, at + 1000);
    Answer(Run(kA, 1));
    Answer(Run(kA, 1));
    Step(at);
    for (int b = 0; b < 2; ++b) {
      dispatcher_->Finish(kLane, BatchId{batch_++},
                          {.started = kStart + Millis(at), .ended = kStart + Millis(at + 60)},
                          kStart + Millis(at + 60 + b));
    }
  }
  EXPECT_EQ(Told(kA), Millis(20));
}

// Another model's coming and going is no reason to forget; other latencies are.
TEST_F(Following, KeepsWhatItLearntOfAModelThatStays) {
  Run20(0, 10, 26);
  auto served_models = TwoModels();
  served_models->models[1].loaded = false;
  dispatcher_->Configure(served_models);
  EXPECT_GE(Told(kA), Millis(26));
  auto measured = TwoModels();
  ProfileTable::ModelRows row{.exits = 2, .max_batch = 4};
  row.latency.assign(8, Millis(25));
  measured->profile = ProfileTable(1, std::vector<ProfileTable::ModelRows>{row, row});
  dispatcher_->Configure(measured);
  EXPECT_EQ(Told(kA), Millis(25));
}

// Of 20 ms 5 are a margin that somebody asked for; 15 were measured.
TEST_F(Following, LeavesTheMarginWhatItIs) {
  Open({.follow = {.on = true, .margin = Millis(5)}});
  Run20(0, 200, 15);
  EXPECT_EQ(Told(kA), Millis(20));
  Run20(10'000, 30, 30);
  EXPECT_GE(Told(kA), Millis(35));
  EXPECT_LT(Told(kA), Micros(35'700));
}

TEST_F(Following, IsOffUnlessAskedFor) {
  Open({});
  Run20(0, 20, 40);
  EXPECT_EQ(Told(kA), Millis(20));
}

// A choice that could be quicker leaves room for a stall, where that is asked for.
TEST_F(Following, KeepsAReserveForStalls) {
  Open({.follow = {.on = true, .stalls = true}});
  int at = Run20(0, 100, 20);
  for (int second = 0; second < 5; ++second) {
    at = Run20(at, 49, 20);
    at = Run20(at, 1, 50);
  }
  const ProfileTable& told = dispatcher_->view().profile;
  EXPECT_EQ(told.Latency(kA, ExitId{1}, 1, LaneClass{0}), Millis(20));
  EXPECT_EQ(told.reserve(kA), Millis(25));  // 30, but half of its SLO at most
}

}  // namespace
}  // namespace tactus
