// Layouts that change, as transcripts. Without them a lane could be opened before it is ready, two
// layouts could want one lane, or a lane be made anew that was there already.
#include "placement/plan_transition.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

using Kind = TransitionStep::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LanePlan LaneOf(std::uint32_t device, int percent, std::initializer_list<std::uint32_t> models,
                int batch = 1) {
  LanePlan lane;
  lane.spec = {.device = DeviceId{device},
               .lane_class = LaneClass{static_cast<LaneClass::rep>(percent / 20)},
               .fraction = percent / 100.0};
  lane.cycle = Millis(20);
  for (const std::uint32_t m : models) lane.entries.push_back({ModelId{m}, batch, {}, Millis(5)});
  return lane;
}

// "make 2 as 20 % of device 0", "adopt", "open 2": a step each.
std::vector<std::string> Told(const PlanTransition::Steps& steps) {
  constexpr const char* kNames[] = {"make", "load", "adopt", "open", "close", "unload", "remove"};
  std::vector<std::string> told;
  for (const TransitionStep& step : steps) {
    std::string& text = told.emplace_back(kNames[static_cast<int>(step.kind)]);
    if (step.kind != Kind::kAdopt) text += " " + std::to_string(step.lane.value());
    if (step.kind != Kind::kMake) continue;
    text += " as " + std::to_string(std::lround(100 * step.spec.fraction)) + " % of device " +
            std::to_string(step.spec.device.value());
  }
  return told;
}

// Two devices: model 0 on 40 % of the first, 1 on the rest of it, 2 on the second.
class PlanTransitionTest : public ::testing::Test {
 protected:
  PlanTransitionTest() {
    before_.lanes = {LaneOf(0, 40, {0}), LaneOf(0, 60, {1}), LaneOf(1, 100, {2})};
    EXPECT_THAT(Begin(before_),
                ElementsAre("make 0 as 40 % of device 0", "make 1 as 60 % of device 0",
                            "make 4 as 100 % of device 1"));
    EXPECT_THAT(Prepared(4), IsEmpty());
    EXPECT_THAT(Prepared(0), IsEmpty());
    EXPECT_THAT(Prepared(1), ElementsAre("adopt", "open 0", "open 1", "open 4"));
    EXPECT_TRUE(transition_.steady());
  }
  std::vector<std::string> Begin(const Plan& plan) { return Told(*transition_.Begin(plan)); }
  std::vector<std::string> Prepared(std::uint32_t lane) {
    return Told(transition_.Prepared(LaneId{lane}));
  }
  std::vector<std::string> Drained(std::uint32_t lane) {
    return Told(transition_.Drained(LaneId{lane}));
  }
  const LanePlan& Next(std::size_t lane) const { return transition_.next()->lanes[lane]; }

  Plan before_;
  PlanTransition transition_{2};
};

