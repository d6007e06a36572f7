// Without these a plan for other models or devices could be run as if it were for these, or a
// mistake in one would show as missed deadlines instead of as its place.
#include "workload/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

// Two models, l(1) = 8, l(2) = 12 ms on half a device and 4, 6 on a whole one.
class PlanFileTest : public ::testing::Test {
 protected:
  PlanFileTest() {
    ProfileTable::ModelRows rows{.exits = 1, .max_batch = 2};
    for (const int ms : {8, 12, 4, 6}) rows.latency.push_back(Millis(ms));
    profile_ = ProfileTable(2, std::vector(2, rows));
    input_ = {.models = {{.name = "a", .rate_rps = 60, .slo = Millis(40)},
                         {.name = "b", .rate_rps = 1000.0 / 3, .slo = Millis(30)}},
              .profile = &profile_,
              .shares = {0.5, 1},
              .devices = 2};
    plan_.lanes = {{.spec = {.device = DeviceId{0}, .lane_class = LaneClass{0}, .fraction = 0.5},
                    .cycle = Millis(20),
                    .entries = {{ModelId{0}, 2, {}, Millis(12)}}},
                   {.spec = {.device = DeviceId{1}, .lane_class = LaneClass{1}},
                    .cycle = Nanos(6'000'001),
                    .entries = {{ModelId{1}, 2, {}, Nanos(6'000'001)}}}};
  }

  PlanFile Made() const {
    PlanFile file = MakePlanFile(plan_, input_);
    file.planner = "gpulet";
    file.scenario = "s";
    file.profile = "made up by a test";
    return file;
  }
  // What is said of the file with one piece of its text replaced.
  std::string Fault(const std::string& old, const std::string& fresh) const {
    std::string text = PlanText(Made());
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    if (at != std::string::npos) text.replace(at, old.size(), fresh);
    const auto file = ParsePlan(text, "p.json");
    if (!file) return file.error().message;
    const auto plan = FitPlan(*file, "p.json", input_);
    return plan ? "" : plan.error().message;
  }

  ProfileTable profile_;
  PlanInput input_;
  Plan plan_;
};

TEST_F(PlanFileTest, IsTheSamePlanAfterItWasWrittenAndRead) {
  const TemporaryFolder folder;
  const auto path = folder / "plan.json";
  ASSERT_TRUE(SavePlan(Made(), path));
  const auto loaded = LoadPlan(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(PlanText(*loaded), PlanText(Made()));
  const auto plan = FitPlan(*loaded, path.string(), input_);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->lanes.size(), 2u);
  EXPECT_EQ(plan->lanes[1].spec.lane_class, LaneClass{1});
  EXPECT_EQ(plan->lanes[1].cycle, Nanos(6'000'001)) << "to the last bit";
  EXPECT_EQ(plan->lanes[0].entries[0].length, Millis(12));
  EXPECT_EQ(PlanText(MakePlanFile(*plan, input_)), PlanText(MakePlanFile(plan_, input_)));
}

// A scenario that names its models in another order is the same one.
TEST_F(PlanFileTest, FindsModelsByName) {
  const PlanFile file = Made();
  std::swap(input_.models[0], input_.models[1]);
  const auto plan = FitPlan(file, "p.json", input_);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->lanes[0].entries[0].model, ModelId{1});
}

// Whoever overloads a plan on purpose may: what it sustains is not what comes.
TEST_F(PlanFileTest, IsNotHeldToTheRatesItWasMadeFor) {
  const PlanFile file = Made();
  input_.models[0].rate_rps = 1e6;
  EXPECT_TRUE(FitPlan(file, "p.json", input_));
}

// Without this a plan for half of the load that comes looks like one for it.
TEST_F(PlanFileTest, OtherRatesAndSlosThanItWasMadeForArePointedOut) {
  const PlanFile file = Made();
  const auto other = [&](KnownRates rates = KnownRates::kYes) {
    return ExplainPlanMismatch(file, input_, rates).value_or("");
  };
  EXPECT_EQ(other(), "");
  input_.models[0].rate_rps = 60.5;  // less than a percent
  input_.models[1].rate_rps = 1;
  EXPECT_EQ(other(), "");
  input_.models[0].rate_rps = 90;
  EXPECT_EQ(other(), "planned for 60 requests/s of 'a', here come 90");
  EXPECT_EQ(other(KnownRates::kNo), "");
  input_.models[0].slo = Millis(50);
  input_.models[1].slo = Millis(20);
  EXPECT_EQ(other(KnownRates::kNo),
            "planned for an SLO of 40 ms of 'a', here it is 50 (and 1 more)");
  EXPECT_EQ(other(),
            "planned for 60 requests/s of 'a', here come 90; planned for an SLO of 40 ms "
            "of 'a', here it is 50 (and 1 more)");
}

