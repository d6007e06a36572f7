// A simulated machine that drifted otherwise than its scenario says would make following it look
// better or worse than it is.
#include "sim/devices/machine_drift.h"

#include <gtest/gtest.h>

#include "policies/registry.h"
#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

TimePoint InstantOf(int ms) { return kStart + Millis(ms); }

MachineDrift Drift(double from_s, double factor, double stall_ms) {
  Scenario scenario;
  scenario.drift_from_s = from_s;
  scenario.drift_factor = factor;
  scenario.drift_stall_ms = stall_ms;
  return MachineDrift(scenario);
}

TEST(MachineDrift, StretchesWhatStartsFromThenOn) {
  const MachineDrift drift = Drift(1, 1.3, 0);
  EXPECT_EQ(drift.Stretched(InstantOf(999), Millis(10)), Millis(10));
  EXPECT_EQ(drift.Stretched(InstantOf(1000), Millis(10)), Millis(13));
  EXPECT_EQ(drift.End(InstantOf(1000), Millis(13)), InstantOf(1013));
}

// Stalls of 20 ms from 1 s on, each second.
TEST(MachineDrift, StandsStillEachSecond) {
  const MachineDrift drift = Drift(1, 1, 20);
  struct Case {
    int start, work, end;
  };
  const Case cases[] = {
      {0, 10, 10},         // before the first
      {990, 10, 1000},     // just before it
      {990, 15, 1025},     // into it
      {1000, 10, 1030},    // with its beginning
      {1010, 10, 1030},    // in its midst
      {1020, 10, 1030},    // after its end
      {1990, 10, 2000},    // just before the next
      {1990, 15, 2025},    //
      {500, 3000, 3560},   // through three of them
      {2500, 480, 2980},   //
      {2500, 1480, 4000},  // to the beginning of one
  };
  for (const Case& c : cases) {
    EXPECT_EQ(drift.End(InstantOf(c.start), Millis(c.work)), InstantOf(c.end))
        << c.start << " + " << c.work;
  }
}

double BadShare(Scenario scenario, const ProfileFile& profile, const char* follow) {
  scenario.follow = follow;
  auto policy = MakePolicy("early-exit-edf");
  const auto result = Simulate(scenario, profile, **policy);
  EXPECT_TRUE(result) << result.error().message;
  double bad = 0;
  for (const RequestRecord& record : result->records) bad += record.outcome != Outcome::kMet;
  return bad / static_cast<double>(result->records.size());
}

ProfileFile TwoExits() {
  ProfileFile profile;
  profile.models = {AffineModelOf("m", Millis(6), Millis(1), 8)};
  ProfiledExit early = profile.models[0].exits[0];
  early.name = "early";
  for (ProfileCell& cell : early.cells) cell = Constant(FromMillis(cell.mean_ms / 5));
  profile.models[0].exits.insert(profile.models[0].exits.begin(), early);
  return profile;
}

// What it is for: a policy that is told what batches take meets the deadlines that it misses if
// nobody tells it.
TEST(MachineDrift, IsFollowed) {
  Scenario scenario = ScenarioOf(TwoExits(), 400, 20);
  scenario.models[0].slo_ms = 30;
  scenario.drift_from_s = 10;
  scenario.drift_factor = 1.3;
  const double without = BadShare(scenario, TwoExits(), "no");
  EXPECT_GT(without, 0.01);
  EXPECT_LE(BadShare(scenario, TwoExits(), "auto"), without / 4);
}

TEST(MachineDrift, LeavesARoomForStallsWhereThatIsAskedFor) {
  Scenario scenario = ScenarioOf(TwoExits(), 550, 40);
  scenario.models[0].slo_ms = 45;
  scenario.drift_stall_ms = 20;
  const double without = BadShare(scenario, TwoExits(), "no");
  EXPECT_GT(without, 0.001);
  EXPECT_LE(BadShare(scenario, TwoExits(), "stalls"), without / 4);
}

// On a machine that is as profiled nothing is followed: the same requests, the same ends.
TEST(MachineDrift, SteadyRunsStayAsTheyAre) {
  ProfileFile profile = TwoExits();
  for (ProfiledExit& exit : profile.models[0].exits) {
    for (ProfileCell& cell : exit.cells) {
      cell.repetitions = 50;
      cell.min_ms = 0.8 * cell.p95_ms;
      cell.p50_ms = 0.9 * cell.p95_ms;
      cell.p99_ms = 1.1 * cell.p95_ms;
      cell.max_ms = 2 * cell.p95_ms;
    }
  }
  Scenario scenario = ScenarioOf(profile, 550, 30);
  scenario.models[0].slo_ms = 30;
  const double without = BadShare(scenario, profile, "no");
  EXPECT_GT(without, 0);
  EXPECT_EQ(BadShare(scenario, profile, "yes"), without);
}

}  // namespace
}  // namespace tactus
