// Random scenarios in virtual time under every policy with random options: what the report counts
// must add up, no lane may do more than it can, and a seed must always lead to the same records.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chance.h"
#include "planners/registry.h"
#include "random_policy.h"
#include "sim/simulation.h"
#include "soak_options.h"

namespace tactus {
namespace {

struct World {
  Scenario scenario;
  ProfileFile profile;
};

ProfiledExit RandomExit(Chance& chance, int e, int max_batch) {
  ProfiledExit exit;
  exit.name = std::to_string(e);
  exit.accuracy = 0.2 * e;
  const double alpha = 0.05 * chance.Whole(0, 60);
  const double beta = 0.1 * chance.Whole(1, 100);
  for (int b = 1; b <= max_batch; ++b) {
    ProfileCell cell;
    cell.mean_ms = e * (alpha * b + beta);
    // Some were measured and vary, some are derived; a few are quicker than a smaller batch.
    if (chance.OneIn(10)) cell.mean_ms *= 0.7;
    cell.repetitions = chance.OneIn(2) ? 30 : 0;
    cell.min_ms = 0.8 * cell.mean_ms;
    cell.p50_ms = cell.mean_ms;
    cell.p95_ms = 1.1 * cell.mean_ms;
    cell.p99_ms = 1.3 * cell.mean_ms;
    cell.max_ms = 1.5 * cell.mean_ms;
    exit.cells.push_back(cell);
  }
  Fit(exit);
  return exit;
}

void AddModel(Chance& chance, World& world) {
  ProfiledModel profiled;
  profiled.name = "m" + std::to_string(world.profile.models.size());
  profiled.max_batch = chance.Whole(1, 12);
  const int exits = chance.Whole(1, 3);
  for (int e = 1; e <= exits; ++e) {
    profiled.exits.push_back(RandomExit(chance, e, profiled.max_batch));
  }
  ScenarioModel model;
  model.name = model.profile_as = profiled.name;
  model.ratio = chance.Whole(1, 5);
  // From a little more than one request ever takes to ten times that.
  const double alone = profiled.exits.back().cells[0].mean_ms;
  model.slo_ms = 0.2 + alone * (1.5 + 0.1 * chance.Whole(0, 90));
  world.profile.models.push_back(profiled);
  world.scenario.models.push_back(model);
}

// Batches that share lanes, models of several priorities, and figures of what they use. From a
// stream of its own, so that the rest of a seed's world stays what it was.
void AddSharing(std::uint64_t seed, World& world) {
  SeededChance chance(seed, "soak/sharing");
  for (ScenarioModel& model : world.scenario.models) model.priority = chance.Whole(1, 3);
  if (chance.OneIn(2)) return;
  Scenario& scenario = world.scenario;
  scenario.slots = chance.Whole(1, 5);
  for (std::size_t r = 0; r < kResources; ++r) {
    scenario.capacity.push_back(0.2 * chance.Whole(1, 10));
  }
  scenario.crosstalk = chance.OneIn(3) ? 0 : 0.1;
  scenario.tail = 0.25 * chance.Whole(0, 4);
  scenario.preemption_ms = chance.OneIn(2) ? 0 : 0.2;
  scenario.drift = chance.OneIn(2) ? 0 : 0.5;
  for (ProfiledModel& model : world.profile.models) {
    if (chance.OneIn(4)) continue;  // a model of which nothing is known
    model.resources_source = "made up by a soak";
    for (ProfiledExit& exit : model.exits) {
      for (ProfileCell& cell : exit.cells) {
        cell.transfer_ms = 0.1 * chance.Whole(0, 5) * cell.min_ms;
        for (double& share : cell.throughput) share = 0.1 * chance.Whole(0, 10);
      }
    }
  }
}

// Lanes that differ from the profile and so from each other; likewise from a stream of its own.
void AddLaneKinds(std::uint64_t seed, World& world) {
  SeededChance chance(seed, "soak/lane kinds");
  Scenario& scenario = world.scenario;
  if (!scenario.capacity.empty() || chance.OneIn(2)) return;
  scenario.lane_kinds = {{.name = "other",
                          .count = chance.Whole(0, scenario.lanes - 1),
                          .speed = 0.5 * chance.Whole(1, 6)}};
}

// Models that are on some lanes only, and lanes that die and come back; each model keeps a lane.
void AddPlacement(std::uint64_t seed, World& world) {
  SeededChance chance(seed, "soak/placement");
  Scenario& scenario = world.scenario;
  const bool stays = scenario.scale_interval_s == 0;
  if (stays && chance.OneIn(2)) {
    for (int i = chance.Whole(1, 5); i > 0; --i) {
      const double at_s = 0.01 * chance.Whole(0, 200);
      const double back_s = chance.OneIn(5) ? 0 : at_s + 0.01 * chance.Whole(1, 60);
      scenario.lane_faults.push_back({chance.Whole(0, scenario.lanes - 1), at_s, back_s});
    }
  }
  if (!scenario.capacity.empty() || scenario.lanes < 2 || chance.OneIn(2)) return;
  scenario.lane_kinds.clear();
  const int kinds = chance.Whole(1, scenario.lanes - 1);
  for (int k = 0; k < kinds; ++k) {
    LaneKind kind{.name = "kind" + std::to_string(k), .speed = 0.5 * chance.Whole(1, 4)};
    for (const ScenarioModel& model : scenario.models) {
      if (chance.OneIn(2)) kind.models.push_back(model.name);
    }
    scenario.lane_kinds.push_back(std::move(kind));
  }
}

void AddCallers(std::uint64_t seed, World& world) {
  SeededChance chance(seed, "soak/callers");
  if (!chance.OneIn(4)) return;
  Scenario& scenario = world.scenario;
  scenario.process = ArrivalProcess::kClosed;
  scenario.callers = chance.Whole(1, 40);
  scenario.think_ms = chance.OneIn(2) ? 0 : chance.Whole(1, 50);
  scenario.retry_ms = chance.OneIn(2) ? 1 : 100;
}

World RandomWorld(std::uint64_t seed) {
  SeededChance chance(seed, "soak/scenario");
  World world;
  world.profile.provenance = "made up by a soak";
  world.profile.launch_overhead_ms = chance.OneIn(2) ? 0.02 : 0;
  world.profile.finish_overhead_ms = chance.OneIn(2) ? 0.03 : 0;
  const int models = chance.Whole(1, 6);
  for (int i = 0; i < models; ++i) AddModel(chance, world);
  Scenario& scenario = world.scenario;
  scenario.name = "soak";
  scenario.seed = seed;
  scenario.duration_s = 2;
  scenario.warmup_s = chance.OneIn(2) ? 0.3 : 0;
  scenario.expiry = std::array{"never", "passed", "unmeetable"}[chance.Below(3)];
  scenario.queue_capacity = chance.OneIn(3) ? chance.Whole(1, 20) : 4096;
  scenario.percentile = std::array{0, 50, 95, 100}[chance.Below(4)];
  scenario.jitter_ms = chance.OneIn(3) ? 0.1 : 0;
  scenario.decision_cost_us = chance.OneIn(3) ? 20 : 0;
  scenario.candidate_cost_us = chance.OneIn(3) ? 1 : 0;
  scenario.lanes = chance.Whole(1, 8);
  scenario.slots = chance.Whole(1, 2);
  scenario.process = std::array{ArrivalProcess::kPoisson, ArrivalProcess::kGamma,
                                ArrivalProcess::kUniform}[chance.Below(3)];
  scenario.cv = 0.5 * chance.Whole(1, 6);
  scenario.popularity =
      std::array{Popularity::kEqual, Popularity::kRatio, Popularity::kZipf}[chance.Below(3)];
  // From nearly idle to several times what the lanes can do.
  scenario.rate_rps = scenario.lanes * chance.Whole(5, 600);
  if (chance.OneIn(4)) {
    scenario.scale_interval_s = 0.2;
    scenario.scale_window_s = 0.4;
    scenario.scale_start_delay_s = 0.1 * chance.Whole(0, 5);
    scenario.scale_initial = chance.Whole(1, scenario.lanes);
  }
  AddCallers(seed, world);
  AddSharing(seed, world);
  AddLaneKinds(seed, world);
  AddPlacement(seed, world);
  return world;
}

// Every decision of a run, and that no lane ever has more batches than slots.
class Watch final : public Journal {
 public:
  Watch(int slots, std::vector<LaneSpec> lanes) : slots_(slots), lanes_(std::move(lanes)) {}
  void Append(const JournalRecord& record) noexcept override {
    records_.push_back(record);
    if (record.kind == JournalRecord::Kind::kDispatch) {
      over_ |= ++running_[record.lane] > slots_;
      misplaced_ |= !lanes_[record.lane].serves.contains(ModelId{record.model});
    } else if (record.kind == JournalRecord::Kind::kFinish) {
      --running_[record.lane];
    }
  }
  bool over() const { return over_; }
  bool misplaced() const { return misplaced_; }
  const std::vector<JournalRecord>& records() const { return records_; }

