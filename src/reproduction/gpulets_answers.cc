#include "reproduction/gpulets_answers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "planners/gpulet/duty_cycle.h"
#include "planners/gpulet/elastic.h"
#include "reproduction/gpulets_runs.h"

namespace tactus {
namespace {

constexpr int kLoads = 1024;

// The rates of load 1 to 1,023, by model.
void SetLoad(int load, PlanInput& input) {
  for (PlannedModel& model : input.models) {
    model.rate_rps = 200 * (load % 4);
    load /= 4;
  }
}

Expected<std::vector<bool>> WhichSchedulable(const SetScenario& scenario, const std::string& name,
                                             const PlanInput& problem) {
  PlanInput input = problem;
  PlanInput most = problem;
  SetLoad(kLoads - 1, most);
  const auto planner = NamedPlanner::Make(name, scenario, most);
  if (!planner) return std::unexpected(planner.error());
  std::vector<bool> schedulable(kLoads);
  for (int load = 1; load < kLoads; ++load) {
    SetLoad(load, input);
    const auto answer = planner->Schedules(input);
    if (!answer) return std::unexpected(answer.error());
    schedulable[load] = *answer;
  }
  return schedulable;
}

// Of the sides that `split` holds out, for the model fitted to the others; ascending.
Expected<std::vector<double>> ErrorsOfFit(
    const SetScenario& scenario, SplitSamples (*split)(const std::vector<InterferenceSample>&)) {
  const auto samples = SimulatedPairs(scenario);
  if (!samples) return std::unexpected(samples.error());
  const SplitSamples parts = split(*samples);
  const auto model = FitInterference(parts.fitted);
  if (!model) return std::unexpected(model.error());
  return RelativeErrors(*model, parts.held_out);
}

Expected<FigureRow> CountSchedulable(const SetScenario& scenario, const std::string& planner) {
  const auto problem = LoadQuestion(scenario);
  if (!problem) return std::unexpected(problem.error());
  const PlanInput& input = problem->input;
  const auto schedulable = WhichSchedulable(scenario, planner, input);
  if (!schedulable) return std::unexpected(schedulable.error());
  FigureRow row = {{"schedulable", std::ranges::count(*schedulable, true)}};
  if (planner == kPublished) {
    const auto ideal = WhichSchedulable(scenario, kIdealInt, input);
    if (!ideal) return std::unexpected(ideal.error());
    double& beyond = row["beyond_ideal"];
    for (int load = 1; load < kLoads; ++load) {
      if ((*schedulable)[load] && !(*ideal)[load]) ++beyond;
    }
  }
  if (!planner.starts_with(kIdeal)) return row;
  const bool interference = planner == kIdealInt;
  std::vector<bool> beyond(kLoads);
  for (const std::string other : kPlannerNames) {
    const bool sbp = other == kSbp;  // whole devices: nobody interferes
    if (other.starts_with(kIdeal) || (!sbp && other.ends_with("+int") != interference)) continue;
    const auto found = WhichSchedulable(scenario, other, input);
    if (!found) return std::unexpected(found.error());
    for (int load = 1; load < kLoads; ++load) {
      if ((*found)[load] && !(*schedulable)[load]) beyond[load] = true;
    }
  }
  row["beyond_ideal"] = static_cast<double>(std::ranges::count(beyond, true));
  return row;
}

Expected<FigureRow> OnShare(const SetScenario& scenario, const std::string& model, int batch,
                            double percent) {
  const auto experiment = LoadSplit(scenario);
  if (!experiment) return std::unexpected(experiment.error());
  const auto problem = MakePlanQuestion(experiment->scenario, experiment->profile);
  if (!problem) return std::unexpected(problem.error());
  const PlanInput& input = problem->input;
  const auto& models = experiment->scenario.models;
  const auto found = std::ranges::find(models, model, &ScenarioModel::name);
  const ModelId id{static_cast<ModelId::rep>(found - models.begin())};
  for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
    if (std::abs(100 * input.shares[c] - percent) > 1e-6) continue;
    return FigureRow{{"latency_ms", ToMillis(input.Latency(id, batch, LaneClass{c}))},
                     {"rate_rps", MostRate(input, LaneClass{c}, id)},
                     {"is_knee", LaneClass{c} == Knee(input, id) ? 1 : 0}};
  }
  return Internal("a share that is not profiled");
}

Expected<std::vector<double>> SimulatedOverheads(const SetScenario& scenario) {
  const auto samples = SimulatedPairs(scenario);
  if (!samples) return std::unexpected(samples.error());
  std::vector<double> overheads;
  for (const InterferenceSample& sample : *samples) overheads.push_back(sample.factor - 1);
  std::ranges::sort(overheads);
  return overheads;
}

Expected<std::vector<double>> ErrorsOfNone(const SetScenario& scenario) {
  const auto samples = SimulatedPairs(scenario);
  if (!samples) return std::unexpected(samples.error());
  return RelativeErrors({}, SplitPairs(*samples).held_out);
}

// At x percent of what is spread so.
Expected<FigureRow> Spread(const std::string& of, const SetScenario& scenario, double percent) {
  const auto values = of == "overheads"         ? SimulatedOverheads(scenario)
                      : of == "errors"          ? ErrorsOfFit(scenario, SplitPairs)
                      : of == "errors-of-sides" ? ErrorsOfFit(scenario, SplitSides)
                                                : ErrorsOfNone(scenario);
  if (!values) return std::unexpected(values.error());
  return FigureRow{{"percent", percent},
                   {of == "overheads" ? "overhead_percent" : "error_percent",
                    100 * QuantileOf(*values, percent / 100)}};
}

Sharing SharingOf(const std::string& name) {
  return name == "temporal" ? Sharing::kTemporal
         : name == "20:80"  ? Sharing::k20And80
         : name == "40:60"  ? Sharing::k40And60
                            : Sharing::kUnsplit;
}

}  // namespace

