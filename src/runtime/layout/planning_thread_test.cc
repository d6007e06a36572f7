// A server that plans by itself. Without these, shares could stay where the load was, a plan that
// cannot be had could end the service, or the log could repeat itself every second.
#include "runtime/layout/planning_thread.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "planners/registry.h"
#include "runtime/harness_test.h"
#include "runtime/soak_client_test.h"

namespace tactus {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Harness;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<std::string> kPlanned = {"a", "b", "c"};
const std::vector<std::string> kKnown = {"a", "b", "c", "d"};  // by the profiles

// The profiles say that a batch of 8 takes 1 s on the whole device, 2 s on half of it and 4 s on a
// quarter; the engine takes no time at all.
testing::HarnessOptions Options(double memory_mb) {
  testing::HarnessOptions options;
  options.policy = "planned";
  SplitOptions split{.cores = 4, .shares = {}, .memory_mb = memory_mb};
  for (const double share : {0.25, 0.5, 0.75, 1.0}) {
    split.shares.push_back({share, FlatProfile(kKnown, 8, 500 / share)});
    for (ProfiledModel& model : split.shares.back().profile.models) {
      model.peak_memory_bytes = 100'000'000;
    }
  }
  options.runtime.split = std::move(split);
  return options;
}

class PlanningThreadTest : public ::testing::Test {
 protected:
  explicit PlanningThreadTest(double memory_mb = 1000) : h_(Options(memory_mb)) {
    h_.runtime->Start();
    for (const std::string& name : kPlanned) EXPECT_TRUE(h_.runtime->Serve(FloatModel(name)));
    planning_ = std::make_unique<PlanningThread>(
        *h_.runtime, *MakePlanner("gpulet-retry", std::nullopt),
        PlanningThread::Options{
            .replanner = {.least_rps = 0.1},
            .declared_rps = {},
            .ended =
                [this] {
                  return PlanningThread::Ended{in_time_.load(), late_.load()};
                },
            .tell = [this](const std::string& line) { told_.push_back(line); },
            .warn = [this](const std::string& line) { warned_.push_back(line); }});
  }
  // So many calls of the model, answered, and a look at the end of `passed`.
  void Pass(const std::string& model, int calls, Duration passed = Seconds(20)) {
    for (int i = 0; i < calls; ++i) h_.Send(model, {1, 2}, {1, 2});
    h_.replies.AwaitAll();
    in_time_ += calls;
    planning_->Look(passed);
  }
  // Of the device's time, by the layout that serves.
  double ShareOf(const std::string& model) const {
    const DeviceLayout layout = h_.runtime->layout();
    double share = 0;
    for (const LanePlan& lane : layout.plan->lanes) {
      for (const PlanEntry& entry : lane.entries) {
        if (layout.models[entry.model.value()] != model) continue;
        share += lane.spec.fraction * ToSeconds(entry.length) / ToSeconds(lane.cycle);
      }
    }
    return share;
  }
  void ExpectServed(const std::vector<std::string>& names = kPlanned) {
    for (const std::string& name : names) {
      const InferReply& reply = h_.replies.Await(h_.Send(name, {1, 2}, {1, 2}));
      EXPECT_TRUE(reply.status) << name << ": " << reply.status.error().message;
    }
  }
  Status First() { return planning_->First(); }

