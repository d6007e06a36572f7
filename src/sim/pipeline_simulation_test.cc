// Pipelines in a whole simulation: their requests must take what their stages take, and end once.
#include <numeric>

#include <gtest/gtest.h>

#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

// detect 10 ms, then cars 20 ms twice and faces 35 ms, then a join of 5 ms: 50 ms without waiting.
ProfileFile Profile() {
  ProfileFile profile;
  profile.provenance = "made up for a test";
  profile.models = {AffineModelOf("detect", Millis(10), Millis(0), 4),
                    AffineModelOf("cars", Millis(20), Millis(0), 4),
                    AffineModelOf("faces", Millis(35), Millis(0), 4),
                    AffineModelOf("join", Millis(5), Millis(0), 4)};
  return profile;
}

Scenario PipelineOf(double fps, double seconds) {
  Scenario scenario = ScenarioOf(Profile(), 0, seconds);
  scenario.lanes = 3;
  scenario.pipelines = {
      {.name = "p",
       .slo_ms = 100,
       .rate_rps = fps,
       .stages = {{.name = "detect", .model = "detect"},
                  {.name = "cars", .model = "cars", .after = {"detect"}, .count = 2},
                  {.name = "faces", .model = "faces", .after = {"detect"}},
                  {.name = "join", .model = "join", .after = {"cars", "faces"}}}}};
  return scenario;
}

SimulationResult Play(const Scenario& scenario, const ProfileFile& profile, int batch = 1) {
  FifoPolicy policy(batch);
  auto result = Simulate(scenario, profile, policy);
  EXPECT_TRUE(result) << result.error().message;
  return std::move(*result);
}

TEST(PipelineSimulation, AnUndisturbedRequestTakesItsLongestPath) {
  Scenario scenario = PipelineOf(2, 50);
  scenario.process = ArrivalProcess::kUniform;
  const SimulationResult result = Play(scenario, Profile());
  ASSERT_EQ(result.pipeline_requests.size(), 100u);
  for (const PipelineRecord& record : result.pipeline_requests) {
    EXPECT_EQ(record.ended - record.arrival, Millis(50));  // 10 + 35 + 5: the join waited for faces
    EXPECT_EQ(record.outcome, PipelineOutcome::kOnTime);
  }
  EXPECT_EQ(result.records.size(), 500u);
  // The first of cars and faces share three lanes; on one they follow each other.
  scenario.lanes = 1;
  for (const PipelineRecord& record : Play(scenario, Profile()).pipeline_requests) {
    EXPECT_EQ(record.ended - record.arrival, Millis(10 + 2 * 20 + 35 + 5));
  }
}