TEST_F(PlanFileTest, WhatCannotBeReadIsNamedByItsPlaceAndWithARemedy) {
  EXPECT_THAT(
      LoadPlan("/no/such/p.json").error().message,
      HasSubstr(
          "/no/such/p.json: cannot read this plan (No such file or directory); make a new one"));
  EXPECT_THAT(ParsePlan("{", "p.json").error().message, HasSubstr("p.json:1:"));
  EXPECT_THAT(Fault("\"share\": 0.5", "\"share\": 1.5"),
              HasSubstr("p.json: lanes[0].share: must be above 0 and at most 1"));
  EXPECT_THAT(Fault("\"cycle_ms\": 20.0", "\"cycle_ms\": 0"), HasSubstr("lanes[0].cycle_ms: "));
  EXPECT_THAT(Fault("\"batch\": 2", "\"batch\": 0"), HasSubstr("lanes[0].entries[0].batch: must"));
  EXPECT_THAT(Fault("\"model\": \"b\"", "\"model\": \"c\""),
              HasSubstr("lanes[1].entries[0].model: 'c' is not among the plan's models; make"));
  EXPECT_THAT(
      Fault("\"cycle_ms\": 20.0", "\"cycle\": 20"),
      HasSubstr("lanes[0].cycle: unknown here; there are device, share, cycle_ms, entries"));
  EXPECT_THAT(Fault("\"name\": \"b\"", "\"name\": \"a\""),
              HasSubstr("models[1].name: is there twi"));
}

TEST_F(PlanFileTest, AShareInPercentIsToldAsAPart) {
  EXPECT_THAT(
      Fault("\"share\": 0.5", "\"share\": 40"),
      HasSubstr(
          "lanes[0].share: must be above 0 and at most 1, all of the device; write 0.4 for 40 %"));
}

TEST_F(PlanFileTest, WhatDoesNotFitIsNamedWithTheRemedy) {
  EXPECT_THAT(Fault("\"device\": 1", "\"device\": 2"),
              HasSubstr("p.json: lane 1 of the plan is on device 2; there are 2"));
  EXPECT_THAT(Fault("\"device\": 1", "\"device\": 0"),
              HasSubstr("the lanes of device 0 add up to 150 % of it; plan again"));
  EXPECT_THAT(Fault("\"share\": 0.5", "\"share\": 0.3"),
              HasSubstr("lane 0 of the plan is 30 % of its device, which was not profiled (50 %, "
                        "100 % were); profile 30 %"));
  EXPECT_THAT(Fault("\"cycle_ms\": 20.0", "\"cycle_ms\": 29"),
              HasSubstr("more than its SLO of 40"));
  EXPECT_THAT(Fault("\"batch\": 2", "\"batch\": 3"), HasSubstr("a batch of 3 of 'a' was not prof"));
}

TEST_F(PlanFileTest, AModelWithLoadAndNoLaneIsRefused) {
  PlanFile file = Made();
  file.models[1].rate_rps = 5;
  EXPECT_TRUE(FitPlan(file, "p.json", input_));
  file.plan.lanes.pop_back();
  EXPECT_THAT(
      FitPlan(file, "p.json", input_).error().message,
      HasSubstr("p.json: model 'b' is planned for 5 requests/s and has no lane; make a new one"));
  file.models[1].rate_rps = 0;  // it waits for a plan that has a place for it
  EXPECT_TRUE(FitPlan(file, "p.json", input_));
}

// No transition could take it up, and no planner makes it.
TEST_F(PlanFileTest, ADeviceHasAtMostTwoLanes) {
  PlanFile file = Made();
  LanePlan third = file.plan.lanes[0];
  file.plan.lanes.insert(file.plan.lanes.end(), 2, third);
  EXPECT_THAT(FitPlan(file, "p.json", input_).error().message,
              HasSubstr("p.json: more than 2 lanes on device 0"));
  file.plan.lanes.pop_back();
  EXPECT_TRUE(FitPlan(file, "p.json", input_)) << "two, and a whole device";
}

