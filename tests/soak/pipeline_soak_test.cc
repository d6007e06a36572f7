// Random pipelines under every policy with random options: every pipeline request must end, once,
// no sooner than its longest path allows, and every request that its stages send as well.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chance.h"
#include "pipeline/budget.h"
#include "pipeline/build.h"
#include "random_policy.h"
#include "sim/simulation.h"
#include "soak_options.h"
#include "workload/arrivals.h"
#include "workload/pipelines.h"

namespace tactus {
namespace {

struct PipelineWorld {
  Scenario scenario;
  ProfileFile profile;
};

void AddModel(Chance& chance, PipelineWorld& world) {
  ProfiledModel& profiled = world.profile.models.emplace_back();
  profiled.name = "m" + std::to_string(world.profile.models.size());
  profiled.max_batch = chance.Whole(1, 8);
  const int exits = chance.Whole(1, 2);
  const double alpha = 0.1 * chance.Whole(0, 20);
  const double beta = 0.2 * chance.Whole(1, 20);
  for (int e = 1; e <= exits; ++e) {
    ProfiledExit& exit = profiled.exits.emplace_back();
    exit.name = std::to_string(e);
    for (int b = 1; b <= profiled.max_batch; ++b) {
      const double ms = e * (alpha * b + beta);
      exit.cells.push_back({.repetitions = chance.OneIn(2) ? 30 : 0,
                            .mean_ms = ms,
                            .min_ms = 0.8 * ms,
                            .p50_ms = ms,
                            .p95_ms = 1.1 * ms,
                            .p99_ms = 1.3 * ms,
                            .max_ms = 1.5 * ms});
    }
    Fit(exit);
  }
  world.scenario.models.push_back({.name = profiled.name, .profile_as = profiled.name});
}

// Any rule; some have stages with rows (one at least, so that the longest path is what it was) and
// joins that gather them where a graph allows it.
void AddRows(Chance& chance, ScenarioPipeline& pipeline) {
  if (pipeline.stages.front().budget_ms == 0) {
    pipeline.deadlines =
        std::array{"latency", "equal", "whole", "redivide", "persist", "spare"}[chance.Below(6)];
  } else {
    pipeline.deadlines = std::array{"latency", "redivide", "persist", "spare"}[chance.Below(4)];
  }
  if (chance.OneIn(2)) return;
  pipeline.answer = chance.OneIn(2) ? "each" : "all";
  for (ScenarioStage& stage : pipeline.stages) {
    if (stage.count > 1 || !chance.OneIn(3)) continue;
    stage.rows = {0, 2, 1, 1};
    const auto gathers = [&](ScenarioStage& other) {
      const bool after = std::ranges::find(other.after, stage.name) != other.after.end();
      if (!after && chance.OneIn(2)) other.gather = stage.name;
    };
    std::ranges::for_each(pipeline.stages, gathers);
    if (Validate(DeclarationOf(pipeline))) continue;
    for (ScenarioStage& other : pipeline.stages) {
      if (other.gather == stage.name) other.gather.clear();
    }
    if (!Validate(DeclarationOf(pipeline))) stage.rows.clear();
  }
}

// Any graph over any of the models, with an SLO of one and a half to eight times its longest path.
void AddPipeline(Chance& chance, PipelineWorld& world) {
  ScenarioPipeline pipeline;
  pipeline.name = "p" + std::to_string(world.scenario.pipelines.size());
  pipeline.ratio = chance.Whole(1, 3);
  const int stages = chance.Whole(1, 7);
  std::vector<StageDeclaration> declared;
  std::vector<Duration> latency;
  for (int s = 0; s < stages; ++s) {
    const std::size_t model = chance.Below(world.scenario.models.size());
    ScenarioStage& stage = pipeline.stages.emplace_back();
    stage.name = std::to_string(s);
    stage.model = world.scenario.models[model].name;
    stage.count = chance.OneIn(2) ? 1 : chance.Whole(1, 4);
    for (int other = 0; other < s; ++other) {
      if (chance.OneIn(3)) stage.after.push_back(std::to_string(other));
    }
    declared.push_back({stage.name, stage.after});
    latency.push_back(FromMillis(world.profile.models[model].exits.back().cells[0].max_ms));
  }
  const PipelineGraph graph = *PipelineGraph::Make(declared);
  const Duration longest = PathLength(LongestPath(graph, latency), latency);
  pipeline.slo_ms = 0.5 + ToMillis(longest) * (1.5 + 0.1 * chance.Whole(0, 65));
  if (chance.OneIn(3)) {
    for (int s = 0; s < stages; ++s) {
      pipeline.stages[s].budget_ms =
          ToMillis(latency[s]) / ToMillis(longest) * (pipeline.slo_ms - 0.1);
    }
  }
  AddRows(chance, pipeline);
  world.scenario.pipelines.push_back(std::move(pipeline));
}

PipelineWorld RandomPipelines(std::uint64_t seed) {
  SeededChance chance(seed, "soak/pipelines");
  PipelineWorld world;
  world.profile.provenance = "made up by a soak";
  world.profile.answer_overhead_ms = chance.OneIn(2) ? 0.03 : 0;
  Scenario& scenario = world.scenario;
  const int models = chance.Whole(1, 5);
  for (int m = 0; m < models; ++m) AddModel(chance, world);
  const int pipelines = chance.Whole(1, 3);
  for (int p = 0; p < pipelines; ++p) AddPipeline(chance, world);
  for (ScenarioModel& model : scenario.models) {  // some have requests of their own
    if (!IsStage(scenario, model.name)) model.slo_ms = 200;
  }
  scenario.name = "pipelines";
  scenario.seed = seed;
  scenario.duration_s = 2;
  scenario.warmup_s = chance.OneIn(2) ? 0.3 : 0;
  scenario.expiry = std::array{"never", "passed", "unmeetable"}[chance.Below(3)];
  scenario.queue_capacity = chance.OneIn(3) ? chance.Whole(1, 20) : 4096;
  scenario.decision_cost_us = chance.OneIn(3) ? 20 : 0;
  scenario.lanes = chance.Whole(1, 6);
  scenario.slots = chance.Whole(1, 2);
  scenario.process = std::array{ArrivalProcess::kPoisson, ArrivalProcess::kGamma,
                                ArrivalProcess::kUniform}[chance.Below(3)];
  scenario.cv = 2;
  scenario.popularity = chance.OneIn(2) ? Popularity::kRatio : Popularity::kEqual;
  // From nearly idle to several times what the lanes can do.
  scenario.rate_rps = scenario.lanes * chance.Whole(5, 500);
  return world;
}

// How many requests a run was given.
class Count final : public Journal {
 public:
  void Append(const JournalRecord& record) noexcept override {
    if (record.kind == JournalRecord::Kind::kArrive) ++arrived;
  }
  std::size_t arrived = 0;
};

using Ended = std::tuple<TimePoint, std::uint32_t, TimePoint, PipelineOutcome, std::uint32_t>;

// In the order of arrival.
std::vector<Ended> EndedOf(const SimulationResult& result) {
  std::vector<Ended> ended;
  for (const PipelineRecord& r : result.pipeline_requests) {
    ended.emplace_back(r.arrival, r.pipeline, r.ended, r.outcome, r.stage);
  }
  std::ranges::sort(ended);
  return ended;
}

void CheckArrivals(const Scenario& scenario, const std::vector<Ended>& ended) {
  auto streams = MakeArrivals(scenario, kStart + FromSeconds(scenario.duration_s));
  std::vector<std::pair<TimePoint, std::uint32_t>> wanted;
  for (std::uint32_t p = 0; p < scenario.pipelines.size(); ++p) {
    Arrivals& stream = *(*streams)[scenario.models.size() + p];
    for (TimePoint at = stream.Next(); at != kNever; at = stream.Next()) wanted.emplace_back(at, p);
  }
  std::ranges::sort(wanted);
  ASSERT_EQ(ended.size(), wanted.size()) << "a pipeline request is lost or ends twice";
  for (std::size_t i = 0; i < ended.size(); ++i) {
    ASSERT_EQ(std::get<0>(ended[i]), wanted[i].first);
    ASSERT_EQ(std::get<1>(ended[i]), wanted[i].second);
  }
}

void CheckEnds(const PipelineWorld& world, const SimulationResult& result) {
  const auto pipelines = MakePipelines(world.scenario, world.profile);
  std::vector<Duration> least;  // by pipeline: the quickest batches of its longest path
  for (const Pipeline& pipeline : *pipelines) {
    std::vector<Duration> latency;
    for (const PipelineStage& stage : pipeline.stages) {
      const ProfiledExit& exit = world.profile.models[stage.model.value()].exits.front();
      latency.push_back(FromMillis(exit.cells.front().min_ms));
    }
    least.push_back(PathLength(LongestPath(pipeline.graph, latency), latency));
  }
  for (const PipelineRecord& record : result.pipeline_requests) {
    const Pipeline& pipeline = (*pipelines)[record.pipeline];
    EXPECT_GE(record.ended, record.arrival);
    EXPECT_LT(record.stage, pipeline.stages.size());
    if (record.outcome == PipelineOutcome::kDropped) continue;
    const Duration latency = record.ended - record.arrival;
    EXPECT_LE(record.items_lost, record.items);
    // What lost its rows had less to do.
    if (record.items_lost == 0) {
      EXPECT_GE(latency, least[record.pipeline]);
    }
    EXPECT_EQ(record.outcome == PipelineOutcome::kOnTime, latency <= pipeline.slo);
  }
}

// Where none was dropped and nothing was drawn, every stage of every pipeline request sent all its
// requests.
void CheckRequests(const Scenario& scenario, const SimulationResult& result) {
  for (const ScenarioPipeline& pipeline : scenario.pipelines) {
    if (pipeline.deadlines == "persist") return;  // what expired was sent once more
  }
  std::vector<std::int64_t> ended(scenario.pipelines.size(), 0);
  for (const PipelineRecord& record : result.pipeline_requests) {
    if (record.outcome == PipelineOutcome::kDropped || record.items > 0) return;
    ++ended[record.pipeline];
  }
  std::vector<std::int64_t> requests(scenario.models.size(), 0);
  for (const RequestRecord& record : result.records) ++requests[record.model];
  for (std::size_t m = 0; m < requests.size(); ++m) {
    std::int64_t wanted = 0;
    for (std::size_t p = 0; p < ended.size(); ++p) {
      for (const ScenarioStage& stage : scenario.pipelines[p].stages) {
        if (stage.model == scenario.models[m].name) wanted += ended[p] * stage.count;
      }
    }
    if (wanted > 0) {
      EXPECT_EQ(requests[m], wanted);
    }
  }
}

TEST(PipelineSoak, EveryPipelineRequestEndsOnceUnderEveryPolicy) {
  const Seeds seeds = SeedsOf(80);
  std::array<std::int64_t, 3> outcomes{};
  for (std::uint64_t i = 0; seeds.More(i) && !HasFailure(); ++i) {
    const std::uint64_t seed = seeds.first + i;
    PipelineWorld world = RandomPipelines(seed);
    SeededChance chance(seed, "soak/pipeline policy");
    const std::string text = RandomPolicyText(chance);
    SCOPED_TRACE(Again(seed) + ", policy " + text);
    world.scenario.policy = text;
    const auto policy = MakePolicy(text);
    Count count;
    SimulationOptions options;
    options.journal = &count;
    const auto result = Simulate(world.scenario, world.profile, **policy, options);
    ASSERT_TRUE(result) << result.error().message;
    if (options.journal != nullptr) {
      EXPECT_EQ(result->records.size(), count.arrived);
    }
    const std::vector<Ended> ended = EndedOf(*result);
    CheckArrivals(world.scenario, ended);
    CheckEnds(world, *result);
    CheckRequests(world.scenario, *result);
    const auto again = Simulate(world.scenario, world.profile, **MakePolicy(text));
    EXPECT_EQ(ended, EndedOf(*again)) << "not deterministic";
    for (const PipelineRecord& r : result->pipeline_requests) ++outcomes[int(r.outcome)];
  }
  for (const std::int64_t n : outcomes) EXPECT_GT(n, 0) << "no seed had such a pipeline request";
}

}  // namespace
}  // namespace tactus
