#include "sim/search/peak_goodput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/registry.h"
#include "sim/sim_testing.h"

namespace tactus {
namespace {

ProfileFile Affine() {
  ProfileFile profile;
  profile.provenance = "made up for a test";
  profile.models = {AffineModelOf("m", Millis(5), Millis(1), 32)};
  return profile;
}

Scenario Single() {
  Scenario scenario = ScenarioOf(Affine(), 1, 8);
  scenario.lanes = 2;
  scenario.models[0].slo_ms = 30;
  return scenario;
}

using ::testing::HasSubstr;

PolicyFactory Named(const char* name) {
  return [name] { return MakePolicy(name); };
}

// The peak of batch 1 is known: one lane at 6 ms each must stay under 1/6 ms, and with an SLO of
// several services it comes near.
TEST(PeakGoodput, OfAQueueIsBelowItsCapacity) {
  Scenario scenario = Single();
  scenario.lanes = 1;
  scenario.models[0].slo_ms = 60;
  scenario.duration_s = 40;
  const auto found = FindPeakGoodput(
      scenario, Affine(), [] { return std::make_unique<FifoPolicy>(1); }, {.seeds = {1, 2, 3}});
  ASSERT_TRUE(found) << found.error().message;
  const double capacity = 1000.0 / 6;
  EXPECT_LT(found->peak.rate_rps, capacity);
  // M/D/1 with P(wait > 54 ms) = 1 %: rho is about 0.77.
  EXPECT_NEAR(found->peak.rate_rps / capacity, 0.77, 0.05);
  EXPECT_GT(found->peak.half_width_rps, 0);
  EXPECT_EQ(found->peak.limiting_model, "m");
}

// What follows from a peak, as a run at each seed's own, needs the peaks and not their mean.
TEST(PeakGoodput, TellsEachSeedsPeak) {
  const auto found = FindPeakGoodput(Single(), Affine(), Named("symphony:gather=prefix,lead=0"),
                                     {.seeds = {7, 8}});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->peak.rates_rps,
              ::testing::ElementsAre(found->searches[0].rate_rps, found->searches[1].rate_rps));
  EXPECT_DOUBLE_EQ(found->peak.rate_rps, (found->peak.rates_rps[0] + found->peak.rates_rps[1]) / 2);
}

// Of models that are alike the worst is so by chance: judged together, their peak is higher, and a
// run that is too short for each of them is long enough for all.
TEST(PeakGoodput, OfModelsThatAreJudgedTogetherIsThatOfAllRequests) {
  ProfileFile profile = Affine();
  Scenario scenario = Single();
  scenario.lanes = 4;
  scenario.models.assign(8, scenario.models[0]);
  for (std::size_t m = 0; m < scenario.models.size(); ++m) {
    scenario.models[m].name = "m" + std::to_string(m);
    scenario.models[m].profile_as = "m";
  }
  EXPECT_NEAR(LeastJudgedRate(scenario) / LeastJudgedRate(scenario, true), 8, 1e-9);
  const auto policy = Named("symphony:gather=prefix,lead=0");
  const auto worst = FindPeakGoodput(scenario, profile, policy, {.seeds = {7}});
  const auto together =
      FindPeakGoodput(scenario, profile, policy, {.seeds = {7}, .together = true});
  ASSERT_TRUE(worst && together);
  EXPECT_GT(together->peak.rate_rps, worst->peak.rate_rps);
  EXPECT_LE(together->at_peak.runs[0].all.bad_ratio, 0.01);
  EXPECT_EQ(together->peak.limiting_model, "");
}

// The runs must be those of the peak that is printed beside them.
TEST(PeakGoodput, RunsAtThePeakAndBesideIt) {
  const auto found = FindPeakGoodput(Single(), Affine(), Named("symphony:gather=prefix,lead=0"),
                                     {.seeds = {7, 8}, .multiples = {0.5, 1.5}});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->at_peak.runs.size(), 2u);
  for (std::size_t s = 0; s < 2; ++s) {
    const RunReport& run = found->at_peak.runs[s];
    EXPECT_EQ(run.seed, 7 + s);
    EXPECT_LE(run.models[0].figures.bad_ratio, 0.01);
    EXPECT_NEAR(run.all.offered_rps / found->searches[s].rate_rps, 1, 0.05);
    EXPECT_EQ(run.peak->rate_rps, found->peak.rate_rps);
  }
  ASSERT_EQ(found->beside.size(), 2u);
  EXPECT_LT(found->beside[0].runs[0].all.offered_rps, found->at_peak.runs[0].all.offered_rps);
  EXPECT_GT(found->beside[1].runs[0].all.bad_ratio, 0.2);
}

