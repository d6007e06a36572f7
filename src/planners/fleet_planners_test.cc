// Planners of fleets. Without these a plan could overlap two windows, promise memory that is not
// there, leave a stage without a word, or change its mind from one call to the next.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners/fleet_estimate.h"
#include "planners/fleet_registry.h"
#include "planners/fleet_testing.h"
#include "planners/octopinf/autoscaler.h"
#include "planners/octopinf/coral.h"
#include "planners/octopinf/cwd.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr FleetPipelineId kFirst{0};
constexpr DeviceId kServer{0};
constexpr DeviceId kCamera{1};

FleetBatch Taking(int batch, Duration infer, double use = 0.2) {
  return {.batch = batch, .infer = infer, .peak_mb = 10, .use = use};
}

// A camera that sends 10 frames a second to a server with two streams, or detects by itself; three
// faces a frame are recognised.
FleetInput Street() {
  FleetInput input;
  input.kinds = {"gpu", "small"};
  input.sites = {"rack", "street"};
  input.models = {"detect", "recognise"};
  input.devices = {{.name = "server", .streams = 2, .memory_mb = 1000, .server = true},
                   {.name = "camera", .kind = KindId{1}, .site = SiteId{1}, .memory_mb = 300}};
  input.links = {{.a = SiteId{0}, .b = SiteId{1}, .mbps = 100, .rtt = Millis(10)}};
  input.costs = {{ModelId{0}, KindId{0}, 100, {Taking(1, Millis(10)), Taking(2, Millis(12))}},
                 {ModelId{1},
                  KindId{0},
                  100,
                  {Taking(1, Millis(5)), Taking(2, Millis(6)), Taking(4, Millis(8))}},
                 {ModelId{0}, KindId{1}, 100, {Taking(1, Millis(40))}}};
  FleetStage detect{.name = "detect", .model = ModelId{0}, .in_kb = 100, .out_kb = 1};
  FleetStage recognise{.name = "recognise",
                       .model = ModelId{1},
                       .after = {FleetStageId{0}},
                       .items = 3,
                       .in_kb = 5,
                       .out_kb = 1};
  input.pipelines = {{.name = "faces",
                      .slo = Millis(300),
                      .source = kCamera,
                      .rate_rps = 10,
                      .stages = {detect, recognise}}};
  return input;
}

TEST(FleetEstimate, QueueingFollowsAllenAndCunneen) {
  // M/M/1 halved, as service is constant: rho / (1 - rho) L / 2 with C_a = 1 and one server, where
  // the exponent is sqrt(4) - 1 = 1.
  const Duration wait = QueueingTime(50, 1, 1, Taking(1, Millis(10)));
  EXPECT_NEAR(ToMillis(wait), 0.5 / 0.5 * 0.5 * 10, 1e-6);
  EXPECT_EQ(QueueingTime(100, 1, 1, Taking(1, Millis(10))), kForever) << "busy all the time";
  EXPECT_EQ(QueueingTime(50, 0, 1, Taking(1, Millis(10))), Duration{}) << "no burst, no wait";
  EXPECT_LT(QueueingTime(50, 1, 2, Taking(1, Millis(10))), wait);
}

TEST(FleetEstimate, FillingEndsWithTheCycle) {
  EXPECT_EQ(FillingTime(10, 0, 1, Millis(150)), Duration{});
  EXPECT_NEAR(ToMillis(FillingTime(30, 0, 4, Millis(150))), 100, 1e-6);
  EXPECT_NEAR(ToMillis(FillingTime(30, 1, 4, Millis(150))), 50, 1e-6) << "bursts fill it sooner";
  EXPECT_EQ(FillingTime(0, 0, 4, Millis(150)), Millis(150));
}

TEST(FleetEstimate, TransferWaitsForTheLinksOwnLoad) {
  const FleetLink link{.mbps = 100, .rtt = Millis(10)};
  EXPECT_NEAR(ToMillis(TransferTime(link, 100, 0)), 8 + 5, 1e-6);
  EXPECT_NEAR(ToMillis(TransferTime(link, 100, 50)), 8 * 2 + 5, 1e-6);
  EXPECT_EQ(TransferTime(link, 100, 90), kForever);
}

