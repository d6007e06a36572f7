// What Strait's paper promises, on scenarios of its kind (Section 5.2 and Appendix A): without
// these the policy could protect nobody, or protect by serving nobody.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/source_path_for_test.h"
#include "core/learner.h"
#include "core/prediction_errors.h"
#include "policies/registry.h"
#include "sim/devices/contention.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

struct Played {
  double high = 0;  // violations of each priority: everything that is not met
  double low = 0;
  double p99 = 0;  // of the prediction errors
};

Expected<Scenario> Workload(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(kSourceDir) / "scenarios/strait";
  return LoadScenario(folder / (name + ".toml"));
}

Played Play(Expected<Scenario> scenario, const std::string& text, double drift = 0) {
  EXPECT_TRUE(scenario) << scenario.error().message;
  scenario->duration_s = 20;
  scenario->warmup_s = 2;
  scenario->policy = text;
  scenario->drift = drift;
  const auto profile = LoadProfile(scenario->profile);
  EXPECT_TRUE(profile) << profile.error().message;
  const auto policy = MakePolicy(text);
  EXPECT_TRUE(policy) << policy.error().message;
  const auto result = Simulate(*scenario, *profile, **policy);
  EXPECT_TRUE(result) << result.error().message;
  const RunReport report = MakeReport(*scenario, *profile, *result);
  EXPECT_EQ(report.priorities.size(), 2u);
  const PredictionErrors* errors = PredictionErrorsOf(**policy);
  return {report.priorities[0].figures.bad_ratio, report.priorities[1].figures.bad_ratio,
          errors != nullptr ? errors->kernel.AbsolutePercentile(99) : 0};
}

Played Play(const std::string& workload, const std::string& text, double drift = 0) {
  return Play(Workload(workload), text, drift);
}