TEST(PipelineSimulation, AStageStartsWhenTheAnswersAreThere) {
  Scenario scenario = PipelineOf(2, 50);
  scenario.process = ArrivalProcess::kUniform;
  ProfileFile profile = Profile();
  profile.launch_overhead_ms = 0.5;
  profile.finish_overhead_ms = 0.25;
  profile.answer_overhead_ms = 0.125;
  for (const PipelineRecord& record : Play(scenario, profile).pipeline_requests) {
    EXPECT_EQ(record.ended - record.arrival, Micros(50'000 + 3 * 875));
  }
}

TEST(PipelineSimulation, TheReportHasPipelineRequestsBesideTheModels) {
  Scenario scenario = PipelineOf(30, 100);
  scenario.warmup_s = 10;
  scenario.expiry = "unmeetable";
  const SimulationResult result = Play(scenario, Profile(), 4);
  const RunReport report = MakeReport(scenario, Profile(), result);
  ASSERT_EQ(report.pipelines.size(), 1u);
  const PipelineSummary& p = report.pipelines[0];
  EXPECT_EQ(p.name, "p");
  EXPECT_NEAR(p.offered_rps, 30, 2);
  EXPECT_GT(p.on_time, 0);
  EXPECT_GT(p.dropped(), 0);
  std::int64_t counted = 0;
  for (const PipelineRecord& record : result.pipeline_requests) {
    counted += record.arrival >= result.begin && record.arrival < result.end ? 1 : 0;
  }
  EXPECT_EQ(p.requests(), counted);
  EXPECT_NEAR(p.bad_ratio, 1 - p.goodput_rps / p.offered_rps, 1e-9);
  EXPECT_LE(p.p50_ms, p.p99_ms);
  // One that is lost at a stage sends nothing to those behind it.
  EXPECT_LE(report.models[3].figures.requests, report.models[2].figures.requests);
  EXPECT_TRUE(report.models[0].staged);
  const std::string text = PipelineTable(std::vector{report, report});
  EXPECT_NE(text.find("p, fifo-for-test"), std::string::npos) << text;
  EXPECT_NE(ToJson({{report}, {}}).find("\"dropped_at\": {\n      \"detect\""), std::string::npos);
}

// detect finds 0, 1 or 2 things, each of which is a car, a face and a row that the join waits for.
Scenario RowsOf(double fps, double seconds) {
  Scenario scenario = PipelineOf(fps, seconds);
  scenario.pipelines[0].stages[0].rows = {1, 1, 2};
  scenario.pipelines[0].stages[3].gather = "detect";
  return scenario;
}

TEST(PipelineSimulation, EachRowIsServedAndEveryPolicyMeetsTheSameOnes) {
  Scenario scenario = RowsOf(2, 200);
  scenario.pipelines[0].slo_ms = 500;
  const auto items_of = [&](int batch) {
    std::vector<std::pair<TimePoint, int>> by_arrival;
    std::vector<int> items;
    std::vector<std::size_t> requests(4);
    const SimulationResult result = Play(scenario, Profile(), batch);
    for (const PipelineRecord& record : result.pipeline_requests) {
      EXPECT_NE(record.outcome, PipelineOutcome::kDropped);
      by_arrival.emplace_back(record.arrival, record.items);
    }
    std::ranges::sort(by_arrival);
    for (const auto& [arrival, count] : by_arrival) items.push_back(count);
    for (const RequestRecord& record : result.records) ++requests[record.model];
    const auto rows = static_cast<std::size_t>(std::accumulate(items.begin(), items.end(), 0));
    EXPECT_EQ(requests[0], items.size());
    EXPECT_EQ(requests[1], 2 * rows);
    EXPECT_EQ(requests[2], rows);
    EXPECT_EQ(requests[3], items.size());
    EXPECT_NEAR(static_cast<double>(rows) / static_cast<double>(items.size()), 1.25, 0.15);
    return items;
  };
  EXPECT_EQ(items_of(1), items_of(4));
}

// What is late is left out, and the answer is in time.
TEST(PipelineSimulation, AnAnswerWithEachDoesWithoutRowsThatAreLate) {
  Scenario scenario = RowsOf(30, 20);
  scenario.expiry = "unmeetable";
  scenario.pipelines[0].slo_ms = 70;
  scenario.pipelines[0].answer = "each";
  const RunReport report = MakeReport(scenario, Profile(), Play(scenario, Profile(), 4));
  const PipelineSummary& each = report.pipelines[0];
  EXPECT_GT(each.items_lost, 0);
  EXPECT_LT(each.items_lost, each.items);
  scenario.pipelines[0].answer = "all";
  const RunReport all = MakeReport(scenario, Profile(), Play(scenario, Profile(), 4));
  EXPECT_LT(each.dropped(), all.pipelines[0].dropped());
  EXPECT_EQ(all.pipelines[0].items_lost, 0);
}

// A model's own requests beside a pipeline's arrive as they would alone.
TEST(PipelineSimulation, LeavesOtherModelsArrivalsAsTheyAre) {
  Scenario scenario = PipelineOf(30, 20);
  ProfileFile profile = Profile();
  profile.models.push_back(AffineModelOf("other", Millis(1), Millis(0), 4));
  scenario.models.push_back({.name = "other", .profile_as = "other", .rate_rps = 50});
  const auto arrivals_of = [&](const Scenario& played) {
    std::vector<TimePoint> arrivals;
    const auto model = played.models.size() - 1;
    for (const RequestRecord& record : Play(played, profile).records) {
      if (record.model == model) arrivals.push_back(record.arrival);
    }
    std::ranges::sort(arrivals);
    return arrivals;
  };
  Scenario alone = scenario;
  alone.pipelines.clear();
  for (std::size_t m = 0; m + 1 < alone.models.size(); ++m) alone.models[m].rate_rps = 1e-9;
  EXPECT_EQ(arrivals_of(scenario), arrivals_of(alone));
}

}  // namespace
}  // namespace tactus
