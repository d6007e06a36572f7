#include "sim/simulation.h"

#include <cmath>
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/sim_testing.h"

namespace tactus {
namespace {

ProfileFile OneModel(double ms) {
  ProfileFile profile;
  profile.provenance = "made up for a test";
  profile.models = {AffineModelOf("m", Millis(0), FromMillis(ms), 1)};
  return profile;
}

SimulationResult Serve(const Scenario& scenario, const ProfileFile& profile, int batch = 1,
                       SimulationOptions options = {}) {
  FifoPolicy policy(batch);
  auto result = Simulate(scenario, profile, policy, options);
  EXPECT_TRUE(result) << result.error().message;
  return std::move(*result);
}

double MeanWaitMillis(const SimulationResult& result) {
  double sum = 0;
  for (const RequestRecord& record : result.records)
    sum += ToMillis(record.started - record.arrival);
  return sum / static_cast<double>(result.records.size());
}

// M/D/1: the mean wait is rho s / (2 (1 - rho)). 400,000 requests leave an error of about 1 %.
TEST(Simulation, WaitsAsTheMD1QueueDoes) {
  for (const double rho : {0.3, 0.6, 0.8}) {
    const SimulationResult result =
        Serve(ScenarioOf(OneModel(10), rho * 100, 4000 / rho), OneModel(10));
    const double wanted = rho * 10 / (2 * (1 - rho));
    EXPECT_NEAR(MeanWaitMillis(result) / wanted, 1, 0.04) << "rho " << rho;
    EXPECT_NEAR(ToSeconds(result.lanes[0].busy) / (4000 / rho), rho, 0.01 * rho);
  }
}

// M/G/1 (Pollaczek and Khinchine): the mean wait is lambda E[S^2] / (2 (1 - rho)). The service
// time's moments follow from the quantiles: it is uniform between each two of them.
TEST(Simulation, WaitsAsTheMG1QueueDoes) {
  ProfileFile profile = OneModel(10);
  profile.models[0].exits[0].cells[0] = {.repetitions = 100,
                                         .mean_ms = 10,
                                         .min_ms = 4,
                                         .p50_ms = 8,
                                         .p95_ms = 20,
                                         .p99_ms = 40,
                                         .max_ms = 100};
  const double at[] = {0, 0.5, 0.95, 0.99, 1};
  const double ms[] = {4, 8, 20, 40, 100};
  double mean = 0, square = 0;
  for (int i = 0; i < 4; ++i) {
    const double a = ms[i], b = ms[i + 1], p = at[i + 1] - at[i];
    mean += p * (a + b) / 2;
    square += p * (a * a + a * b + b * b) / 3;
  }
  const double rate = 0.6 / mean;  // per ms
  const SimulationResult result = Serve(ScenarioOf(profile, rate * 1000, 8000), profile);
  EXPECT_NEAR(MeanWaitMillis(result) / (rate * square / (2 * (1 - 0.6))), 1, 0.04);
}

// Several lanes, many of them: nobody waits, and the lanes' work adds up to the load
// (M/G/infinity).
TEST(Simulation, NobodyWaitsWhereLanesAbound) {
  Scenario scenario = ScenarioOf(OneModel(10), 400, 100);
  scenario.lanes = 4;
  scenario.slots = 16;
  const SimulationResult result = Serve(scenario, OneModel(10));
  EXPECT_EQ(MeanWaitMillis(result), 0);
  double busy = 0;
  for (const LaneTotals& lane : result.lanes) busy += ToSeconds(lane.busy);
  EXPECT_NEAR(busy / 100, 4, 0.1);
}

TEST(Simulation, OverheadsAndDecisionsDelayTheAnswer) {
  ProfileFile profile = OneModel(10);
  profile.launch_overhead_ms = 0.5;
  profile.finish_overhead_ms = 0.125;
  profile.answer_overhead_ms = 0.125;
  Scenario scenario = ScenarioOf(profile, 1, 10);  // rare: no request meets another
  scenario.process = ArrivalProcess::kUniform;
  scenario.decision_cost_us = 125;
  const SimulationResult result = Serve(scenario, profile);
  ASSERT_EQ(result.records.size(), 10u);
  for (const RequestRecord& record : result.records) {
    EXPECT_EQ(record.started - record.arrival, Micros(625));
    EXPECT_EQ(record.ended - record.started, Micros(10'250));
  }
}

// One thread decides: a cost of 1 ms a launch is a ceiling of 1000 launches a second.
TEST(Simulation, DecisionCostLimitsTheRateOfLaunches) {
  Scenario scenario = ScenarioOf(OneModel(0.01), 2000, 5);
  scenario.decision_cost_us = 1000;
  scenario.lanes = 8;
  const SimulationResult result = Serve(scenario, OneModel(0.01));
  EXPECT_NEAR(ToSeconds(result.last - kStart), 10, 0.5);
}

// Lanes that differ: the fifo takes the first free one, so two requests at a time run on both.
TEST(Simulation, ALaneTakesItsKindsTime) {
  Scenario scenario = ScenarioOf(OneModel(10), 200, 1);
  scenario.process = ArrivalProcess::kUniform;  // every 5 ms
  scenario.lanes = 3;
  scenario.lane_kinds = {{.name = "slow", .count = 1, .speed = 0.25},
                         {.name = "fast", .count = 1, .speed = 2.5}};
  const SimulationResult result = Serve(scenario, OneModel(10));
  for (const RequestRecord& record : result.records) {
    EXPECT_EQ(record.ended - record.started, Millis(4)) << "the first lane is the quickest";
  }
  scenario.rate_rps = 500;  // 250 of them on the fast lane, 100 on the plain, 25 on the slow
  const SimulationResult full = Serve(scenario, OneModel(10));
  EXPECT_NEAR(ToSeconds(full.last - kStart), 500.0 / 375, 0.05);
  EXPECT_NEAR(static_cast<double>(full.lanes[0].batches) / full.lanes[2].batches, 10, 0.5);
  const RunReport report = MakeReport(scenario, OneModel(10), full);
  EXPECT_EQ(report.lanes[1].kind, "plain");
  EXPECT_THAT(ToTable(std::span(&report, 1), false),
              ::testing::HasSubstr("fifo-for-test: lanes, 1 fast busy 98 %, 1 plain busy 97 %, 1 "
                                   "slow busy"));
}

ProfileFile ThreeModels() {
  ProfileFile profile;
  for (const char* name : {"a", "b", "c"})
    profile.models.push_back(AffineModelOf(name, Millis(2), Millis(1), 8));
  for (ProfileCell& cell : profile.models[1].exits[0].cells) {
    cell.repetitions = 100;
    cell.p95_ms = 2 * cell.p50_ms;
    cell.p99_ms = cell.max_ms = 3 * cell.p50_ms;
  }
  return profile;
}

Scenario Busy() {
  Scenario scenario = ScenarioOf(ThreeModels(), 900, 10);
  scenario.lanes = 2;
  scenario.process = ArrivalProcess::kGamma;
  scenario.cv = 3;
  for (ScenarioModel& model : scenario.models) model.slo_ms = 20;
  return scenario;
}

TEST(Simulation, IsTheSameEveryTime) {
  const SimulationResult first = Serve(Busy(), ThreeModels(), 4);
  const SimulationResult second = Serve(Busy(), ThreeModels(), 4);
  EXPECT_EQ(first.steps, second.steps);
  ASSERT_EQ(first.records.size(), second.records.size());
  for (std::size_t i = 0; i < first.records.size(); ++i) {
    const RequestRecord &a = first.records[i], &b = second.records[i];
    ASSERT_TRUE(a.arrival == b.arrival && a.started == b.started && a.ended == b.ended &&
                a.model == b.model && a.batch == b.batch && a.outcome == b.outcome)
        << "record " << i;
  }
  Scenario other = Busy();
  other.seed = 2;
  EXPECT_NE(Serve(other, ThreeModels(), 4).records.size(), 0u);
  EXPECT_NE(Serve(other, ThreeModels(), 4).last, first.last);
}

// Every request that arrives ends exactly once, whatever becomes of it.
TEST(Simulation, EndsEveryRequestOnce) {
  for (const char* expiry : {"never", "passed", "unmeetable"}) {
    Scenario scenario = Busy();
    scenario.rate_rps = 5000;  // far more than two lanes sustain
    scenario.expiry = expiry;
    scenario.queue_capacity = 50;
    const SimulationResult result = Serve(scenario, ThreeModels(), 4);
    auto unlimited = scenario;
    unlimited.queue_capacity = 1 << 20;
    unlimited.lanes = 64;
    EXPECT_EQ(result.records.size(), Serve(unlimited, ThreeModels(), 1).records.size()) << expiry;
    std::map<Outcome, int> outcomes;
    std::int64_t ran = 0;
    for (const RequestRecord& record : result.records) {
      ++outcomes[record.outcome];
      ran += record.batch > 0;
      ASSERT_LE(record.arrival, record.started);
      ASSERT_LE(record.started, record.ended);
      ASSERT_EQ(record.batch > 0,
                record.outcome == Outcome::kMet || record.outcome == Outcome::kLate);
    }
    EXPECT_GT(outcomes[Outcome::kMet], 0) << expiry;
    EXPECT_GT(outcomes[Outcome::kShed], 0) << expiry;
    EXPECT_EQ(outcomes[Outcome::kExpired] > 0, std::string_view(expiry) != "never") << expiry;
    EXPECT_EQ(outcomes[Outcome::kError] + outcomes[Outcome::kCancelled], 0) << expiry;
    EXPECT_GT(ran, 0);
  }
}

// A policy that waits for ever must not hold the simulation; its requests count as bad.
TEST(Simulation, GivesUpWhatIsNeverServed) {
  class Idle final : public Policy {
   public:
    Idle() : Policy({.name = "idle"}) {}
    Decision Decide(const View&, TimePoint now) override { return Wait{now + Seconds(1)}; }
  } idle;
  const auto result =
      Simulate(ScenarioOf(OneModel(10), 10, 5), OneModel(10), idle, {.drain = Seconds(3)});
  ASSERT_TRUE(result);
  EXPECT_GT(result->records.size(), 20u);
  for (const RequestRecord& record : result->records) {
    EXPECT_EQ(record.outcome, Outcome::kShed);
    EXPECT_EQ(record.ended, kStart + Seconds(8));
  }
}

// Stops whatever runs when a request waits that is due sooner; once for each batch.
class Preempting final : public Policy {
 public:
  Preempting() : Policy({.name = "preempting"}) {}
  Decision Decide(const View& view, TimePoint) override {
    const Lane& lane = view.lanes[0];
    const RequestQueue& urgent = view.queues[1];
    if (!lane.HasFreeSlot()) {
      const RunningBatch& running = lane.running()[0];
      if (urgent.empty() || running.model == ModelId{1} || running.id == stopped_) return Wait{};
      stopped_ = running.id;
      return Preempt{lane.id, running.id};
    }
    for (std::size_t m = 2; m-- > 0;) {
      if (!view.queues[m].empty()) return Dispatch{ModelId(m), ExitId{0}, 1, lane.id};
    }
    return Wait{};
  }

 private:
  BatchId stopped_;
};

TEST(Simulation, PreemptedRequestsRunAgain) {
  ProfileFile profile;
  profile.models = {AffineModelOf("slow", Millis(0), Millis(100), 1),
                    AffineModelOf("quick", Millis(0), Millis(1), 1)};
  Scenario scenario = ScenarioOf(profile, 0.001, 60);
  scenario.models[0].rate_rps = 2;
  scenario.models[1].rate_rps = 3;
  scenario.models[0].slo_ms = 1000;
  Preempting policy;
  const auto result = Simulate(scenario, profile, policy);
  ASSERT_TRUE(result);
  double batches = 0;
  for (const RequestRecord& record : result->records) {
    EXPECT_GT(record.batch, 0) << "all of them run in the end";
    if (record.model == 1) {
      EXPECT_LT(record.ended - record.arrival, Millis(20));
    }
  }
  batches = static_cast<double>(result->lanes[0].batches);
  EXPECT_GT(batches, static_cast<double>(result->records.size()) + 10) << "some ran twice";
}

TEST(Simulation, ReportsWhatCounts) {
  Scenario scenario = Busy();
  scenario.warmup_s = 1;
  scenario.warmup_requests = 50;
  const SimulationResult result = Serve(scenario, ThreeModels(), 4);
  const RunReport report = MakeReport(scenario, ThreeModels(), result);
  EXPECT_LT(report.duration_s, 9);
  EXPECT_GT(report.duration_s, 8.5);
  EXPECT_LT(report.all.requests, static_cast<std::int64_t>(result.records.size()) - 50);
  EXPECT_EQ(report.source, "simulated");
  EXPECT_EQ(report.models.size(), 3u);
  ASSERT_EQ(report.lanes.size(), 2u);
  EXPECT_GT(report.lanes[0].busy_ratio, 0.1);
  EXPECT_LE(report.lanes[0].busy_ratio, 1);
}

TEST(Simulation, RefusesAProfileThatDoesNotCoverItsModels) {
  Scenario scenario = Busy();
  scenario.models[2].profile_as = "unknown";
  FifoPolicy policy;
  const auto result = Simulate(scenario, ThreeModels(), policy);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("no model 'unknown'"));
}

// A server's [front]: the client's clock begins when it sends, the server's when it reads.
TEST(Simulation, AFrontDelaysCallsAndAnswers) {
  Scenario scenario = ScenarioOf(OneModel(10), 20, 50);
  const SimulationResult free = Serve(scenario, OneModel(10));
  scenario.models[0].bytes = 1'000'000;
  scenario.models[0].slo_ms = 1000;
  scenario.front_call_us = 1000;
  scenario.front_byte_ns = 1;
  const SimulationResult slow = Serve(scenario, OneModel(10));
  ASSERT_EQ(free.records.size(), slow.records.size());
  double least = 1e9;
  for (const RequestRecord& record : slow.records) {
    EXPECT_EQ(record.deadline, record.arrival + Seconds(1));
    least = std::min(least, ToMillis(record.ended - record.arrival));
  }
  EXPECT_NEAR(least, 12, 1e-6);
  EXPECT_EQ(MeanWaitMillis(free) + 1.5 < MeanWaitMillis(slow), true);
}

// Large calls far past what a lane answers: reading them all would leave the front no time for
// those that are answered (it can read 2,500 a second). By their headers alone it holds what it
// has.
TEST(Simulation, AFrontThatIsOverrunStillAnswersInTime) {
  ProfileFile profile;
  profile.provenance = "made up for a test";
  profile.models = {AffineModelOf("m", FromMillis(0.3), FromMillis(0.5), 16)};
  for (const double rate : {1500, 3000, 6000, 12'000}) {
    Scenario scenario = ScenarioOf(profile, rate, 5);
    scenario.expiry = "unmeetable";
    scenario.warmup_s = 1;
    scenario.models[0].slo_ms = 30;
    scenario.models[0].bytes = 307'200;
    scenario.front_call_us = 30;
    scenario.front_byte_ns = 1.25;
    const auto met = [&] {
      std::int64_t count = 0;
      for (const RequestRecord& record : Serve(scenario, profile, 16).records) {
        count += record.outcome == Outcome::kMet;
      }
      return static_cast<double>(count) / 5;
    };
    EXPECT_GE(met(), 0.75 * std::min(rate, 1850.0)) << rate;
    scenario.front_reads = "all";
    if (rate > 2500) EXPECT_LE(met(), 100) << rate;  // why bodies are not all read
  }
}

}  // namespace
}  // namespace tactus