// The shapes of interference that are published: nine of ten pairs slow each other by less than 18
// %; when a device is oversubscribed the P99 is near 245 % and the largest near 680 %
// (Section 5.4).
TEST(Strait, TheSimulatedDeviceHasThePublishedShapes) {
  const std::filesystem::path folder = std::filesystem::path(kSourceDir) / "scenarios";
  const auto scenario = LoadScenario(folder / "strait/balanced.toml");
  const auto profile = LoadProfile(folder / "profiles/strait-standin-l4.json");
  ASSERT_TRUE(scenario && profile);
  std::vector<Throughput> uses;
  for (const ProfiledModel& model : profile->models) {
    for (const int b : {1, 2, 4, 8}) uses.push_back(model.exits[0].cells[b - 1].throughput);
  }
  Contention contention{.crosstalk = scenario->crosstalk};
  std::copy_n(scenario->capacity.begin(), kResources, contention.capacity.begin());
  Rng rng = Rng::Stream(1, "published shapes");
  const double tail = scenario->tail;
  // Slowdowns of the first of `count` batches, sorted, in percent.
  const auto slowdowns = [&](std::size_t count) {
    std::vector<double> all(20'000);
    for (double& percent : all) {
      std::vector<Contender> batches(count);
      for (Contender& batch : batches) {
        batch.use = uses[rng.Below(uses.size())];
        batch.luck = DrawLuck(tail, rng);
      }
      std::vector<double> slowdown(count);
      Slowdowns(contention, batches, slowdown);
      percent = 100 * (slowdown[0] - 1);
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto pairs = slowdowns(2);
  EXPECT_LT(pairs[18'000], 18);
  EXPECT_GT(pairs[18'000], 14);
  const auto fours = slowdowns(4);
  EXPECT_NEAR(fours[19'800], 245, 20);
  EXPECT_NEAR(fours.back(), 680, 180);
  RecordProperty("pairs_p90", std::to_string(pairs[18'000]));
  RecordProperty("fours_p99", std::to_string(fours[19'800]));
  RecordProperty("fours_most", std::to_string(fours.back()));
}

constexpr const char* kWorkloads[] = {"high", "low", "balanced", "uniform"};

TEST(Strait, NoRivalLosesFewerImportantRequestsNorFarFewerOthers) {
  for (const std::string workload : kWorkloads) {
    const Played strait = Play(workload, "strait");
    for (const std::string rival :
         {"temporal", "static-spatial", "reactive-spatial", "preemptive-priority:batch=2,form=0"}) {
      SCOPED_TRACE(workload + " against " + rival);
      const Played other = Play(workload, rival);
      EXPECT_LE(strait.low, other.low + 0.01);
      // Where the important are pressed, by a margin; elsewhere the rivals lose few of them too.
      EXPECT_LE(strait.high, other.high - (workload == "high" ? 0.005 : 0));
    }
  }
}

// The stand-in of Figure 5-tight, where Strait's own runs look as published.
Expected<Scenario> Tight(const std::string& workload) {
  auto scenario = Workload(workload);
  if (!scenario) return scenario;
  scenario->profile.replace_filename("strait-standin-l4-9tflops.json");
  scenario->capacity.assign(kResources, 0.6);
  scenario->rate_rps = 800;
  return scenario;
}

// There its margins over the paper's rivals are the paper's, 1.02 points and more. Preemption,
// which is not among them, keeps a tenth of a point more where arrivals are uniform, with all of
// low priority lost.
TEST(Strait, KeepsThePapersMarginsWhereItsRunsLookAsThere) {
  for (const std::string workload : kWorkloads) {
    const auto scenario = Tight(workload);
    const Played strait = Play(scenario, "strait");
    for (const std::string rival : {"temporal", "static-spatial", "reactive-spatial"}) {
      SCOPED_TRACE(workload + " against " + rival);
      const Played other = Play(scenario, rival);
      EXPECT_LE(strait.high, other.high - 0.0102);
      EXPECT_LE(strait.low, other.low);
    }
    SCOPED_TRACE(workload + " against preemption");
    const Played preemptive = Play(scenario, "preemptive-priority:batch=2,form=0");
    EXPECT_LE(strait.high, preemptive.high + (workload == "uniform" ? 0.001 : -0.005));
    EXPECT_LE(strait.low, preemptive.low - 0.4);
  }
}

// Where lower batches may join whatever is expected to bear them, half as much again of high
// priority is lost at least; not to join costs low priority in `high` alone.
TEST(Strait, LowerBatchesJoinOnlyWhatBearsThemInTheTail) {
  for (const std::string workload : kWorkloads) {
    SCOPED_TRACE(workload);
    const Played strait = Play(Tight(workload), "strait");
    const Played expected = Play(Tight(workload), "strait:tail=no");
    EXPECT_LE(strait.high, 0.67 * expected.high);
    EXPECT_LE(strait.low, expected.low + (workload == "high" ? 0.1 : 0.01));
  }
}

// Section 5.3: preemption protects the important too, and starves the rest.
TEST(Strait, ServesMoreThanPreemptionDoes) {
  for (const std::string workload : {"high", "low"}) {
    SCOPED_TRACE(workload);
    const Played strait = Play(workload, "strait");
    const Played preemptive = Play(workload, "preemptive-priority:batch=1,form=0");
    EXPECT_LE(strait.high, preemptive.high);
    EXPECT_LE(strait.low, preemptive.low - 0.3);
  }
}

// Section 5.1: batches form. Where each first request waits its share of the SLO, whatever is left
// to it, the important pay for the larger batches; where none waits, the others do.
TEST(Strait, BatchesFormOnlyInTimeThatCanBeSpared) {
  const Played strait = Play("high", "strait");
  EXPECT_LT(2 * strait.high, Play("high", "strait:slack=0,room=0").high);
  EXPECT_LT(Play("uniform", "strait").low, Play("uniform", "strait:form=0").low - 0.005);
}

// Section 5.4: learning narrows the tail of the errors; Appendix A.2: profiled throughputs that are
// off by 15 % move it by less than 2 points.
TEST(Strait, LearningNarrowsTheErrorsAndBearsDrift) {
  for (const std::string workload : {"high", "balanced"}) {
    SCOPED_TRACE(workload);
    const double learning = Play(workload, "strait").p99;
    EXPECT_GT(learning, 0.05) << "nothing was predicted";
    EXPECT_LT(learning, Play(workload, "strait:learn=no").p99 - 0.03);
    EXPECT_LT(std::abs(Play(workload, "strait", 0.15).p99 - learning), 0.02);
  }
}

// Appendix A.3: what matters most is to protect running batches and to cap the others.
TEST(Strait, TheImportantLoseMostWithoutProtectionAndCap) {
  const double whole = Play("high", "strait").high;
  EXPECT_GT(Play("high", "strait:protect=no,cap=no").high, 1.5 * whole);
  EXPECT_GT(Play(Tight("high"), "strait:meet=no").high, 1.2 * Play(Tight("high"), "strait").high);
}

}  // namespace
}  // namespace tactus