Expected<FigureRow> MostSchedulable(const SetScenario& scenario, const std::string& planner,
                                    double headroom) {
  constexpr double kFirst = 0.2;  // times the scenario's rates
  constexpr double kStep = 1.01;
  constexpr int kMostSteps = 2000;  // to 87 million times: who plans for that plans for anything
  constexpr int kMargin = 30;       // steps that the ideal planner is prepared for at a time
  const auto problem = LoadQuestion(scenario);
  if (!problem) return std::unexpected(problem.error());
  const PlanInput& base = problem->input;
  const auto at = [&](int step) {
    PlanInput input = base;
    for (PlannedModel& model : input.models) {
      model.rate_rps *= (1 + headroom) * kFirst * std::pow(kStep, step);
    }
    return input;
  };
  const bool ideal = planner.starts_with(kIdeal);
  // The ideal planner is no worse than ours, so it begins there.
  int step = -1;
  if (ideal) {
    const char* const ours = planner == kIdeal ? kGpuletRetry : kGpuletRetryInt;
    const auto begin = MostSchedulable(scenario, ours, headroom);
    if (!begin) return begin;
    step = std::max(
        -1,
        static_cast<int>(std::lround(std::log(begin->at("times") / kFirst) / std::log(kStep))) - 1);
  }
  for (bool more = true; more && step < kMostSteps;) {
    const PlanInput most = at(step + kMargin);
    const auto made = NamedPlanner::Make(planner, scenario, most);
    if (!made) return std::unexpected(made.error());
    for (const int end = ideal ? step + kMargin : kMostSteps; more && step < end;) {
      const auto answer = made->Schedules(at(step + 1));
      if (!answer) return std::unexpected(answer.error());
      more = *answer;
      if (more) ++step;
    }
  }
  if (step >= kMostSteps) return Internal(planner + " plans for whatever is asked of it");
  const double times = step < 0 ? 0 : kFirst * std::pow(kStep, step);
  double rate_rps = 0;
  for (const PlannedModel& model : base.models) rate_rps += times * model.rate_rps;
  return FigureRow{{"rate_rps", rate_rps}, {"times", times}};
}

Expected<FigureRow> GpuletsAnswer(const FigurePoint& point, const ReproduceOptions& options) {
  const auto file = std::filesystem::path(options.scenarios) / (point.scenario + ".toml");
  const SetScenario scenario = {file.string(), point.settings};
  const auto with = [&](const char* key) {
    const auto said = point.with.find(key);
    return said == point.with.end() ? std::string() : said->second;
  };
  const std::string of = with("of");
  const std::string planner = with("planner");
  if (of == "loads") return CountSchedulable(scenario, planner);
  if (of == "largest") return MostSchedulable(scenario, planner);
  if (of == "run") return RunMost(scenario, planner, options);
  if (of == "pipelines") return RunMostPipelines(scenario, planner, options);
  if (of == "sharing") return RunShared(scenario, SharingOf(with("sharing")), point.x);
  if (of == "share") {
    return OnShare(scenario, with("model"), std::atoi(with("batch").c_str()), point.x);
  }
  return Spread(of, scenario, point.x);
}

}  // namespace tactus