// Ten packets, each lost with a chance of 0.1: the sum over k of 1 - (1 - 0.1^k)^10 round trips
// more, and a tenth of the link goes to what is sent again.
TEST(FleetEstimate, TransferSendsAgainWhatIsLost) {
  double rounds = 0;
  for (int k = 1; k < 12; ++k) rounds += 1 - std::pow(1 - std::pow(0.1, k), 10);
  EXPECT_NEAR(ResendRounds(10, 0.1), rounds, 1e-9);
  EXPECT_EQ(ResendRounds(10, 0), 0);
  EXPECT_NEAR(ResendRounds(1, 0.5), 1, 1e-8);
  const FleetLink link{.mbps = 100, .rtt = Millis(10), .loss = 0.1};
  EXPECT_NEAR(ToMillis(TransferTime(link, 15, 0)), 15 * 8 / 90.0 + 5 + 10 * rounds, 1e-5);
  EXPECT_EQ(TransferTime(link, 15, 81), kForever) << "nine tenths of what is left";
}

// A plan over a link that loses packets must not promise what one over a whole link does.
TEST(FleetPlanners, CountOnALossyLinkForLess) {
  FleetInput input = Street();
  input.links[0].mbps = 40;
  const auto promised = [&] { return PlanFleet("octopinf-server", input)->latency.front(); };
  const Duration whole = promised();
  input.links[0].loss = 0.3;
  EXPECT_GT(promised(), whole + input.links[0].rtt);
}

TEST(FleetEstimate, KeepsAFifthForBursts) {
  EXPECT_EQ(InstancesFor(80, Taking(1, Millis(10))), 1);
  EXPECT_EQ(InstancesFor(81, Taking(1, Millis(10))), 2);
  EXPECT_EQ(InstancesFor(0, Taking(1, Millis(10))), 1);
}

TEST(FleetEstimate, CountsWindowsByWhatComesInACycle) {
  EXPECT_EQ(WindowsFor(80, Taking(2, Millis(1)), Millis(20)), 1);  // 1.6 of 2
  EXPECT_EQ(WindowsFor(81, Taking(2, Millis(1)), Millis(20)), 2);
  EXPECT_EQ(WindowsFor(0, Taking(2, Millis(1)), Millis(20)), 1);
  EXPECT_EQ(WindowsFor(80, Taking(2, Millis(40)), Millis(20)), 2) << "a batch is not ended in one";
}

TEST(Cwd, DoublesBatchesThatSaveTimeWithinHalfTheSlo) {
  FleetInput input = Street();
  CwdOptions options;
  options.to_edge = false;
  const auto placed = DistributeWorkload(input, options).placement[0];
  EXPECT_EQ(placed[0], (StagePlacement{kServer, 2, 1}));
  EXPECT_EQ(placed[1], (StagePlacement{kServer, 2, 1})) << "gathering frames takes the time for 4";
  input.pipelines[0].slo = Millis(70);  // no time for a batch to fill
  const auto tight = DistributeWorkload(input, options).placement[0];
  EXPECT_EQ(tight[0].batch, 1);
}

TEST(Cwd, MovesWhatSavesTheLinkToTheSource) {
  const PlacedFleet placed = DistributeWorkload(Street());
  EXPECT_EQ(placed.placement[0][0].device, kCamera) << "150 kB/s of faces, not 1,000 of frames";
  EXPECT_EQ(placed.placement[0][1].device, kServer);
  EXPECT_THAT(placed.reasons[1].why, HasSubstr("camera does not run its model"));
  // A crowd: its crops are more than the frames were.
  FleetInput crowd = Street();
  crowd.pipelines[0].stages[1].in_kb = 50;
  EXPECT_EQ(DistributeWorkload(crowd).placement[0][0].device, kServer);
  // A link that frames do not fit through: better late at the source than never on the server.
  FleetInput narrow = Street();
  narrow.links[0].mbps = 5;
  EXPECT_EQ(DistributeWorkload(narrow).placement[0][0].device, kCamera);
  // A camera that is too slow for its frames.
  FleetInput fast = Street();
  fast.pipelines[0].rate_rps = 25;
  const PlacedFleet kept = DistributeWorkload(fast);
  EXPECT_EQ(kept.placement[0][0].device, kServer);
  EXPECT_THAT(kept.reasons[0].why, HasSubstr("camera would be too busy"));
}