  std::atomic<std::int64_t> in_time_{0};
  std::atomic<std::int64_t> late_{0};
  std::vector<std::string> told_;
  std::vector<std::string> warned_;
  Harness h_;
  std::unique_ptr<PlanningThread> planning_;
};

TEST_F(PlanningThreadTest, WithoutALoadEveryModelHasAPlace) {
  ASSERT_TRUE(First());
  EXPECT_EQ(planning_->reading().questions, 1);
  EXPECT_GT(planning_->reading().asked, Duration{}) << "the first question takes time too";
  EXPECT_THAT(told_, ElementsAre(HasSubstr("for a 0.0, b 0.0, c 0.0 requests/s")));
  ExpectServed();
  for (int i = 0; i < 5; ++i) planning_->Look(Seconds(20));
  EXPECT_EQ(h_.runtime->layout().changes, 1);
}

TEST_F(PlanningThreadTest, SharesFollowTheLoadFromOneModelToAnother) {
  ASSERT_TRUE(First());
  for (int i = 0; i < 4; ++i) Pass("a", 80);
  const double before = ShareOf("a");
  EXPECT_GT(before, 2 * ShareOf("c"));
  EXPECT_THAT(told_.back(), HasSubstr("8 a"));
  ExpectServed();
  for (int i = 0; i < 4; ++i) Pass("c", 80);
  EXPECT_GT(ShareOf("c"), 2 * ShareOf("a"));
  EXPECT_LT(ShareOf("a"), before);
  ExpectServed();
  EXPECT_THAT(warned_, IsEmpty());
  const PlanningReading reading = planning_->reading();
  EXPECT_GE(reading.questions, 8);
  EXPECT_EQ(reading.infeasible, 0);
  EXPECT_NEAR(reading.rates_rps.at("c"), 4, 0.5);
}

TEST_F(PlanningThreadTest, MissedDeadlinesBringTheQuestionForward) {
  ASSERT_TRUE(First());
  Pass("a", 80, Seconds(2));
  EXPECT_EQ(h_.runtime->layout().changes, 1);
  late_ += 5;
  planning_->Look(Seconds(1));
  EXPECT_EQ(h_.runtime->layout().changes, 2);
  EXPECT_GT(ShareOf("a"), 2 * ShareOf("b"));
}

TEST_F(PlanningThreadTest, WhatNoPlanSustainsIsToldOnceAndServedInPart) {
  ASSERT_TRUE(First());
  for (int i = 0; i < 6; ++i) Pass("a", 400);
  EXPECT_THAT(warned_, SizeIs(1));
  EXPECT_THAT(warned_[0], HasSubstr("'a' lacks"));
  EXPECT_GT(planning_->reading().infeasible, 3);
  const std::int64_t changes = h_.runtime->layout().changes;
  for (int i = 0; i < 4; ++i) Pass("a", 400);
  EXPECT_EQ(h_.runtime->layout().changes, changes) << "nothing is to be had by a change";
  ExpectServed();
  for (int i = 0; i < 10; ++i) Pass("b", 20);
  EXPECT_THAT(planning_->reading().shortage, IsEmpty());
  for (int i = 0; i < 6; ++i) Pass("a", 400);
  EXPECT_THAT(warned_, SizeIs(2)) << "it was over in between";
}

TEST_F(PlanningThreadTest, WhatCannotBeHadLeavesWhatServesAndIsToldOnce) {
  ASSERT_TRUE(First());
  h_.engine.broken_models = {"a", "b", "c"};
  Pass("a", 120);
  const Duration within = Seconds(1);
  late_ += 5;
  for (int i = 0; i < 5; ++i) planning_->Look(within);
  EXPECT_EQ(h_.runtime->layout().given_up, 1) << "not tried again within the period";
  Pass("a", 120);
  EXPECT_EQ(h_.runtime->layout().given_up, 2);
  EXPECT_EQ(h_.runtime->layout().changes, 1);
  EXPECT_THAT(warned_, ElementsAre(HasSubstr("what serves stays: model '")));
  ExpectServed();
  h_.engine.broken_models.clear();
  Pass("a", 120);
  EXPECT_EQ(h_.runtime->layout().changes, 2);
  ExpectServed();
}

TEST_F(PlanningThreadTest, AModelThatComesHasAPlaceAtTheNextLook) {
  ASSERT_TRUE(First());
  ASSERT_TRUE(h_.runtime->Serve(FloatModel("d")));
  planning_->Look(Seconds(1));
  ExpectServed(kKnown);
  ASSERT_TRUE(h_.runtime->Unload("b"));
  planning_->Look(Seconds(1));
  ExpectServed({"a", "c", "d"});
}

class SmallDevice : public PlanningThreadTest {
 protected:
  SmallDevice() : PlanningThreadTest(250) {}
};

TEST_F(SmallDevice, ModelsThatDoNotFitItsMemoryAreRefusedWithTheArithmetic) {
  const Status first = First();
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().message, HasSubstr("need 300 MB ('a' 100, 'b' 100, 'c' 100); all "
                                               "devices together have 250"));
  ASSERT_TRUE(h_.runtime->Unload("b"));
  ASSERT_TRUE(First());
  ExpectServed({"a", "c"});
}