TEST(PeakGoodput, StaysUnderItsBounds) {
  for (const char* policy :
       {"symphony:gather=prefix,lead=0", "symphony:when=eager,gather=prefix"}) {
    const auto found = FindPeakGoodput(Single(), Affine(), Named(policy), {});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->peak.staggered_bound_rps, 2 * 15 / 20.0 * 1000) << policy;
    EXPECT_GT(found->peak.rate_rps, 0.5 * *found->peak.staggered_bound_rps) << policy;
    EXPECT_LT(found->peak.rate_rps, *found->peak.staggered_bound_rps) << policy;
    EXPECT_LT(found->peak.rate_rps, found->peak.fluid_limit_rps) << policy;
  }
}

// An SLO below the latency is an answer, not an endless search.
TEST(PeakGoodput, IsNothingWhereNoRequestCanBeInTime) {
  Scenario scenario = Single();
  scenario.models[0].slo_ms = 5;
  scenario.duration_s = 1;
  EXPECT_FALSE(FindPeakGoodput(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {}));
  // Once, when it was measured, a batch was quick enough: not for the percentile that counts.
  ProfileFile lucky = Affine();
  for (ProfileCell& cell : lucky.models[0].exits[0].cells) cell.min_ms = 1;
  PeakOptions options;
  options.search.most_doublings = 4;
  const auto found =
      FindPeakGoodput(scenario, lucky, Named("symphony:gather=prefix,lead=0"), options);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->peak.rate_rps, 0);
  EXPECT_EQ(found->peak.staggered_bound_rps, 0);
  EXPECT_TRUE(found->at_peak.runs.empty());
  EXPECT_EQ(found->searches[0].probes.back().worst, 1);
}

// Seconds in which nothing is counted must not pass for seconds in which nothing went wrong.
TEST(PeakGoodput, IsNotFoundWhereNothingIsCounted) {
  Scenario scenario = Single();
  scenario.warmup_requests = 1'000'000;
  PeakOptions options;
  options.search.most_doublings = 4;
  const auto found =
      FindPeakGoodput(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), options);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("too short a run"));
}