// A simulation that took others for these would run another plan.
TEST_F(PlanFileTest, SaysWhatSharesItWasMadeFor) {
  PlanFile file = Made();
  file.shares = {30, 50, 70};
  file.exponent = 0.5;
  file.utilization_base = "device";
  auto read = ParsePlan(PlanText(file), "p.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->shares, file.shares);
  EXPECT_EQ(read->exponent, 0.5);
  EXPECT_EQ(read->utilization_base, "device");
  EXPECT_TRUE(read->on_share.empty());
  file.shares = {};
  file.on_share = {{50, "half.json"}, {100, "whole.json"}};
  read = ParsePlan(PlanText(file), "p.json");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->on_share.size(), 2u);
  EXPECT_EQ(read->on_share[0].percent, 50);
  EXPECT_EQ(read->on_share[1].profile, "whole.json");
  EXPECT_TRUE(read->shares.empty());
}

// A plan that is moved with its profiles would else be run on others, or not at all.
TEST_F(PlanFileTest, ProfilesBesideItAreNamedFromItsFolderOnAndOthersInFull) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "from" / "deep");
  PlanFile file = Made();
  file.on_share = {{50, folder / "from" / "deep" / ".." / "half.json"},
                   {75, folder / "from" / "deep" / "most.json"},
                   {100, folder / "whole.json"}};
  const std::vector<std::filesystem::path> there = {
      folder / "to" / "half.json", folder / "to" / "deep" / "most.json", folder / "whole.json"};
  ASSERT_TRUE(SavePlan(file, folder / "from" / "plan.json"));
  std::filesystem::rename(folder / "from", folder / "to");
  const auto moved = LoadPlan(folder / "to" / "plan.json");
  ASSERT_TRUE(moved) << moved.error().message;
  std::vector<std::filesystem::path> read;
  for (const MeasuredShare& each : moved->on_share) read.push_back(each.profile);
  EXPECT_EQ(read, there);
}

TEST_F(PlanFileTest, SharesThatItCannotHaveBeenMadeForAreNamed) {
  const auto fault = [this](std::vector<double> shares, bool measured = false) {
    PlanFile file = Made();
    file.shares = std::move(shares);
    if (measured) file.on_share = {{100, "whole.json"}};
    const auto read = ParsePlan(PlanText(file), "p.json");
    return read ? "none" : read.error().message;
  };
  EXPECT_THAT(fault({40, 60}), HasSubstr("p.json: lanes: lane 0 has 50 % of its device, which is "
                                         "not among shares; add it there"));
  EXPECT_THAT(fault({}, true), HasSubstr("lane 0 has 50 % of its device, which is not among on_s"));
  EXPECT_THAT(fault({60, 50}), HasSubstr("p.json: shares: must ascend"));
  EXPECT_THAT(fault({50, 100}), HasSubstr("p.json: shares: must ascend"));
  EXPECT_THAT(Fault("\"models\"", R"("on_share": [{"percent": 101, "profile": "x"}], "models")"),
              HasSubstr("on_share[0].percent: must be above 0 and at most 100"));
  EXPECT_THAT(fault({50}, true), HasSubstr("p.json: on_share: is beside shares"));
  EXPECT_THAT(Fault("\"models\"", "\"exponent\": 1, \"models\""),
              HasSubstr("p.json: exponent: needs shares"));
  EXPECT_THAT(Fault("\"models\"", R"("utilization_base": "device", "models")"),
              HasSubstr("p.json: utilization_base: needs shares"));
  EXPECT_THAT(Fault("\"models\"", R"("shares": [50], "utilization_base": "all", "models")"),
              HasSubstr("p.json: utilization_base: must be \"largest-batch\" or \"device\""));
}

TEST_F(PlanFileTest, APlanOfAnotherModelSetSaysWhichModels) {
  const PlanFile file = Made();
  input_.models[1].name = "d";
  const auto plan = FitPlan(file, "p.json", input_);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message,
              HasSubstr("p.json: a plan of another model set: it knows 'b', not served here; it "
                        "does not know 'd'; make a new one"));
}

}  // namespace
}  // namespace tactus
