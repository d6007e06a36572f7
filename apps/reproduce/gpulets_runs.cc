#include "reproduce/gpulets_runs.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "policies/registry.h"
#include "reproduce/gpulets_answers.h"
#include "reproduce/gpulets_planners.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

constexpr double kExponent = 1;

PlanInput Raised(PlanInput input, double times) {
  for (PlannedModel& model : input.models) model.rate_rps *= times;
  return input;
}

double TotalRate(const PlanInput& input) {
  double rate_rps = 0;
  for (const PlannedModel& model : input.models) rate_rps += model.rate_rps;
  return rate_rps;
}

// When the rates of `input` arrive, each model's requests by themselves and within its own SLO:
// also those that would come with frames, as the plan is held to what it was made for.
Expected<RunReport> Run(Experiment experiment, const PlanInput& input,
                        const std::shared_ptr<const Plan>& plan, std::uint64_t seed) {
  Scenario& scenario = experiment.scenario;
  scenario.seed = seed;
  scenario.rate_rps = 0;
  scenario.pipelines.clear();
  for (std::size_t m = 0; m < input.models.size(); ++m) {
    scenario.models[m].rate_rps = input.models[m].rate_rps;
    scenario.models[m].slo_ms = ToMillis(input.models[m].slo);
  }
  const auto policy = MakePolicy("planned");
  if (!policy) return std::unexpected(policy.error());
  const auto result = Simulate(scenario, experiment.profile, **policy, {.plan = plan});
  if (!result) return std::unexpected(result.error());
  return MakeReport(scenario, experiment.profile, *result);
}

// Of its requests, those that are late or dropped.
Expected<double> BadPercent(const Experiment& experiment, const PlanInput& input,
                            const std::shared_ptr<const Plan>& plan, std::uint64_t seed) {
  const auto report = Run(experiment, input, plan, seed);
  if (!report) return std::unexpected(report.error());
  return 100 * report->all.bad_ratio;
}

// Of one run for each seed, ascending.
Expected<std::vector<double>> BadPercents(const Experiment& experiment, const PlanInput& input,
                                          const std::shared_ptr<const Plan>& plan, int seeds) {
  std::vector<double> bad;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto percent = BadPercent(experiment, input, plan, static_cast<std::uint64_t>(seed));
    if (!percent) return std::unexpected(percent.error());
    bad.push_back(*percent);
  }
  std::ranges::sort(bad);
  return bad;
}

// Of L1 and FMA, the most that a batch of VGG-16 uses: the profile's model of shares takes that for
// the whole device.
constexpr double kAllCompute = 0.603;

// One lane for both models, or one for each; LeNet is the first.
Plan SharedBy(Sharing sharing, const PlanInput& input, int lenet, int vgg) {
  const PlanEntry entries[] = {{.model = ModelId{0}, .batch = lenet},
                               {.model = ModelId{1}, .batch = vgg}};
  const auto lane = [&](LaneClass c) {
    return LanePlan{.spec = {.lane_class = c, .fraction = input.share(c)}, .cycle = Millis(1)};
  };
  // By the shares in LoadSplit.
  std::array<LaneClass, 2> parts = {input.whole(), input.whole()};
  if (sharing == Sharing::k20And80) parts = {LaneClass{0}, LaneClass{4}};
  if (sharing == Sharing::k40And60) parts = {LaneClass{1}, LaneClass{3}};
  Plan plan{.epoch = 1, .lanes = {lane(parts[0])}};
  plan.lanes[0].entries.push_back(entries[0]);
  if (sharing != Sharing::kTemporal) plan.lanes.push_back(lane(parts[1]));
  plan.lanes.back().entries.push_back(entries[1]);
  return plan;
}

}  // namespace