// Looks at any time, whatever clients send; the thread of its own beside them.
class PlanningSoak : public PlanningThreadTest, public ::testing::WithParamInterface<int> {
 protected:
  void LookSometime(Rng& rng) {
    if (rng.Below(4) == 0) late_ += 1;
    planning_->Look(Millis(1 + static_cast<std::int64_t>(rng.Below(20'000))));
  }
};

class PlanningStopSoak : public PlanningSoak {
 protected:
  PlanningStopSoak() {
    // Batches of any length, so that some run whatever happens.
    h_.engine.terminates = GetParam() % 2 == 0;
    h_.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
      for (std::uint64_t i = job.id.value() % 16; i > 0; --i) std::this_thread::yield();
      return {};
    };
  }
};

TEST_P(PlanningSoak, EveryCallIsAnsweredOnceWhileTheServerPlans) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  ASSERT_TRUE(First());
  planning_->Start();
  planning_->Stop();
  testing::SoakClients clients(*h_.runtime, kPlanned, seed);
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (int client = 0; client < 2; ++client) {
    threads.emplace_back([&, client] {
      for (std::size_t phase = 0; phase < 3; ++phase) clients.Run(client, 100, phase);
      --running;
    });
  }
  Rng rng = Rng::Stream(seed, "looks");
  while (running.load() > 0) LookSometime(rng);
  for (std::thread& thread : threads) thread.join();
  // On a busy machine the clients may be done before a look; the load that is gone is a change too.
  for (int i = 0; i < 1000 && h_.runtime->layout().changes <= 1; ++i) LookSometime(rng);
  planning_.reset();
  EXPECT_GT(h_.runtime->layout().changes, 1);
  h_.runtime->Stop(Seconds(1));
  EXPECT_EQ(clients.answered(), 600);
  EXPECT_EQ(clients.wrong(), 0);
  EXPECT_EQ(h_.engine.loaded(), 0u);
}

// The stop comes while lanes are made, while old ones drain, or between; of the runtime alone, or
// as `tactus serve` stops.
TEST_P(PlanningStopSoak, EveryCallIsAnsweredOnceWheneverTheServerStops) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  ASSERT_TRUE(First());
  testing::SoakClients clients(*h_.runtime, kPlanned, seed);
  constexpr int kClients = 3;
  std::atomic<int> running{kClients};
  std::vector<std::thread> threads;
  for (int client = 0; client < kClients; ++client) {
    threads.emplace_back([&, client] {
      clients.RunUntilRefused(client);
      --running;
    });
  }
  std::atomic<bool> planned{false};
  std::thread plans([&] {
    Rng rng = Rng::Stream(seed, "looks");
    while (!planned.load()) LookSometime(rng);
  });
  Rng rng = Rng::Stream(seed, "stop");
  const int before = 20 + static_cast<int>(rng.Below(600));
  while (clients.answered() < before && running.load() > 0) std::this_thread::yield();
  EXPECT_GE(clients.answered(), before) << "refused before the stop";
  const bool runtime_alone = rng.Below(2) == 0;
  if (!runtime_alone) {
    h_.runtime->EndChanges();
    planned.store(true);
    plans.join();
  }
  h_.runtime->Stop(Millis(static_cast<std::int64_t>(rng.Below(3))));
  for (std::thread& thread : threads) thread.join();
  planned.store(true);
  if (runtime_alone) plans.join();
  EXPECT_EQ(clients.answered(), clients.sent());
  EXPECT_EQ(clients.wrong(), 0);
  EXPECT_EQ(h_.engine.loaded(), 0u);
  EXPECT_THAT(warned_, Each(Not(HasSubstr("stopping"))));
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlanningSoak, ::testing::Range(1, 4));
INSTANTIATE_TEST_SUITE_P(Seeds, PlanningStopSoak, ::testing::Range(1, 11));

}  // namespace
}  // namespace tactus
