// Without this, options that leave no time within an SLO run at 100 % violations and nobody says
// why.
#include "check/never_served.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/registry.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

constexpr int kBatches = 8;

// One model whose batches of one and of eight take so long; straight between them.
ServedModels Taking(double one_ms, double eight_ms, double slo_ms) {
  ServedModels made;
  made.models.push_back(
      {.name = "m", .slo = FromMillis(slo_ms), .max_batch = kBatches, .exits = {{"final"}}});
  ProfileTable::ModelRows rows{.exits = 1, .max_batch = kBatches, .latency = {}};
  for (int b = 0; b < kBatches; ++b) {
    rows.latency.push_back(FromMillis(one_ms + (eight_ms - one_ms) * b / (kBatches - 1)));
  }
  made.profile = ProfileTable(1, {&rows, 1});
  return made;
}

std::string Why(const char* policy, const ServedModels& served_models) {
  const auto made = MakePolicy(policy);
  EXPECT_TRUE(made) << made.error().message;
  const std::vector<LaneSpec> lanes(2);
  return ExplainNeverServed((*made)->traits(), served_models, lanes, ModelId{0}).value_or("");
}

TEST(NeverServed, SaysWhatAPolicysOwnOptionsLeaveNoTimeFor) {
  const ServedModels usual = Taking(5, 12, 20);
  for (const PolicyInfo& info : Policies()) EXPECT_EQ(Why(info.name.c_str(), usual), "");
  EXPECT_EQ(Why("symphony:ctrl=14000,data=1000", usual), "") << "just in time";
  EXPECT_EQ(Why("symphony-plain:ctrl=14001,data=1000", usual),
            "policy 'symphony-plain:ctrl=14001,data=1000' serves nothing of model 'm': it counts "
            "on 20.001 ms at least: a request alone at the final exit takes 5.000 ms (the "
            "profile's percentile and the jitter), and its own delays, batch sizes and margins "
            "take the rest; the SLO is 20 ms");
  EXPECT_THAT(Why("symphony:ctrl=14001,data=1000", usual), HasSubstr("it counts on 20.001 ms"));
  EXPECT_THAT(Why("clockwork:sizes=9/99", usual), HasSubstr("has no batch size for it, whose "
                                                            "batches are of 1 to 8"));
  EXPECT_EQ(Why("clockwork:sizes=8/99", usual), "");
  EXPECT_EQ(Why("clockwork:margin=4", usual), "");
  EXPECT_THAT(Why("clockwork:margin=4.5", usual), HasSubstr("counts on 22.500 ms"));
  EXPECT_THAT(Why("clockwork:sizes=8", Taking(5, 12, 10)), HasSubstr("counts on 12.000 ms"));
}

// A batch of eight would be in time and one request is not: whoever gives up heads by what they
// take alone gives up all.
TEST(NeverServed, SpeaksOfAProfileThatFallsAllTheWay) {
  const ServedModels falling = Taking(12, 5, 10);
  for (const char* policy : {"symphony", "clockwork", "shepherd", "nexus", "timeout", "strait",
                             "strait-plain", "temporal", "horizon"}) {
    EXPECT_THAT(Why(policy, falling), HasSubstr("counts on 12.000 ms")) << policy;
  }
  // These serve whatever comes, however late.
  for (const char* policy : {"edgeserving", "fifo", "timeout:drop=never"}) {
    EXPECT_EQ(Why(policy, falling), "") << policy;
  }
}

// Who exits early serves what the final exit could not.
TEST(NeverServed, CountsOnTheQuickestExitOfWhoExitsEarly) {
  ServedModels two = Taking(5, 12, 4);
  two.models[0].exits = {{"1"}, {"final"}};
  std::vector<Duration> latency(kBatches, Millis(3));
  latency.insert(latency.end(), kBatches, Millis(5));
  const ProfileTable::ModelRows rows{.exits = 2, .max_batch = kBatches, .latency = latency};
  two.profile = ProfileTable(1, {&rows, 1});
  EXPECT_EQ(Why("horizon", two), "");
  EXPECT_THAT(Why("symphony", two), HasSubstr("alone at the final exit takes 5.000 ms"));
  two.models[0].slo = Millis(2);
  EXPECT_THAT(Why("horizon", two), HasSubstr("alone at the quickest exit takes 3.000 ms"));
}

// One slow lane beside a quick one is no reason, and a model without an SLO has none.
TEST(NeverServed, CountsOnTheQuickestLane) {
  ServedModels two = Taking(5, 12, 8);
  std::vector<Duration> latency(kBatches, Millis(20));
  latency.insert(latency.end(), kBatches, Millis(7));
  const ProfileTable::ModelRows rows{.exits = 1, .max_batch = kBatches, .latency = latency};
  two.profile = ProfileTable(2, {&rows, 1});
  const auto policy = MakePolicy("symphony");
  const LaneSpec slow;
  const LaneSpec quick{.lane_class = LaneClass{1}};
  EXPECT_FALSE(ExplainNeverServed((*policy)->traits(), two, std::vector{slow, quick}, ModelId{0}));
  EXPECT_TRUE(ExplainNeverServed((*policy)->traits(), two, std::vector{slow}, ModelId{0}));
  two.models[0].slo = Duration{};
  EXPECT_FALSE(ExplainNeverServed((*policy)->traits(), two, std::vector{slow}, ModelId{0}));
}

}  // namespace
}  // namespace tactus
