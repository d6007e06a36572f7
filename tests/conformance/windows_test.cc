// What `planned` must do however it takes a plan's windows: as an order, at their time, or as late
// in them as heads allow. A mode that slept through a window, or kept a lane for a batch that never
// starts, would lose requests that the others serve.
#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "policies/registry.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

constexpr const char* kModes[] = {"order", "strict", "defer"};

// Three models of 4 + 1 b ms on two lanes; each lane has a window of 12 ms for a batch of eight of
// each model in every cycle of 36 ms, lane 1 in another order.
ProfileFile WindowProfile() {
  ProfileFile profile;
  profile.provenance = "made up by a test";
  for (const char* name : {"a", "b", "c"}) {
    ProfiledModel model{.name = name, .max_batch = 8};
    ProfiledExit exit{.name = "1", .accuracy = 0.8};
    for (int b = 1; b <= model.max_batch; ++b) {
      const double ms = 4 + b;
      exit.cells.push_back({0, ms, ms, ms, ms, ms, ms, 0});
    }
    model.exits.push_back(exit);
    profile.models.push_back(model);
  }
  return profile;
}

std::shared_ptr<const Plan> WindowPlan() {
  auto plan = std::make_shared<Plan>();
  for (DeviceId::rep d = 0; d < 2; ++d) {
    LanePlan lane{.spec = {.device = DeviceId{d}}, .cycle = Millis(36)};
    for (ModelId::rep i = 0; i < 3; ++i) {
      lane.entries.push_back({.model = ModelId{(i + d) % 3},
                              .batch = 8,
                              .offset = Millis(12) * i,
                              .length = Millis(12)});
    }
    plan->lanes.push_back(lane);
  }
  return plan;
}

RunReport PlayWindows(const std::string& mode, double rate_rps) {
  Scenario scenario;
  scenario.name = "windows";
  scenario.policy = "planned:windows=" + mode;
  scenario.expiry = "unmeetable";
  scenario.rate_rps = rate_rps;
  scenario.duration_s = 20;
  scenario.warmup_s = 1;
  scenario.lanes = 2;
  for (const char* name : {"a", "b", "c"}) {
    scenario.models.push_back({.name = name, .profile_as = name, .slo_ms = 120});
  }
  const ProfileFile profile = WindowProfile();
  const auto result =
      Simulate(scenario, profile, **MakePolicy(scenario.policy), {.plan = WindowPlan()});
  EXPECT_TRUE(result) << result.error().message;
  return MakeReport(scenario, profile, *result);
}

TEST(EveryWindowMode, ServesALightLoadInTime) {
  for (const char* mode : kModes) {
    SCOPED_TRACE(mode);
    const RunReport report = PlayWindows(mode, 60);
    EXPECT_GT(report.all.requests, 1000);
    EXPECT_LE(report.all.bad_ratio, 0.01);
  }
}

TEST(EveryWindowMode, AnswersAllOfAnOverloadAndServesOn) {
  for (const char* mode : kModes) {
    SCOPED_TRACE(mode);
    const RunReport report = PlayWindows(mode, 4000);
    std::int64_t ended = 0;
    for (const std::int64_t count : report.all.outcomes) ended += count;
    EXPECT_EQ(ended, report.all.requests);
    // The plan's batches of eight, 48 in 36 ms, sustain 1333 a second.
    EXPECT_GE(report.all.goodput_rps, 1300);
  }
}

// In a window of its own a batch loses nothing by waiting for more.
TEST(EveryWindowMode, DeferredBatchesAreTheLarger) {
  const double strict = PlayWindows("strict", 400).all.mean_batch;
  const double deferred = PlayWindows("defer", 400).all.mean_batch;
  EXPECT_GT(deferred, strict);
  EXPECT_GT(strict, PlayWindows("order", 400).all.mean_batch) << "which wait for no window";
}

}  // namespace
}  // namespace tactus