TEST_F(PlanTransitionTest, PreparesThenSwitchesThenDrains) {
  Plan plan{.lanes = {LaneOf(0, 20, {0}), LaneOf(0, 80, {1}), LaneOf(1, 100, {2})}};
  EXPECT_THAT(Begin(plan), ElementsAre("make 2 as 20 % of device 0", "make 3 as 80 % of device 0"));
  EXPECT_FALSE(transition_.steady());
  EXPECT_EQ(transition_.Begin(plan).error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(Prepared(3), IsEmpty());
  EXPECT_THAT(Prepared(2), ElementsAre("adopt", "close 0", "close 1", "open 2", "open 3"));
  EXPECT_EQ(Next(2).entries[0].model, ModelId{0});
  EXPECT_THAT(Next(0).entries, IsEmpty());
  EXPECT_EQ(Next(0).spec.fraction, 0.4) << "it is still that while it drains";
  EXPECT_THAT(Drained(1), ElementsAre("remove 1"));
  EXPECT_FALSE(transition_.steady());
  EXPECT_THAT(Drained(0), ElementsAre("remove 0"));
  EXPECT_TRUE(transition_.steady());
}

// New batch sizes and cycles, and models that a lane has already, cost nothing.
TEST_F(PlanTransitionTest, WhatIsThereIsNotMadeAgain) {
  Plan plan = before_;
  for (LanePlan& lane : plan.lanes) lane.entries[0].batch = 7;
  EXPECT_THAT(Begin(plan), ElementsAre("adopt"));
  EXPECT_EQ(Next(1).entries[0].batch, 7);
  EXPECT_TRUE(transition_.steady());
}

TEST_F(PlanTransitionTest, ALaneThatStaysLoadsItsNewModelsWhileItServes) {
  Plan plan = before_;
  plan.lanes[1] = LaneOf(0, 60, {1, 0});
  EXPECT_THAT(Begin(plan), ElementsAre("load 1"));
  EXPECT_THAT(Prepared(1), ElementsAre("adopt"));
}

// What left the plan would hold memory of the device for good.
TEST_F(PlanTransitionTest, ALaneThatStaysUnloadsWhatLeftIt) {
  Plan plan = before_;
  plan.lanes[1] = LaneOf(0, 60, {1, 0});
  Begin(plan);
  Prepared(1);
  EXPECT_THAT(Begin(before_), ElementsAre("adopt", "unload 1"));
  EXPECT_EQ(Next(1).entries.size(), 1u);
  EXPECT_TRUE(transition_.steady());
  EXPECT_THAT(Begin(plan), ElementsAre("load 1")) << "it is not there any more";
}

TEST_F(PlanTransitionTest, ALaneThatCannotBeMadeLeavesTheLayoutAsItWas) {
  const auto serving = transition_.next();
  Plan plan{.lanes = {LaneOf(0, 20, {0}), LaneOf(0, 80, {1}), LaneOf(1, 100, {2, 1})}};
  EXPECT_THAT(Begin(plan),
              ElementsAre("make 2 as 20 % of device 0", "make 3 as 80 % of device 0", "load 4"));
  EXPECT_THAT(Told(transition_.Failed(LaneId{3})), IsEmpty()) << "others are still being made";
  EXPECT_THAT(Prepared(4), IsEmpty());
  EXPECT_FALSE(transition_.steady());
  EXPECT_THAT(Prepared(2), ElementsAre("remove 2", "remove 3", "unload 4"));
  EXPECT_TRUE(transition_.steady());
  EXPECT_EQ(transition_.next(), serving);
  EXPECT_THAT(Begin(before_), ElementsAre("adopt")) << "its lanes serve, with its models";
  EXPECT_THAT(Begin(plan),
              ElementsAre("make 2 as 20 % of device 0", "make 3 as 80 % of device 0", "load 4"));
}

TEST(PlanTransition, WithoutALayoutThereIsNoneToStayWith) {
  PlanTransition transition(1);
  ASSERT_TRUE(transition.Begin({.lanes = {LaneOf(0, 100, {0})}}));
  EXPECT_THAT(Told(transition.Failed(LaneId{0})), ElementsAre("remove 0"));
  EXPECT_EQ(transition.next(), nullptr);
  EXPECT_TRUE(transition.steady());
}

// Planners number devices as they come; which is which is nobody's business but the transition's.
TEST_F(PlanTransitionTest, TakesThePlansDevicesInTheOrderThatKeepsMost) {
  Plan plan;
  plan.lanes = {LaneOf(0, 100, {2}), LaneOf(1, 60, {1}), LaneOf(1, 40, {0})};
  EXPECT_THAT(Begin(plan), ElementsAre("adopt"));
  EXPECT_EQ(Next(0).entries[0].model, ModelId{0});
  EXPECT_EQ(Next(4).entries[0].model, ModelId{2});
  EXPECT_EQ(Next(4).spec.device, DeviceId{1});
}

TEST_F(PlanTransitionTest, RefusesWhatHasNoRoom) {
  Plan plan{.lanes = {LaneOf(0, 20, {0}), LaneOf(0, 20, {1}), LaneOf(0, 20, {2})}};
  EXPECT_THAT(transition_.Begin(plan).error().message, HasSubstr("more than 2 lanes on device 0"));
  plan.lanes = {LaneOf(2, 20, {0})};
  EXPECT_THAT(transition_.Begin(plan).error().message, HasSubstr("on device 2; there are 2"));
  EXPECT_TRUE(transition_.steady());
  EXPECT_THAT(Begin(before_), ElementsAre("adopt"));
}

// Random layouts, one after another, each step told in a random order; some lanes cannot be made.
TEST(PlanTransitionLife, EveryLayoutComesToServeAndOnlyItOrTheOneBefore) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "layouts");
    constexpr std::uint32_t kDevices = 3;
    PlanTransition transition(kDevices);
    std::set<std::uint32_t> open;
    std::multiset<std::pair<int, std::size_t>> before;
    for (int round = 0; round < 10; ++round) {
      Plan plan;
      std::multiset<std::pair<int, std::size_t>> wanted;  // class, entries
      for (std::uint32_t d = 0; d < kDevices; ++d) {
        const int part = 20 * static_cast<int>(rng.Below(6));
        for (const int percent : {part, 100 - part}) {
          if (percent == 0 || rng.Below(3) == 0) continue;
          const auto first = static_cast<std::uint32_t>(rng.Below(4));
          plan.lanes.push_back(rng.Below(2) == 0 ? LaneOf(d, percent, {first})
                                                 : LaneOf(d, percent, {first, first + 1}));
          wanted.emplace(percent / 20, plan.lanes.back().entries.size());
        }
      }
      bool failed = false;
      std::vector<TransitionStep> tasks = *transition.Begin(plan);
      while (!tasks.empty()) {
        const std::size_t at = tasks[0].kind == Kind::kAdopt ? 0 : rng.Below(tasks.size());
        const TransitionStep step = tasks[at];
        tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(at));
        PlanTransition::Steps more;
        if (step.kind == Kind::kMake || step.kind == Kind::kLoad) {
          EXPECT_EQ(open.contains(step.lane.value()), step.kind == Kind::kLoad);
          const bool fails = rng.Below(8) == 0;
          failed = failed || fails;
          more = fails ? transition.Failed(step.lane) : transition.Prepared(step.lane);
        } else if (step.kind == Kind::kOpen) {
          EXPECT_TRUE(open.insert(step.lane.value()).second);
        } else if (step.kind == Kind::kClose) {
          EXPECT_EQ(open.erase(step.lane.value()), 1u);
          more = transition.Drained(step.lane);
        }
        tasks.insert(tasks.end(), more.begin(), more.end());
      }
      ASSERT_TRUE(transition.steady());
      std::multiset<std::pair<int, std::size_t>> serves;
      for (const std::uint32_t lane : open) {
        const LanePlan& mine = transition.next()->lanes[lane];
        EXPECT_EQ(mine.spec.device.value(), transition.AllLanes()[lane].device.value());
        serves.emplace(mine.spec.lane_class.value(), mine.entries.size());
      }
      ASSERT_EQ(serves, failed ? before : wanted);
      before = serves;
    }
  }
}