TEST(Coral, StacksWindowsAfterTheirInput) {
  const FleetInput input = Street();
  CwdOptions options;
  options.to_edge = false;
  const PlacedFleet placed = DistributeWorkload(input, options);
  const FleetPlan plan = ScheduleWindows(input, placed.placement, placed.links);
  ASSERT_THAT(plan.instances, SizeIs(4)) << "4.5 faces come in a cycle, 2 fit into a window";
  EXPECT_THAT(plan.short_of, IsEmpty());
  EXPECT_EQ(plan.instances[0].offset, Duration{});
  EXPECT_EQ(plan.instances[1].offset, plan.instances[0].length) << "when its input is there";
  EXPECT_EQ(plan.instances[1].stream, plan.instances[0].stream) << "best fit: the used stream";
  EXPECT_EQ(plan.instances[0].cycle, Millis(150)) << "half the SLO";
}

TEST(Coral, SaysWhatFindsNoWindowAndWhy) {
  const FleetInput input = Street();
  // Thirty instances of 5 ms would take all of a cycle of 150 ms on each of two streams.
  FleetPlacement placement = {{{kServer, 1, 1}, {kServer, 1, 61}}};
  const FleetPlan full = ScheduleWindows(input, placement, {0});
  ASSERT_THAT(full.short_of, SizeIs(1));
  EXPECT_THAT(full.short_of[0].why, HasSubstr("no stream of server has 5 ms free"));
  EXPECT_EQ(FaultOf(full, input), "");
  FleetInput small = input;
  small.devices[0].memory_mb = 150;
  const FleetPlan lacking = ScheduleWindows(small, {{{kServer, 1, 1}, {kServer, 1, 1}}}, {0});
  ASSERT_THAT(lacking.short_of, SizeIs(1));
  EXPECT_THAT(lacking.short_of[0].why, HasSubstr("memory"));
  EXPECT_EQ(FaultOf(lacking, small), "");
}

TEST(StreamTable, GivesBackWhatWasTaken) {
  const FleetInput input = Street();
  StreamTable table(input);
  std::vector<FleetInstance> taken;
  NoWindow why{};
  for (;;) {
    FleetInstance each{.pipeline = kFirst, .stage = FleetStageId{1}, .device = kServer, .batch = 1};
    if (!table.Place(each, Duration{}, why)) break;
    taken.push_back(each);
  }
  EXPECT_THAT(taken, SizeIs(60));
  for (const FleetInstance& each : taken) table.Reclaim(each);
  FleetInstance whole{.pipeline = kFirst, .stage = FleetStageId{0}, .device = kServer, .batch = 2};
  EXPECT_TRUE(table.Place(whole, Duration{}, why)) << "neighbours are one portion again";
}

TEST(AutoScaler, AddsOnASurgeGivesBackAfterItAndDoesNotFlap) {
  FleetInput input = Street();
  CwdOptions options;
  options.to_edge = false;
  const PlacedFleet placed = DistributeWorkload(input, options);
  FleetPlan plan = ScheduleWindows(input, placed.placement, placed.links);
  AutoScaler scaler;
  EXPECT_THAT(scaler.Step(input, plan, kStart), IsEmpty());
  input.pipelines[0].rate_rps = 150;  // far more than windows hold, one more of each at a time
  auto changes = scaler.Step(input, plan, kStart + Seconds(30));
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].by, 1);
  EXPECT_EQ(changes[1].by, 1);
  EXPECT_THAT(plan.instances, SizeIs(6));
  EXPECT_EQ(FaultOf(plan, input), "");
  input.pipelines[0].rate_rps = 5;
  EXPECT_THAT(scaler.Step(input, plan, kStart + Seconds(60)), IsEmpty()) << "too soon";
  changes = scaler.Step(input, plan, kStart + Seconds(300));
  EXPECT_THAT(changes, SizeIs(2));
  EXPECT_THAT(plan.instances, SizeIs(4));
  EXPECT_EQ(FaultOf(plan, input), "");
}

// Two cameras that cannot detect by themselves.
FleetInput TwoStreets() {
  FleetInput input = Street();
  input.costs.pop_back();
  input.sites.push_back("lane");
  input.devices.push_back(
      {.name = "second", .kind = KindId{1}, .site = SiteId{2}, .memory_mb = 300});
  input.links.push_back({.a = SiteId{0}, .b = SiteId{2}, .mbps = 100, .rtt = Millis(10)});
  input.pipelines.push_back(input.pipelines[0]);
  input.pipelines[1].name = "more faces";
  input.pipelines[1].slo = Millis(200);
  input.pipelines[1].source = DeviceId{2};
  return input;
}

