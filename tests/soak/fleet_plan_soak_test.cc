// Every planner of fleets on random fleets, half of them hostile: rates of zero, links that carry
// next to nothing, memory that fits no model, sources that no link reaches, servers that do not
// reach each other, numbers out of all proportion. A plan is valid and says what it lacks, or the
// fleet is refused in words. `./run soak fleet-plans` does it for a hundred thousand fleets.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "planners/fleet_registry.h"
#include "planners/fleet_testing.h"
#include "planners/octopinf/autoscaler.h"
#include "soak_options.h"

namespace tactus {
namespace {

constexpr int kSpoils = 14;

// Spoils one thing of the fleet; some of these a planner must refuse, with others it must cope.
void Spoil(int how, Rng& rng, FleetInput& input) {
  constexpr double kHuge = 1e9;
  FleetDevice& device = input.devices[rng.Below(input.devices.size())];
  FleetPipeline& pipeline = input.pipelines[rng.Below(input.pipelines.size())];
  FleetStage& stage = pipeline.stages[rng.Below(pipeline.stages.size())];
  const bool extreme = rng.Below(2) == 0;
  switch (how) {
    case 0:
      pipeline.rate_rps = extreme ? kHuge : 0;
      break;
    case 1:
      stage.items = extreme ? kHuge : 0;
      break;
    case 2:
      if (!input.links.empty()) input.links[0].mbps = extreme ? 0 : 1e-9;
      break;
    case 3:
      if (!input.links.empty()) input.links.erase(input.links.begin());
      break;
    case 4:
      device.memory_mb = extreme ? 1e-3 : 60;
      break;
    case 5:
      device.name = input.devices.front().name;
      break;
    case 6:
      pipeline.slo = extreme ? Micros(1) : Nanos(1);
      break;
    case 7:
      device.server = !device.server;  // no server, or one more at a site of its own
      break;
    case 8:
      if (!input.costs.empty()) input.costs.erase(input.costs.begin());
      break;
    case 9:
      stage.cv = extreme ? kHuge : std::numeric_limits<double>::quiet_NaN();
      break;
    case 10:
      (extreme ? stage.in_kb : stage.out_kb) = kHuge;
      break;
    case 11:
      device.most_use = extreme ? 1e-6 : 0;
      break;
    case 12:
      pipeline.rate_rps = extreme ? std::numeric_limits<double>::infinity() : -1;
      break;
    default:
      for (FleetCost& cost : input.costs) {
        for (FleetBatch& batch : cost.batches) batch.infer = extreme ? Seconds(100) : Nanos(1);
      }
  }
}

// With one server more at a site of its own, which some of the others' sites reach.
void AddServer(Rng& rng, FleetInput& input) {
  const SiteId site{static_cast<SiteId::rep>(input.sites.size())};
  input.sites.push_back("annex");
  input.devices.push_back({.name = "annex",
                           .site = site,
                           .accelerators = 2,
                           .streams = 2,
                           .memory_mb = 4000,
                           .server = true});
  for (SiteId::rep other = 0; other < site.value(); ++other) {
    if (rng.Below(2) == 0) continue;
    input.links.push_back({.a = SiteId{other}, .b = site, .mbps = 50, .rtt = Millis(5)});
  }
}

FleetInput FleetOf(std::uint64_t seed) {
  Rng rng = Rng::Stream(seed, "soak/fleet");
  FleetInput input = RandomFleet(rng);
  if (seed % 2 == 0) return input;
  if (rng.Below(2) == 0) AddServer(rng, input);
  for (int times = 1 + static_cast<int>(rng.Below(3)); times > 0; --times) {
    Spoil(static_cast<int>(rng.Below(kSpoils)), rng, input);
  }
  return input;
}

struct PlanCounts {
  std::uint64_t fleets = 0, refused = 0, plans = 0, with_shortage = 0, of_another = 0;
};

void PlanByAll(const FleetInput& input, std::uint64_t seed, PlanCounts& counts) {
  const FleetInput other = FleetOf(seed + 1);
  for (const FleetPlannerInfo& planner : FleetPlanners()) {
    SCOPED_TRACE(std::string(planner.name));
    const auto plan = PlanFleet(planner.name, input);
    ASSERT_TRUE(plan) << plan.error().message;
    ASSERT_EQ(FaultOf(*plan, input, UseLimitOf(planner.name)), "");
    ASSERT_EQ(plan->latency.size(), input.pipelines.size());
    for (const FleetShortage& each : plan->short_of) {
      ASSERT_GE(each.missing_rps, 0);
      ASSERT_FALSE(each.why.empty());
    }
    ++counts.plans;
    counts.with_shortage += plan->short_of.empty() ? 0 : 1;
    if (seed % 16 == 0) {
      ASSERT_EQ(*plan, *PlanFleet(planner.name, input)) << "not the same plan again";
    }
    // For another fleet it is a plan or it is not; nothing else may come of it.
    counts.of_another += FaultOf(*plan, other).empty() ? 0 : 1;
  }
}

void ScaleRandomly(FleetInput input, std::uint64_t seed) {
  Rng rng = Rng::Stream(seed, "soak/surges");
  auto plan = PlanFleet("octopinf", input);
  ASSERT_TRUE(plan);
  AutoScaler scaler;
  for (int step = 1; step <= 12; ++step) {
    for (FleetPipeline& pipeline : input.pipelines) {
      pipeline.rate_rps = static_cast<double>(rng.Below(80));
    }
    scaler.Step(input, *plan, kStart + Seconds(60 * step));
    ASSERT_EQ(FaultOf(*plan, input), "") << "step " << step << " of the AutoScaler";
  }
}

TEST(FleetPlanSoak, EveryPlanIsValidAndSaysWhatItLacks) {
  const Seeds seeds = SeedsOf(400);
  PlanCounts counts;
  for (; seeds.More(counts.fleets) && !HasFailure(); ++counts.fleets) {
    const std::uint64_t seed = seeds.first + counts.fleets;
    SCOPED_TRACE(Again(seed));
    const FleetInput input = FleetOf(seed);
    if (const auto checked = CheckFleet(input); !checked) {
      EXPECT_FALSE(checked.error().message.empty());
      EXPECT_EQ(seed % 2, 1u) << "a fleet that is not hostile: " << checked.error().message;
      ++counts.refused;
      continue;
    }
    PlanByAll(input, seed, counts);
    if (seed % 8 < 2) ScaleRandomly(input, seed);
  }
  std::printf(
      "%llu fleets, %llu of them refused; %llu plans, each valid, %llu of them short of "
      "something; %llu are no plan of another fleet\n",
      static_cast<unsigned long long>(counts.fleets),
      static_cast<unsigned long long>(counts.refused),
      static_cast<unsigned long long>(counts.plans),
      static_cast<unsigned long long>(counts.with_shortage),
      static_cast<unsigned long long>(counts.of_another));
  if (counts.fleets < 100) return;  // one that is repeated
  EXPECT_GT(counts.refused, counts.fleets / 20);
  EXPECT_LT(counts.refused, counts.fleets / 2);
  EXPECT_GT(counts.with_shortage, counts.plans / 100);
  EXPECT_GT(counts.of_another, counts.plans / 10);
}

}  // namespace
}  // namespace tactus