Expected<FigureRow> RunMost(const std::string& scenario, const std::string& name, double headroom,
                            const ReproduceOptions& options) {
  const auto most = MostSchedulable(scenario, name, kExponent, headroom);
  if (!most) return most;
  const auto experiment = LoadSplit(scenario, kExponent);
  const auto problem = LoadQuestion(scenario, kExponent);
  if (!problem) return std::unexpected(problem.error());
  const double times = most->at("times");
  if (times == 0) return FigureRow{{"rate_rps", 0}};  // nothing is planned for, so nothing runs
  const PlanInput load = Raised(problem->input, times);
  const PlanInput asked = Raised(load, 1 + headroom);
  const auto planner = NamedPlanner::Make(name, scenario, asked);
  if (!planner) return std::unexpected(planner.error());
  auto solved = planner->Solve(asked);
  if (!solved) return std::unexpected(solved.error());
  const auto plan = std::make_shared<const Plan>(std::move(*solved));
  Experiment apart = *experiment;
  apart.scenario.capacity.clear();
  const auto beside = BadPercents(*experiment, load, plan, options.seeds);
  if (!beside) return std::unexpected(beside.error());
  const auto alone = BadPercents(apart, load, plan, options.seeds);
  if (!alone) return std::unexpected(alone.error());
  return FigureRow{{"rate_rps", TotalRate(load)},
                   {"headroom_percent", 100 * headroom},
                   {"bad_percent", (*beside)[beside->size() / 2]},
                   {"worst_percent", beside->back()},
                   {"alone_percent", (*alone)[alone->size() / 2]}};
}

Expected<std::map<double, FigureRow>> RunLoads(const std::string& scenario,
                                               const std::string& name) {
  constexpr int kLoads = 1024;
  auto experiment = LoadSplit(scenario, kExponent);
  const auto problem = LoadQuestion(scenario, kExponent);
  if (!problem) return std::unexpected(problem.error());
  experiment->scenario.duration_s = 30;
  PlanInput load = problem->input;
  SetLoad(kLoads - 1, load);
  const PlanInput most = Raised(load, 1 + kHeadroom);
  const auto planner = NamedPlanner::Make(name, scenario, most);
  if (!planner) return std::unexpected(planner.error());
  std::map<double, FigureRow> rows;
  for (int number = 1; number < kLoads; ++number) {
    SetLoad(number, load);
    auto plan = planner->Solve(Raised(load, 1 + kHeadroom));
    if (!plan && plan.error().code == ErrorCode::kResourceExhausted) continue;
    if (!plan) return std::unexpected(plan.error());
    const auto bad = BadPercent(*experiment, load, std::make_shared<const Plan>(std::move(*plan)),
                                static_cast<std::uint64_t>(number));
    if (!bad) return std::unexpected(bad.error());
    rows[number] = {{"rate_rps", TotalRate(load)}, {"bad_percent", *bad}};
  }
  return rows;
}

Expected<FigureRow> RunShared(const std::string& scenario, Sharing sharing, double rate_rps) {
  auto experiment = LoadSplit(scenario, kExponent);
  if (!experiment) return std::unexpected(experiment.error());
  Scenario& run = experiment->scenario;
  run.lanes = 1;
  run.duration_s = 20;
  run.warmup_s = 2;
  std::erase_if(run.models, [](const ScenarioModel& model) {
    return model.name != "LeNet" && model.name != "VGG-16";
  });
  if (sharing == Sharing::kUnsplit) {
    for (const Resource compute : {Resource::kL1, Resource::kFma}) {
      run.capacity[static_cast<std::size_t>(compute)] = kAllCompute;
    }
  }
  auto question = MakePlanQuestion(run, experiment->profile);
  if (!question) return std::unexpected(question.error());
  PlanInput& input = question->input;
  for (PlannedModel& model : input.models) model.rate_rps = rate_rps;
  FigureRow best;
  for (const int lenet : {1, 2, 4, 8, 16, 32}) {
    for (const int vgg : {1, 2, 4, 8, 16, 32}) {
      const auto plan = std::make_shared<const Plan>(SharedBy(sharing, input, lenet, vgg));
      const auto report = Run(*experiment, input, plan, 1);
      if (!report) return std::unexpected(report.error());
      const double bad = 100 * report->all.bad_ratio;
      if (!best.empty() && bad >= best.at("bad_percent")) continue;
      best = {{"bad_percent", bad},
              {"lenet_bad_percent", 100 * report->models[0].figures.bad_ratio},
              {"vgg_bad_percent", 100 * report->models[1].figures.bad_ratio},
              {"lenet_batch", lenet},
              {"vgg_batch", vgg}};
    }
  }
  return best;
}

}  // namespace tactus
