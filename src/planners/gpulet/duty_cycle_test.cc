// Cycles: worked by hand, and against trying every batch of every member.
#include "planners/gpulet/duty_cycle.h"

#include <gtest/gtest.h>

#include "planners/gpulet/gpulet_testing.h"

namespace tactus {
namespace {

constexpr LaneClass kWhole{5};

// One model, l(b) = 2 + b ms, SLO 24: two batches of 10 would just fit one after the other.
TEST(DutyCycle, MostRateIsThatOfTheLargestBatchThatMayWaitForOneOfItsKind) {
  const TestProblem problem = MakeTestProblem({{.slo = Millis(24), .parallel_at_one = 0}}, 1);
  PlanInput input = problem.input;
  input.profile = &problem.profile;
  EXPECT_NEAR(MostRate(input, kWhole, ModelId{0}), 10 / 0.012, 1e-6);
  EXPECT_NEAR(MostRate(input, kWhole, ModelId{0}, 2), 4 / 0.012, 1e-6);  // 2 (2 + 4) = 12
  const LaneMember just = {ModelId{0}, 10 / 0.012 * 0.9999};
  const LaneMember more = {ModelId{0}, 10 / 0.012 * 1.0001};
  EXPECT_TRUE(FitCycle(input, kWhole, {&just, 1}));
  EXPECT_FALSE(FitCycle(input, kWhole, {&more, 1}));
}

TEST(DutyCycle, ASeldomModelWaitsNoLongerThanItsSloLeaves) {
  const TestProblem problem = MakeTestProblem({{.slo = Millis(24)}}, 1);
  PlanInput input = problem.input;
  input.profile = &problem.profile;
  const LaneMember seldom = {ModelId{0}, 0.1};
  const auto fit = FitCycle(input, kWhole, {&seldom, 1});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->batches, std::vector<int>{1});
  EXPECT_EQ(fit->cycle, Millis(24 - 3));
}

// Whether any batches sustain the members, by trying all; the shortest cycle of a set of batches is
// their time.
bool AnyBatchesFit(const PlanInput& input, LaneClass lane, const std::vector<LaneMember>& members) {
  std::vector<int> batches(members.size(), 1);
  while (true) {
    Duration busy{};
    for (std::size_t k = 0; k < members.size(); ++k) {
      busy += input.Latency(members[k].model, batches[k], lane);
    }
    bool fits = true;
    for (std::size_t k = 0; k < members.size(); ++k) {
      const Duration latency = input.Latency(members[k].model, batches[k], lane);
      fits &= busy + latency <= input.models[members[k].model.value()].slo &&
              batches[k] / ToSeconds(busy) >= members[k].rate_rps;
    }
    if (fits) return true;
    std::size_t k = 0;
    while (k < members.size() && ++batches[k] > input.profile->max_batch(members[k].model)) {
      batches[k++] = 1;
    }
    if (k == members.size()) return false;
  }
}

TEST(DutyCycle, FindsACycleExactlyWhereOneExists) {
  int found = 0;
  constexpr int kTries = 400;
  for (std::uint64_t seed = 1; seed <= kTries; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "duty-cycle");
    const TestProblem problem = MakeTestProblem(RandomTestModels(rng, 3), 1, 8);
    PlanInput input = problem.input;
    input.profile = &problem.profile;
    std::vector<LaneMember> members;
    for (ModelId::rep m = 0; m < 3; ++m) {
      members.push_back({ModelId{m}, 0.06 * rng.Uniform() * input.models[m].rate_rps});
    }
    const LaneClass lane{static_cast<LaneClass::rep>(rng.Below(6))};
    const auto fit = FitCycle(input, lane, members);
    ASSERT_EQ(fit.has_value(), AnyBatchesFit(input, lane, members));
    if (!fit) continue;
    ++found;
    for (std::size_t k = 0; k < members.size(); ++k) {
      const Duration latency = input.Latency(members[k].model, fit->batches[k], lane);
      EXPECT_LE(fit->cycle + latency, input.models[k].slo);
      EXPECT_GE(fit->batches[k] / ToSeconds(fit->cycle), members[k].rate_rps * (1 - 1e-6));
    }
    EXPECT_LE(fit->busy, fit->cycle);
  }
  EXPECT_GT(found, kTries / 20);
  EXPECT_LT(found, kTries * 19 / 20);
}

// What MostBeside promises FitCycle finds, and a little more it does not.
TEST(DutyCycle, MostBesideIsTheLargestRateThatHasACycle) {
  int joined = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "most-beside");
    const TestProblem problem = MakeTestProblem(RandomTestModels(rng, 3), 1, 8);
    PlanInput input = problem.input;
    input.profile = &problem.profile;
    for (PlannedModel& model : input.models) model.slo *= 3;
    std::vector<LaneMember> members;
    for (ModelId::rep m = 0; m < 2; ++m) {
      members.push_back({ModelId{m}, 0.05 * rng.Uniform() * input.models[m].rate_rps});
    }
    const LaneClass lane{static_cast<LaneClass::rep>(rng.Below(6))};
    const double slowdown = 1 + 0.5 * rng.Uniform();
    if (!FitCycle(input, lane, members)) continue;
    const double most = MostBeside(input, lane, members, ModelId{2}, slowdown);
    auto with = members;
    with.push_back({ModelId{2}, most * (1 - 1e-9), slowdown});
    if (most > 0) {
      ++joined;
      EXPECT_TRUE(FitCycle(input, lane, with));
    }
    with.back().rate_rps = most * 1.0001 + 1e-6;
    EXPECT_FALSE(FitCycle(input, lane, with)) << most;
  }
  EXPECT_GT(joined, 50);
}

}  // namespace
}  // namespace tactus