// Devices of other limits: each has as many lanes as it may, and a plan for the one is not carried
// out on the other.
TEST(PlanTransition, EachDeviceHasItsOwnLimits) {
  PlanTransition transition(std::vector<DeviceLimits>{{.most_lanes = 1}, {.most_lanes = 3}});
  const std::vector<LaneSpec> lanes = transition.AllLanes();
  ASSERT_EQ(lanes.size(), 8u);
  EXPECT_EQ(lanes[1].device, DeviceId{0});
  EXPECT_EQ(lanes[2].device, DeviceId{1});
  const auto lane = [](DeviceId::rep device) {
    return LanePlan{.spec = {.device = DeviceId{device}}, .entries = {{.model = ModelId{0}}}};
  };
  EXPECT_FALSE(transition.Begin({.lanes = {lane(0), lane(0)}}));
  EXPECT_FALSE(transition.Begin({.lanes = {lane(1), lane(1), lane(1), lane(1)}}));
  const auto begun = transition.Begin({.lanes = {lane(0), lane(1), lane(1), lane(1)}});
  ASSERT_TRUE(begun) << begun.error().message;
  ASSERT_EQ(begun->size(), 4u);
  EXPECT_EQ((*begun)[0].lane, LaneId{0});
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GE((*begun)[i].lane.value(), 2u);
}

}  // namespace
}  // namespace tactus