// Where less load makes the ratio no better, a search that went on down would end where nothing
// arrives, and call that the policy's fault.
TEST(PeakGoodput, IsJudgedOnlyWhereRequestsOfEveryModelCome) {
  Scenario scenario = Single();
  ProfileFile lucky = Affine();
  for (ProfileCell& cell : lucky.models[0].exits[0].cells) cell.min_ms = 1;
  scenario.models[0].rate_rps = 90;
  scenario.models.push_back({.name = "rare", .profile_as = "m", .slo_ms = 5, .rate_rps = 10});
  scenario.duration_s = 4;
  scenario.warmup_s = 2;
  scenario.warmup_requests = 20;
  // 10 % of the requests are the rare model's: 100 in all for 10 of it, and 20 that do not count.
  EXPECT_DOUBLE_EQ(LeastJudgedRate(scenario), (100 + 20) / 2.0);
  const auto found = FindPeakGoodput(scenario, lucky, Named("symphony:gather=prefix,lead=0"), {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->peak.rate_rps, 0);
  const GoodputPeak& search = found->searches[0];
  EXPECT_EQ(search.probes.back().rate_rps, 60);
  for (const GoodputProbe& probe : search.probes) EXPECT_TRUE(probe.judged) << probe.rate_rps;
  ASSERT_NE(BestProbe(search), nullptr);
  EXPECT_EQ(BestProbe(search)->worst_model, 1u);
}

// With lanes that follow the load, slow to start, the search found less than a hundredth of what
// the scenario sustains.
TEST(PeakGoodput, HasNoMeaningWhereLanesFollowTheLoad) {
  Scenario scenario = Single();
  scenario.scale_interval_s = 1;
  const auto found =
      FindPeakGoodput(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("--set autoscale.interval_s=0"));
}

TEST(SetTotalRate, KeepsTheProportions) {
  Scenario scenario = ScenarioOf(Affine(), 60, 1);
  scenario.models.push_back({.name = "own", .profile_as = "m", .rate_rps = 30});
  scenario.models.push_back({.name = "c", .profile_as = "m"});
  const std::vector<double> before = Rates(scenario);
  SetTotalRate(scenario, 7);
  double total = 0;
  for (const double rate : Rates(scenario)) total += rate;
  EXPECT_NEAR(total, 7, 1e-9);
  EXPECT_NEAR(Rates(scenario)[1] / Rates(scenario)[0], before[1] / before[0], 1e-9);
}

// Two lanes of half the speed are less than one: what is gathered while they run is late.
TEST(PeakGoodput, IsBoundedByLanesThatDiffer) {
  Scenario scenario = Single();
  scenario.lanes = 3;
  scenario.lane_kinds = {{.name = "fast", .count = 1, .speed = 2},
                         {.name = "slow", .count = 1, .speed = 0.5}};
  EXPECT_DOUBLE_EQ(QuickestLanes(scenario), 1 + 0.5 + 0.25);
  const auto found =
      FindPeakGoodput(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->peak.staggered_bound_rps);
  EXPECT_LT(found->peak.rate_rps, found->peak.fluid_limit_rps);
  EXPECT_GT(found->peak.rate_rps, 0.7 * found->peak.fluid_limit_rps);
  // The bound of lanes that are alike is that of a profile which says the same.
  ProfileFile twice = Affine();
  for (ProfileCell& cell : twice.models[0].exits[0].cells) {
    cell = {0,
            cell.mean_ms / 2,
            cell.min_ms / 2,
            cell.p50_ms / 2,
            cell.p95_ms / 2,
            cell.p99_ms / 2,
            cell.max_ms / 2,
            0};
  }
  Scenario quick = Single();
  quick.lane_kinds = {{.name = "fast", .count = quick.lanes, .speed = 2}};
  EXPECT_NEAR(FluidPeak(*AffineModels(quick, Affine()), QuickestLanes(quick)),
              FluidPeak(*AffineModels(Single(), twice), 2), 1e-6);
}

// Fast lanes that are there already: fewer others are needed, and none below those.
TEST(LeastLanes, CountThoseThatAreGiven) {
  Scenario scenario = Single();
  scenario.rate_rps = 2500;
  const auto plain = FindLeastLanes(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {});
  scenario.lane_kinds = {{.name = "fast", .count = 1, .speed = 2}};
  const auto mixed = FindLeastLanes(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {});
  ASSERT_TRUE(plain && mixed);
  EXPECT_LT(mixed->lanes, plain->lanes);
  EXPECT_GE(mixed->lanes, mixed->fluid);
  scenario.lane_kinds[0].count = 40;
  scenario.lanes = 40;
  EXPECT_EQ(FindLeastLanes(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {})->lanes,
            40);
}

// One lane too few misses deadlines, one too many is money.
TEST(LeastLanes, CarryTheRateAndOneLessDoesNot) {
  Scenario scenario = Single();
  scenario.rate_rps = 2500;
  const auto least =
      FindLeastLanes(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {.seeds = {1, 2}});
  ASSERT_TRUE(least) << least.error().message;
  const auto models = AffineModels(scenario, Affine());
  EXPECT_GE(least->fluid, FluidLanes(*models));
  EXPECT_LT(least->fluid, FluidLanes(*models) + 1);
  EXPECT_DOUBLE_EQ(least->fluid_exact, FluidLanes(*models));
  EXPECT_GE(least->lanes, least->fluid);
  ASSERT_EQ(least->runs.size(), 2u);
  for (const RunReport& run : least->runs) {
    EXPECT_EQ(run.lanes.size(), static_cast<std::size_t>(least->lanes));
    EXPECT_LE(run.models[0].figures.bad_ratio, 0.01);
  }
  const auto peak_on = [&](int lanes) {
    scenario.lanes = lanes;
    return FindPeakGoodput(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {})
        ->peak.rate_rps;
  };
  EXPECT_GT(peak_on(least->lanes), 0.97 * 2500);
  EXPECT_LT(peak_on(least->lanes - 1), 1.03 * 2500);
}

TEST(LeastLanes, AreNoneWhereTheMostAreTooFew) {
  Scenario scenario = Single();
  scenario.rate_rps = 2500;
  scenario.duration_s = 2;
  const auto few =
      FindLeastLanes(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {.most = 2});
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_EQ(few->lanes, 0);
  ASSERT_EQ(few->runs.size(), 1u);
  EXPECT_GT(few->runs[0].models[0].figures.bad_ratio, 0.01) << "the run that shows it";
  scenario.models[0].slo_ms = 5;  // under the latency of a single request: no scenario at all
  scenario.rate_rps = 10;
  EXPECT_FALSE(
      FindLeastLanes(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {.most = 16}));
  scenario = Single();
  scenario.rate_rps = 1;  // a handful of requests: any number of lanes would do, or none
  EXPECT_NE(FindLeastLanes(scenario, Affine(), Named("symphony:gather=prefix,lead=0"), {})
                .error()
                .message.find("too short a run"),
            std::string::npos);
}

}  // namespace
}  // namespace tactus
