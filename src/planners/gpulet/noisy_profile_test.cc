// A profile that was measured on a busy machine has batches that take less than smaller ones, and
// parts of a device that are quicker than the whole. A planner that believes that latencies grow
// ended the server.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "planners/gpulet/elastic.h"
#include "planners/gpulet/gpulet_testing.h"

namespace tactus {
namespace {

// Of the latencies one in five is up to ten times as long as it is.
ProfileTable WithNoise(const TestProblem& problem, Rng& rng) {
  std::vector<ProfileTable::ModelRows> all;
  for (ModelId::rep m = 0; m < problem.input.models.size(); ++m) {
    const int most = problem.profile.max_batch(ModelId{m});
    ProfileTable::ModelRows rows{.exits = 1, .max_batch = most};
    for (LaneClass::rep c = 0; c < problem.input.shares.size(); ++c) {
      for (int b = 1; b <= most; ++b) {
        const Duration quiet = problem.profile.Latency(ModelId{m}, ExitId{0}, b, LaneClass{c});
        const double longer = rng.Uniform() < 0.2 ? 1 + 9 * rng.Uniform() : 1;
        rows.latency.push_back(FromSeconds(ToSeconds(quiet) * longer));
      }
    }
    all.push_back(std::move(rows));
  }
  return ProfileTable(static_cast<int>(problem.input.shares.size()), all);
}

TEST(NoisyProfile, EveryPlanIsValidAndNoneEndsTheProgram) {
  constexpr std::uint64_t kSeed = 28;
  Rng rng = Rng::Stream(kSeed, "gpulet/noise");
  int planned = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("seed 28, round " + std::to_string(round));
    TestProblem problem = MakeTestProblem(RandomTestModels(rng, 3 + rng.Below(4)), 1, 16, {0.5, 1});
    const ProfileTable noisy = WithNoise(problem, rng);
    problem.input.profile = &noisy;
    // Alike, so that their batches fill at one instant, and the plan has to do with just those.
    for (PlannedModel& model : problem.input.models) {
      model.slo *= 3;
      model.rate_rps = problem.input.models[0].rate_rps;
    }
    for (int halved = 0; halved < 10; ++halved) {
      for (PlannedModel& model : problem.input.models) model.rate_rps /= 2;
      const auto plan = PlanElasticRetrying(problem.input, {});
      if (!plan) continue;
      ++planned;
      const auto valid = Validate(*plan, problem.input);
      EXPECT_TRUE(valid) << valid.error().message;
    }
  }
  EXPECT_GT(planned, 100);
}

}  // namespace
}  // namespace tactus
