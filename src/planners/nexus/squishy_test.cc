// Squishy bin packing: worked by hand, and what must hold of any plan.
#include "planners/nexus/squishy.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "planners/gpulet/gpulet_testing.h"
#include "planners/registry.h"

namespace tactus {
namespace {

NexusSession Session(double rate, Duration slo, Duration base, Duration each, int most = 64) {
  NexusSession session{.rate_rps = rate, .slo = slo};
  for (int b = 1; b <= most; ++b) session.latency.push_back(base + b * each);
  return session;
}

// Table 2's ResNet50: 2 l(7) <= 25 < 2 l(8), so lanes are saturated by batches of 7.
TEST(PlanNexus, SaturatesLanesWithTheLargestBatchThatMayWaitForOneOfItsKind) {
  const NexusSession resnet = Session(4000, Millis(25), Micros(5072), Micros(1053));
  const Plan plan = PlanNexus({&resnet, 1}, 8, 3);
  EXPECT_EQ(plan.epoch, 3u);
  ASSERT_EQ(plan.lanes.size(), 8u);
  int saturated = 0;
  for (const LanePlan& lane : plan.lanes) {
    ASSERT_EQ(lane.entries.size(), 1u);
    saturated += lane.entries[0].batch == 7 ? 1 : 0;
  }
  EXPECT_GE(saturated, 7);
}

// What a plan promises, whatever the models: batches fit into their cycle, and each model's batch
// after a whole cycle into its SLO; no model that has requests is left out.
TEST(PlanNexus, KeepsItsPromises) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "nexus");
    std::vector<NexusSession> sessions;
    const std::uint64_t models = 1 + rng.Below(12);
    for (std::uint64_t i = 0; i < models; ++i) {
      const auto base = Micros(static_cast<int>(500 + rng.Below(8000)));
      const auto each = Micros(static_cast<int>(100 + rng.Below(3000)));
      const Duration slo = (2 + static_cast<int>(rng.Below(4))) * (base + each) + Millis(5);
      sessions.push_back(Session(1 + 500 * rng.Uniform(), slo, base, each));
    }
    const int lanes = static_cast<int>(models + rng.Below(20));
    const Plan plan = PlanNexus(sessions, lanes, 1);
    std::vector<bool> served(models, false);
    for (const LanePlan& lane : plan.lanes) {
      Duration busy{};
      for (const PlanEntry& entry : lane.entries) {
        const NexusSession& session = sessions[entry.model.value()];
        const Duration latency = session.latency[entry.batch - 1];
        busy += latency;
        EXPECT_LE(lane.cycle + latency, session.slo + Nanos(1));
        served[entry.model.value()] = true;
      }
      EXPECT_LE(busy, lane.cycle);
    }
    EXPECT_EQ(std::count(served.begin(), served.end(), false), 0);
    EXPECT_EQ(PlanNexus(sessions, lanes, 1).lanes.size(), plan.lanes.size());
    if (HasFailure()) return;
  }
}

// Two models at half a lane each share one, if their SLOs leave room for a common cycle.
TEST(PlanNexus, MergesWhatSharesALane) {
  const std::vector<NexusSession> sessions = {Session(100, Millis(100), Millis(5), Millis(1), 16),
                                              Session(100, Millis(100), Millis(5), Millis(1), 16)};
  const Plan plan = PlanNexus(sessions, 1, 1);
  EXPECT_EQ(plan.lanes[0].entries.size(), 2u);
}

TEST(PlanNexus, LeavesLanesEmptyWhenNothingComes) {
  const NexusSession none = Session(0, Millis(25), Millis(5), Millis(1));
  for (const LanePlan& lane : PlanNexus({&none, 1}, 2, 1).lanes) EXPECT_TRUE(lane.entries.empty());
  EXPECT_EQ(PlanNexus({}, 2, 1).lanes.size(), 2u);
}

// Else it is blamed on a window of the plan that nobody sees.
TEST(PlanSquishy, AModelThatOnlyAWholeDeviceServesIsNamedWhereItGetsHalfOfOne) {
  // A batch of one takes 3 ms, on half a device 6.
  TestProblem problem =
      MakeTestProblem({{.rate_rps = 10, .slo = Millis(10), .parallel_at_one = 1}}, 1);
  problem.input.profile = &problem.profile;
  EXPECT_TRUE((*MakePlanner("nexus", std::nullopt))->Solve(problem.input));
  const auto halves = *MakePlanner("nexus-half", std::nullopt);
  const auto plan = halves->Solve(problem.input);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kResourceExhausted) << "whole devices would sustain it";
  EXPECT_EQ(plan.error().message,
            "model 'm0': no batch meets half of its SLO of 10 ms on 50 % of a device, which is "
            "what this planner splits them into: the quickest takes 6 ms; a longer SLO or another "
            "planner helps");
  problem.input.models[0].slo = Millis(12);
  EXPECT_TRUE(halves->Solve(problem.input));
}

// Else a server would ask it for ever, in vain.
TEST(PlanSquishy, HalvesNeedHalfOfADeviceAmongItsShares) {
  const std::vector<double> without = {0.4, 0.6, 1};
  EXPECT_FALSE((*MakePlanner("nexus-half", std::nullopt))->Suits(without));
  EXPECT_TRUE((*MakePlanner("nexus-half", std::nullopt))->Suits(std::vector<double>{0.5, 1}));
  EXPECT_TRUE((*MakePlanner("nexus", std::nullopt))->Suits(without));
}

}  // namespace
}  // namespace tactus