TEST(FleetSharing, RunsStagesOfOneModelTogether) {
  const FleetInput input = TwoStreets();
  const auto plan = PlanFleet("octopinf", input);
  const auto alone = PlanFleet("octopinf-unshared", input);
  ASSERT_TRUE(plan && alone);
  EXPECT_EQ(FaultOf(*plan, input), "");
  ASSERT_FALSE(plan->instances.empty());
  for (const FleetInstance& each : plan->instances) {
    EXPECT_EQ(each.pipeline, FleetPipelineId{1}) << "the shorter SLO gives the cycle";
    EXPECT_THAT(each.also, testing::ElementsAre(FleetStageRef{kFirst, each.stage}));
  }
  EXPECT_GE(plan->instances.front().batch, alone->instances.front().batch);
  EXPECT_LT(plan->instances.size(), alone->instances.size());
  // The AutoScaler's are shared like the others.
  FleetInput busier = input;
  for (FleetPipeline& pipeline : busier.pipelines) pipeline.rate_rps *= 5;
  FleetPlan scaled = *plan;
  AutoScaler().Step(busier, scaled, kStart);
  EXPECT_GT(scaled.instances.size(), plan->instances.size());
  for (const FleetInstance& each : scaled.instances) EXPECT_THAT(each.also, SizeIs(1));
  // A plan that shares instances of two models is none.
  FleetPlan wrong = *plan;
  wrong.instances.front().also.front().stage = FleetStageId{1};
  EXPECT_THAT(FaultOf(wrong, input), HasSubstr("another model"));
}

// Where all begins at its source there is nothing to share, and batches are searched as ever.
TEST(FleetSharing, LeavesSourcesAlone) {
  FleetInput input = Street();
  input.pipelines[0].rate_rps = 20;
  input.costs[2].batches.push_back(Taking(2, Millis(50)));
  const auto plan = PlanFleet("octopinf-edge", input);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->instances.front().device, kCamera);
  EXPECT_EQ(plan->instances.front().batch, 2);
}

TEST(Relief, DoesNotCountOnALinkThatIsJustWideEnough) {
  FleetInput input = Street();
  input.pipelines[0].stages[1].in_kb = 20.1;  // crops are two thirds of a frame: Algorithm 1 stays
  input.links[0].mbps = 12;                   // 8 Mbit/s of frames
  input.pipelines[0].slo = Millis(600);
  EXPECT_EQ(DistributeWorkload(input).placement[0][0].device, kServer);
  EXPECT_EQ(DistributeWorkload(input, {.relieve = true, .windows = false}).placement[0][0].device,
            kCamera);
  input.links[0].mbps = 1000;
  EXPECT_EQ(DistributeWorkload(input, {.relieve = true, .windows = false}).placement[0][0].device,
            kServer);
}

TEST(Relief, SendsWhatALinkCarriesInTimeWhereTheSourceIsTooSlow) {
  FleetInput input = Street();
  input.costs[2].batches = {Taking(1, Millis(310))};  // the camera: no frame in time
  input.links[0].mbps = 8;                            // of 8 Mbit/s of frames
  const PlacedFleet placed = DistributeWorkload(input, {.relieve = true, .windows = false});
  EXPECT_EQ(placed.placement[0][0].device, kServer) << "half of the frames rather than none";
  EXPECT_EQ(placed.placement[0][1].device, kServer);

  input.links[0].mbps = 2;  // a frame alone takes 400 ms: nothing is in time anywhere
  EXPECT_TRUE(PlanFleet("octopinf-relieved", input).has_value());
}

