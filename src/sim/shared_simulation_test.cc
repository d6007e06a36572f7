// Lanes whose batches slow each other, as a whole: without these a lane with one slot could behave
// otherwise than it does without contention, or a batch could be answered twice.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "core/request.h"
#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

// Two models that vary, each with a transfer, on `slots` slots of one lane.
struct Shared {
  ProfileFile profile;
  Scenario scenario;
};

Shared Make(int slots) {
  Shared made;
  made.profile.models = {AffineModelOf("a", Millis(2), Millis(1), 4),
                         AffineModelOf("b", Millis(5), Millis(1), 4)};
  made.profile.launch_overhead_ms = 0.05;
  made.profile.finish_overhead_ms = 0.02;
  for (ProfiledModel& model : made.profile.models) {
    model.resources_source = "made up for a test";
    for (ProfileCell& cell : model.exits[0].cells) {
      cell.repetitions = 50;
      cell.max_ms = 3 * cell.p99_ms;
      cell.transfer_ms = 0.2;
      cell.throughput = {0.3, 0.5, 0.8, 0.6, 0.1};
    }
  }
  made.scenario = ScenarioOf(made.profile, 250, 5);
  made.scenario.slots = slots;
  made.scenario.models[1].priority = 2;
  return made;
}

SimulationResult Play(const Shared& shared, bool noise = true) {
  FifoPolicy policy(4);
  auto result = Simulate(shared.scenario, shared.profile, policy, {.noise = noise});
  EXPECT_TRUE(result) << result.error().message;
  return std::move(*result);
}

using Row = std::tuple<TimePoint, TimePoint, TimePoint, std::uint32_t, Outcome>;
std::vector<Row> Rows(const SimulationResult& result) {
  std::vector<Row> rows;
  for (const RequestRecord& r : result.records) {
    rows.emplace_back(r.arrival, r.started, r.ended, r.model, r.outcome);
  }
  return rows;
}

TEST(SharedSimulation, OneSlotIsAsItWasBefore) {
  Shared shared = Make(1);
  shared.scenario.decision_cost_us = 30;
  const auto alone = Rows(Play(shared));
  shared.scenario.capacity = {1, 1, 1, 1, 1};
  EXPECT_EQ(Rows(Play(shared)), alone);
  EXPECT_GT(alone.size(), 1000u);
}

TEST(SharedSimulation, AnswersEveryRequestOnceAndTheSameEveryTime) {
  Shared shared = Make(4);
  const std::size_t requests = Play(shared).records.size();
  shared.scenario.capacity = {1, 1, 1, 1, 1};
  const SimulationResult result = Play(shared);
  EXPECT_EQ(result.records.size(), requests);
  for (const RequestRecord& record : result.records) {
    EXPECT_TRUE(record.outcome == Outcome::kMet || record.outcome == Outcome::kLate);
    EXPECT_GT(record.ended, record.started);
  }
  EXPECT_EQ(Rows(Play(shared)), Rows(result));
}

// A device of twice the capacity is the same device with half the batches' demands; one that is
// large enough slows nobody.
TEST(SharedSimulation, SlowsBatchesAsFarAsCapacityIsShort) {
  Shared shared = Make(4);
  shared.scenario.crosstalk = 0;
  const auto busy = [&](double capacity) {
    shared.scenario.capacity = {capacity, capacity, capacity, capacity, capacity};
    return Play(shared, false).lanes[0].busy;
  };
  const Duration tight = busy(1);
  const Duration double_capacity = busy(2);
  const Duration ample = busy(4);
  EXPECT_GT(tight, double_capacity);
  EXPECT_GT(double_capacity, ample);
  for (ProfiledModel& model : shared.profile.models) {
    for (ProfileCell& cell : model.exits[0].cells) cell.throughput = 0.5 * cell.throughput;
  }
  EXPECT_EQ(busy(1), double_capacity);
}

// Priorities are an order: a scenario may leave numbers out, as far as it likes.
TEST(SharedSimulation, WhatALevelWeighsIsNotAMatterOfItsNumber) {
  Shared shared = Make(4);
  shared.scenario.capacity = {1, 1, 1, 1, 1};
  for (const double weight : {1.2, 100.0}) {
    SCOPED_TRACE(weight);
    shared.scenario.priority_weight = weight;
    const auto with = [&](int high, int low) {
      shared.scenario.models[0].priority = high;
      shared.scenario.models[1].priority = low;
      return Rows(Play(shared));
    };
    const auto next = with(1, 2);
    EXPECT_EQ(with(1, 9), next);
    EXPECT_EQ(with(1, kLowestPriority), next);
    EXPECT_EQ(with(200, 255), next);
    EXPECT_NE(with(1, 1), next);
  }
}

// The last of 255 levels weigh 1e-508 of the first, which is 0 to a double.
TEST(SharedSimulation, HundredsOfLevelsAreServedToTheirEnd) {
  Shared shared = Make(4);
  shared.scenario.capacity = {1, 1, 1, 1, 1};
  shared.scenario.priority_weight = 100;
  const ProfiledModel pattern = shared.profile.models[0];
  shared.profile.models.clear();
  for (int m = 0; m < 255; ++m) {
    shared.profile.models.push_back(pattern);
    shared.profile.models.back().name = "m" + std::to_string(m);
  }
  Scenario scenario = ScenarioOf(shared.profile, 250, 1);
  scenario.slots = 4;
  scenario.capacity = shared.scenario.capacity;
  scenario.priority_weight = 100;
  for (int m = 0; m < 255; ++m) scenario.models[m].priority = m + 1;
  shared.scenario = scenario;
  const SimulationResult result = Play(shared);
  EXPECT_GT(result.records.size(), 200u);
  for (const RequestRecord& record : result.records) {
    EXPECT_TRUE(record.outcome == Outcome::kMet || record.outcome == Outcome::kLate);
    EXPECT_GE(record.ended - record.started, Millis(2));
  }
}

// What policies are told may be off; what happens is not: with a policy that does not look, drift
// changes nothing.
TEST(SharedSimulation, DriftChangesWhatIsToldAndNotWhatHappens) {
  Shared shared = Make(4);
  shared.scenario.capacity = {1, 1, 1, 1, 1};
  const auto before = Rows(Play(shared));
  const auto told = MakeServedModels(shared.scenario, shared.profile);
  shared.scenario.drift = 0.15;
  EXPECT_EQ(Rows(Play(shared)), before);
  const auto drifted = MakeServedModels(shared.scenario, shared.profile);
  double most = 0;
  for (int b = 1; b <= 4; ++b) {
    const auto use = [&](const auto& served_models) {
      return (*served_models)->profile.Use(ModelId{0}, ExitId{0}, b, LaneClass{0}).throughput;
    };
    for (std::size_t r = 0; r < kResources; ++r) {
      const double off = std::abs(use(drifted)[r] / use(told)[r] - 1);
      EXPECT_LE(off, 0.15 + 1e-12);
      most = std::max(most, off);
    }
  }
  EXPECT_GT(most, 0.05);
}

}  // namespace
}  // namespace tactus