 private:
  const int slots_;
  const std::vector<LaneSpec> lanes_;
  bool over_ = false;
  bool misplaced_ = false;
  std::map<std::uint32_t, int> running_;
  std::vector<JournalRecord> records_;
};

struct Played {
  std::vector<JournalRecord> journal;
  std::vector<RequestRecord> requests;
};

void CheckRequests(const World& world, const SimulationResult& result) {
  for (const RequestRecord& record : result.records) {
    ASSERT_LT(record.model, world.scenario.models.size());
    EXPECT_GE(record.ended, record.arrival);
    EXPECT_EQ(record.deadline - record.arrival,
              FromMillis(world.scenario.models[record.model].slo_ms));
    EXPECT_EQ(record.outcome == Outcome::kMet, record.batch > 0 && record.ended <= record.deadline);
    EXPECT_EQ(record.outcome == Outcome::kMet || record.outcome == Outcome::kLate,
              record.batch > 0);
    EXPECT_TRUE(record.batch == 0 || record.started >= record.arrival);
  }
}

void CheckLanes(const World& world, const SimulationResult& result, bool preempts) {
  std::int64_t ran = 0;
  for (const RequestRecord& record : result.records) ran += record.batch > 0 ? 1 : 0;
  std::int64_t batches = 0;
  ASSERT_EQ(result.lanes.size(), static_cast<std::size_t>(world.scenario.lanes));
  for (const LaneTotals& lane : result.lanes) {
    EXPECT_LE(lane.busy, world.scenario.slots * (result.last - kStart));
    batches += lane.batches;
  }
  // A batch that was stopped may run again, though not without end.
  EXPECT_LE(batches, preempts ? 100 * ran : ran);
  EXPECT_EQ(batches > 0, ran > 0);
}

Played Play(const World& world, const std::string& text) {
  const auto policy = MakePolicy(text);
  EXPECT_TRUE(policy) << policy.error().message;
  Scenario scenario = world.scenario;
  scenario.policy = text;
  Watch watch(scenario.slots, MakeLanes(scenario));
  SimulationOptions options;
  options.journal = &watch;
  const auto result = Simulate(scenario, world.profile, **policy, options);
  EXPECT_TRUE(result) << result.error().message;
  if (!result) return {};
  EXPECT_FALSE(watch.over()) << "a lane over its slots";
  EXPECT_FALSE(watch.misplaced()) << "a model on a lane that is not for it";
  CheckRequests(world, *result);
  CheckLanes(world, *result, text.starts_with("shepherd") || !scenario.lane_faults.empty());
  const RunReport report = MakeReport(scenario, world.profile, *result);
  std::int64_t counted = 0;
  for (const auto& model : report.models) counted += model.figures.requests;
  EXPECT_EQ(counted, report.all.requests);
  EXPECT_LE(counted, static_cast<std::int64_t>(result->records.size()));
  return {watch.records(), result->records};
}

bool Same(const RequestRecord& a, const RequestRecord& b) {
  return a.arrival == b.arrival && a.ended == b.ended && a.model == b.model && a.exit == b.exit &&
         a.batch == b.batch && a.outcome == b.outcome && a.started == b.started;
}

// Every policy sees the same arrivals, each answered once; but callers that wait for their answers
// call again when the policy has answered.
void CheckArrivals(const World& world, const Played& one) {
  if (world.scenario.process == ArrivalProcess::kClosed) return;
  const Played other = Play(world, "fifo");
  ASSERT_EQ(one.requests.size(), other.requests.size()) << "a request is lost or answered twice";
  std::map<std::pair<TimePoint, std::uint32_t>, int> arrivals;
  for (const RequestRecord& record : one.requests) ++arrivals[{record.arrival, record.model}];
  for (const RequestRecord& record : other.requests) --arrivals[{record.arrival, record.model}];
  for (const auto& [arrival, count] : arrivals) ASSERT_EQ(count, 0);
}

TEST(SimulationSoak, AddsUpInEveryScenarioUnderEveryPolicy) {
  const Seeds seeds = SeedsOf(60);
  std::size_t requests = 0;
  for (std::uint64_t i = 0; seeds.More(i) && !HasFailure(); ++i) {
    const std::uint64_t seed = seeds.first + i;
    World world = RandomWorld(seed);
    SeededChance chance(seed, "soak/scenario policy");
    const std::string text = RandomPolicyText(chance);
    const std::string twin = PlainTwin(text);
    // Who plans refuses them, unless models are pinned to them.
    const bool pinned = std::ranges::any_of(
        world.scenario.lane_kinds, [](const LaneKind& kind) { return !kind.models.empty(); });
    if (!pinned && !(*MakePolicy(text))->traits().planner.empty())
      world.scenario.lane_kinds.clear();
    // Only the twin with an index counts the candidates that deciding is charged for.
    if (!twin.empty()) world.scenario.candidate_cost_us = 0;
    SCOPED_TRACE(Again(seed) + ", policy " + text);
    const Played played = Play(world, text);
    const Played again = Play(world, text);
    EXPECT_TRUE(played.journal == again.journal) << "not deterministic";
    EXPECT_TRUE(std::equal(played.requests.begin(), played.requests.end(), again.requests.begin(),
                           again.requests.end(), Same));
    CheckArrivals(world, played);
    if (!twin.empty()) {
      EXPECT_TRUE(played.journal == Play(world, twin).journal) << "the twin decides otherwise";
    }
    requests += played.requests.size();
  }
  EXPECT_GT(requests, 0u);
}

// Devices that may be split, and who does it anew every second or two, or as soon as deadlines are
// missed; new lanes take any time up to three seconds.
void AddPlans(std::uint64_t seed, World& world) {
  SeededChance chance(seed, "soak/plans");
  Scenario& scenario = world.scenario;
  scenario.lane_kinds.clear();
  scenario.lane_faults.clear();
  scenario.slots = 1;
  scenario.scale_interval_s = 0;
  scenario.duration_s = 10;
  scenario.rate_rps = scenario.lanes * chance.Whole(5, 60);
  scenario.plan_shares = {20, 40, 50, 60, 80};
  scenario.plan_exponent = 0.5 * chance.Whole(0, 3);
  scenario.plan_planner = PlannerNames()[chance.Below(PlannerNames().size())];
  if (chance.OneIn(2)) scenario.plan_interference = {0, 0, 0.1, 0.1, 1};
  scenario.plan_period_s = chance.Whole(1, 2);
  scenario.plan_weight = 1;
  scenario.plan_headroom = 0.1 * chance.Whole(0, 4);
  scenario.plan_make_least_s = 0;
  scenario.plan_make_most_s = 0.1 * chance.Whole(0, 30);
  for (std::size_t m = 0; m < world.profile.models.size(); ++m) {
    ProfiledModel& model = world.profile.models[m];
    model.resources_source = "made up by a soak";
    const double alone = model.exits.back().cells[0].max_ms;
    scenario.models[m].slo_ms = std::max(scenario.models[m].slo_ms, 4 * alone + 1);
  }
}

TEST(SimulationSoak, LosesNoRequestWhileLayoutsChange) {
  const Seeds seeds = SeedsOf(40);
  std::uint64_t changed = 0;
  std::string refused;  // seeds
  std::string kept;     // seeds whose first layout stayed
  std::uint64_t lives = 0;
  for (; seeds.More(lives) && !HasFailure(); ++lives) {
    const std::uint64_t seed = seeds.first + lives;
    SCOPED_TRACE(Again(seed));
    World world = RandomWorld(seed);
    AddPlans(seed, world);
    const char* policy = seed % 4 == 0 ? "nexus" : "planned";  // whoever reads plans
    const auto result = Simulate(world.scenario, world.profile, **MakePolicy(policy));
    if (!result) {
      ASSERT_EQ(result.error().code, ErrorCode::kResourceExhausted) << result.error().message;
      refused += " " + std::to_string(seed);
      continue;
    }
    CheckRequests(world, *result);
    // The first layout counts as one.
    if (!result->layout.empty() && result->layout.back().plans > 1) {
      ++changed;
    } else {
      kept += " " + std::to_string(seed);
    }
    world.scenario.plan_planner = "none";
    CheckArrivals(world, {.journal = {}, .requests = result->records});
  }
  // Two of five do; a seed by itself need not.
  if (lives >= 40) {
    EXPECT_GE(5 * changed, lives) << "too few layouts change; refused:" << refused
                                  << "; first layout kept:" << kept;
  }
}

}  // namespace
}  // namespace tactus