TEST(FleetPlanners, SendNothingBetweenServersThatDoNotReachEachOther) {
  FleetInput input = Street();
  input.costs.pop_back();
  input.sites.push_back("annex");
  input.devices.push_back(
      {.name = "annex", .site = SiteId{2}, .streams = 2, .memory_mb = 1000, .server = true});
  input.links.push_back({.a = SiteId{1}, .b = SiteId{2}, .mbps = 100, .rtt = Millis(10)});
  EXPECT_THAT(input.ServersFor(kCamera), SizeIs(1));
  auto plan = PlanFleet("jellyfish", input);
  ASSERT_TRUE(plan);
  EXPECT_EQ(FaultOf(*plan, input, UseLimit::kNone), "");
  for (FleetInstance& each : plan->instances) {
    if (each.stage == FleetStageId{1}) each.device = DeviceId{2};
  }
  plan->routes = RoutesOf(plan->instances);
  EXPECT_THAT(FaultOf(*plan, input, UseLimit::kNone), HasSubstr("no link between annex"));
  input.links.push_back({.a = SiteId{0}, .b = SiteId{2}, .mbps = 100});
  EXPECT_THAT(input.ServersFor(kCamera), SizeIs(2));
  EXPECT_EQ(FaultOf(*plan, input, UseLimit::kNone), "");
}

TEST(FleetPlanners, SayWhatIsBeyondTheMostInstances) {
  FleetInput input = Street();
  input.pipelines[0].rate_rps = 1e9;
  for (const FleetPlannerInfo& planner : FleetPlanners()) {
    const auto plan = PlanFleet(planner.name, input);
    ASSERT_TRUE(plan);
    ASSERT_THAT(plan->short_of, SizeIs(2)) << planner.name;
    EXPECT_GT(plan->short_of[0].missing_rps, 1e8) << planner.name;
    EXPECT_LE(plan->instances.size(), 2u * kMostInstances) << planner.name;
  }
}

TEST(FleetPlanners, RandomSurgesLeavePlansValid) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng = Rng::Stream(seed, "fleet/surges");
    FleetInput input = RandomFleet(rng);
    if (!CheckFleet(input)) continue;
    auto plan = PlanFleet("octopinf", input);
    ASSERT_TRUE(plan);
    AutoScaler scaler;
    for (int step = 1; step <= 40; ++step) {
      for (FleetPipeline& pipeline : input.pipelines) {
        pipeline.rate_rps = static_cast<double>(rng.Below(80));
      }
      scaler.Step(input, *plan, kStart + Seconds(30 * step));
      ASSERT_EQ(FaultOf(*plan, input), "") << "seed " << seed << ", step " << step;
    }
  }
}

TEST(FleetPlanners, RefuseWhatMakesNoSense) {
  EXPECT_THAT(PlanFleet("octopus", Street()).error().message, HasSubstr("there are octopinf, "));
  FleetInput twice = Street();
  twice.devices[1].name = "server";
  EXPECT_THAT(PlanFleet("octopinf", twice).error().message, HasSubstr("two devices are called"));
  FleetInput cut = Street();
  cut.links.clear();
  EXPECT_THAT(PlanFleet("octopinf", cut).error().message,
              HasSubstr("no device that its source reaches runs 'recognise'"));
  FleetInput endless = Street();
  endless.pipelines[0].rate_rps = std::numeric_limits<double>::infinity();
  EXPECT_THAT(PlanFleet("octopinf", endless).error().message, HasSubstr("a rate from 0 on"));
  FleetInput elsewhere = Street();
  elsewhere.pipelines[0].source = DeviceId{7};
  EXPECT_THAT(PlanFleet("octopinf", elsewhere).error().message,
              HasSubstr("no device of the fleet"));
  FleetInput none = Street();
  none.links[0].mbps = 0;
  EXPECT_THAT(PlanFleet("octopinf", none).error().message, HasSubstr("mbps above 0"));
  FleetInput doubled = Street();
  doubled.links.push_back(doubled.links[0]);
  std::swap(doubled.links.back().a, doubled.links.back().b);
  EXPECT_THAT(PlanFleet("octopinf", doubled).error().message, HasSubstr("is there twice"));
  FleetInput priced = Street();
  priced.costs.push_back(priced.costs[0]);
  EXPECT_THAT(PlanFleet("octopinf", priced).error().message, HasSubstr("are there twice"));
  FleetInput lossy = Street();
  lossy.links[0].loss = 1;
  EXPECT_THAT(PlanFleet("octopinf", lossy).error().message, HasSubstr("from 0 to below 1"));
  FleetInput alike = Street();
  alike.pipelines.push_back(alike.pipelines.front());
  EXPECT_THAT(PlanFleet("octopinf", alike).error().message, HasSubstr("two pipelines are called"));
}

}  // namespace
}  // namespace tactus
