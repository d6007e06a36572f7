#include "reproduction/gpulets_runs.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policies/registry.h"
#include "reproduction/gpulets_answers.h"
#include "reproduction/gpulets_planners.h"
#include "sim/simulation.h"
#include "workload/pipelines.h"

namespace tactus {
namespace {

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
// also those that would come with pipeline requests, as the plan is held to what it was made for.
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

// The same rates as requests to the one pipeline of the scenario, each of which is all of them.
Expected<RunReport> RunPipelines(Experiment experiment, const PlanInput& input,
                                 const std::shared_ptr<const Plan>& plan, std::uint64_t seed) {
  experiment.scenario.seed = seed;
  experiment.scenario.rate_rps = TotalRate(input);
  const auto policy = MakePolicy("planned");
  if (!policy) return std::unexpected(policy.error());
  const auto result = Simulate(experiment.scenario, experiment.profile, **policy, {.plan = plan});
  if (!result) return std::unexpected(result.error());
  return MakeReport(experiment.scenario, experiment.profile, *result);
}

// The violations among its requests.
Expected<double> BadPercent(const Experiment& experiment, const PlanInput& input,
                            const std::shared_ptr<const Plan>& plan, std::uint64_t seed) {
  const auto report = Run(experiment, input, plan, seed);
  if (!report) return std::unexpected(report.error());
  return 100 * report->all.bad_ratio;
}

// Of its pipeline requests.
Expected<double> BadPipelinesPercent(const Experiment& experiment, const PlanInput& input,
                                     const std::shared_ptr<const Plan>& plan, std::uint64_t seed) {
  const auto report = RunPipelines(experiment, input, plan, seed);
  if (!report) return std::unexpected(report.error());
  return 100 * report->pipelines.front().bad_ratio;
}

// The largest rate of a mix that a planner plans for, and the plan.
struct Most {
  Experiment experiment;
  PlanQuestion question;
  PlanInput load;  // empty plan: nothing is planned for, so nothing runs
  std::shared_ptr<const Plan> plan;
};

Expected<Most> PlanForMost(const SetScenario& scenario, const std::string& name) {
  const auto rate = MostSchedulable(scenario, name, kHeadroom);
  if (!rate) return std::unexpected(rate.error());
  auto experiment = LoadSplit(scenario);
  if (!experiment) return std::unexpected(experiment.error());
  auto question = LoadQuestion(scenario);
  if (!question) return std::unexpected(question.error());
  Most most = {.experiment = std::move(*experiment), .question = std::move(*question)};
  most.load = Raised(most.question.input, rate->at("times"));
  if (rate->at("times") == 0) return most;
  const PlanInput asked = Raised(most.load, 1 + kHeadroom);
  const auto planner = NamedPlanner::Make(name, scenario, asked);
  if (!planner) return std::unexpected(planner.error());
  auto plan = planner->Solve(asked);
  if (!plan) return std::unexpected(plan.error());
  most.plan = std::make_shared<const Plan>(std::move(*plan));
  return most;
}

// Of one run for each seed, ascending; `bad` is BadPercent or BadPipelinesPercent.
template <typename Bad>
Expected<std::vector<double>> BadPercents(const Most& most, bool beside, int seeds, Bad bad) {
  Experiment experiment = most.experiment;
  if (!beside) experiment.scenario.capacity.clear();
  std::vector<double> percents;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto percent = bad(experiment, most.load, most.plan, static_cast<std::uint64_t>(seed));
    if (!percent) return std::unexpected(percent.error());
    percents.push_back(*percent);
  }
  std::ranges::sort(percents);
  return percents;
}

// bad_percent, worst_percent and alone_percent.
template <typename Bad>
Expected<FigureRow> BadRow(const Most& most, int seeds, Bad bad) {
  const auto beside = BadPercents(most, true, seeds, bad);
  if (!beside) return std::unexpected(beside.error());
  const auto alone = BadPercents(most, false, seeds, bad);
  if (!alone) return std::unexpected(alone.error());
  return FigureRow{{"bad_percent", (*beside)[beside->size() / 2]},
                   {"worst_percent", beside->back()},
                   {"alone_percent", (*alone)[alone->size() / 2]}};
}

// Of L1 and FMA, the most that a batch of VGG-16 uses: UtilizationBase::kLargestBatch takes that
// for the whole device.
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

Expected<FigureRow> RunMost(const SetScenario& scenario, const std::string& name,
                            const ReproduceOptions& options) {
  const auto most = PlanForMost(scenario, name);
  if (!most) return std::unexpected(most.error());
  if (most->plan == nullptr) return FigureRow{{"rate_rps", 0}};
  auto row = BadRow(*most, options.seeds, BadPercent);
  if (!row) return row;
  (*row)["rate_rps"] = TotalRate(most->load);
  (*row)["headroom_percent"] = 100 * kHeadroom;
  return row;
}

Expected<FigureRow> RunMostPipelines(const SetScenario& scenario, const std::string& name,
                                     const ReproduceOptions& options) {
  const auto most = PlanForMost(scenario, name);
  if (!most) return std::unexpected(most.error());
  if (most->plan == nullptr) return FigureRow{{"pipeline_rps", 0}};
  auto row = BadRow(*most, options.seeds, BadPipelinesPercent);
  if (!row) return row;
  (*row)["pipeline_rps"] =
      TotalRate(most->load) / RunsOfARequest(most->experiment.scenario.pipelines.front());
  const auto by_itself = BadPercents(*most, true, options.seeds, BadPercent);
  if (!by_itself) return std::unexpected(by_itself.error());
  (*row)["requests_percent"] = (*by_itself)[by_itself->size() / 2];
  return row;
}

Expected<FigureRow> RunShared(const SetScenario& scenario, Sharing sharing, double rate_rps) {
  auto experiment = LoadSplit(scenario);
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
      run.capacity[static_cast<std::size_t>(compute)] =
          run.plan_utilization_base == "device" ? 1 : kAllCompute;
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
