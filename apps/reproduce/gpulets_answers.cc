#include "reproduce/gpulets_answers.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/rng.h"
#include "experiment.h"
#include "planners/gpulet/duty_cycle.h"
#include "planners/gpulet/elastic.h"
#include "planners/gpulet/ideal.h"
#include "planners/nexus/squishy.h"
#include "sim/contention.h"
#include "sim/plan_question.h"

namespace tactus {
namespace {

constexpr double kHeldOut = 0.3;
constexpr std::uint64_t kSeed = 1;
constexpr LaneClass kHalf{2};  // of the shares in Load

// The paper's shares of a device, whatever the scenario says.
Expected<PlanQuestion> Load(const std::string& scenario, double exponent) {
  auto experiment = LoadExperiment(scenario, {});
  if (!experiment) return std::unexpected(experiment.error());
  experiment->scenario.plan_shares = {20, 40, 50, 60, 80};
  experiment->scenario.plan_exponent = exponent;
  return MakePlanQuestion(experiment->scenario, experiment->profile);
}

// A planner by its name, for many loads on the same devices.
class NamedPlanner {
 public:
  // `most` has the largest rates that will be asked for; it outlives the planner.
  static Expected<NamedPlanner> Make(const std::string& name, const std::string& scenario,
                                     const PlanInput& most) {
    NamedPlanner planner(name);
    if (name.ends_with("+int")) {
      const auto fitted = SimulatedInterference(scenario);
      if (!fitted) return std::unexpected(fitted.error());
      planner.interference_ = std::make_unique<InterferenceModel>(*fitted);
    }
    if (name == kIdeal || name == kIdealInt) {
      auto ideal = IdealPlanner::Make(most, {.interference = planner.interference_.get()});
      if (!ideal) return std::unexpected(ideal.error());
      planner.ideal_ = std::make_unique<IdealPlanner>(std::move(*ideal));
    }
    return planner;
  }

  // False: not schedulable. Plans are held to what they promise.
  Expected<bool> Schedules(const PlanInput& input) const {
    const auto plan = Solve(input);
    if (plan) {
      if (auto valid = Validate(*plan, input); !valid) {
        return Internal(name_ + ": " + valid.error().message);
      }
      return true;
    }
    if (plan.error().code == ErrorCode::kResourceExhausted) return false;
    return std::unexpected(plan.error());
  }

 private:
  explicit NamedPlanner(std::string name) : name_(std::move(name)) {}

  Expected<Plan> Solve(const PlanInput& input) const {
    if (name_ == kSbp) return PlanSquishy(input, input.whole());
    if (name_ == kSbpHalves) return PlanSquishy(input, kHalf);
    if (name_ == kGpuletRetry || name_ == kGpuletRetryInt) {
      return PlanElasticRetrying(input, {.interference = interference_.get()});
    }
    if (ideal_ != nullptr) {
      std::vector<double> rates;
      for (const PlannedModel& model : input.models) rates.push_back(model.rate_rps);
      return ideal_->Solve(rates);
    }
    return PlanElastic(input,
                       {.interference = interference_.get(), .self_tuning = name_ == kSelfTuning});
  }

  std::string name_;
  std::unique_ptr<InterferenceModel> interference_;
  std::unique_ptr<IdealPlanner> ideal_;
};

// The rates of load 1 to 1,023, by model.
constexpr int kLoads = 1024;
void SetLoad(int load, PlanInput& input) {
  for (PlannedModel& model : input.models) {
    model.rate_rps = 200 * (load % 4);
    load /= 4;
  }
}

Expected<std::vector<bool>> WhichSchedulable(const std::string& scenario, const std::string& name,
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

// What two batches, each in its lane, take longer beside each other. Compute is split, so only L2
// and DRAM are fought for. Their capacity is set so that 90 % lose just less than 18 %, as
// published (Figure 6): the profile's shares of the peak were taken under a profiler, which slows
// batches.
constexpr double kEnough = 1e9;
constexpr Contention kBesideEachOther = {.capacity = {kEnough, 0.47, 0.47, kEnough, kEnough},
                                         .crosstalk = 0.03};
constexpr double kLuck = 0.55;  // spread of its logarithm, as in scenarios/strait

void AddPair(const std::array<Throughput, 2>& use, Rng& rng,
             std::vector<InterferenceSample>& samples) {
  std::array<Contender, 2> batches;
  std::array<double, 2> slowdown{};
  for (std::size_t i = 0; i < 2; ++i) {
    batches[i] = {.use = use[i], .luck = std::exp(kLuck * rng.Normal())};
  }
  Slowdowns(kBesideEachOther, batches, slowdown);
  for (std::size_t i = 0; i < 2; ++i) {
    samples.push_back({.own = use[i], .other = use[1 - i], .factor = slowdown[i]});
  }
}

}  // namespace

Expected<FigureRow> CountSchedulable(const std::string& scenario, const std::string& planner,
                                     double exponent) {
  const auto problem = Load(scenario, exponent);
  if (!problem) return std::unexpected(problem.error());
  const PlanInput& input = problem->input;
  const auto schedulable = WhichSchedulable(scenario, planner, input);
  if (!schedulable) return std::unexpected(schedulable.error());
  FigureRow row = {{"schedulable", std::ranges::count(*schedulable, true)}};
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

Expected<FigureRow> MostSchedulable(const std::string& scenario, const std::string& planner,
                                    double exponent) {
  constexpr double kFirst = 0.2;  // times the scenario's rates
  constexpr double kStep = 1.01;
  constexpr int kMostSteps = 700;
  constexpr int kMargin = 30;  // steps that the ideal planner is prepared for at a time
  const auto problem = Load(scenario, exponent);
  if (!problem) return std::unexpected(problem.error());
  const PlanInput& base = problem->input;
  const auto at = [&](int step) {
    PlanInput input = base;
    for (PlannedModel& model : input.models) model.rate_rps *= kFirst * std::pow(kStep, step);
    return input;
  };
  const bool ideal = planner.starts_with(kIdeal);
  // The ideal planner is no worse than ours, so it begins there.
  int step = -1;
  if (ideal) {
    const char* const ours = planner == kIdeal ? kGpuletRetry : kGpuletRetryInt;
    const auto begin = MostSchedulable(scenario, ours, exponent);
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
  const double times = step < 0 ? 0 : kFirst * std::pow(kStep, step);
  double rate_rps = 0;
  for (const PlannedModel& model : base.models) rate_rps += times * model.rate_rps;
  return FigureRow{{"rate_rps", rate_rps}, {"times", times}};
}

Expected<FigureRow> OnShare(const std::string& scenario, std::size_t model, int batch,
                            double percent, double exponent) {
  const auto problem = Load(scenario, exponent);
  if (!problem) return std::unexpected(problem.error());
  const PlanInput& input = problem->input;
  const ModelId id{static_cast<ModelId::rep>(model)};
  for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
    if (std::abs(100 * input.shares[c] - percent) > 1e-6) continue;
    return FigureRow{{"latency_ms", ToMillis(input.Latency(id, batch, LaneClass{c}))},
                     {"rate_rps", MostRate(input, LaneClass{c}, id)},
                     {"is_knee", LaneClass{c} == Knee(input, id) ? 1 : 0}};
  }
  return Internal("a share that is not profiled");
}

Expected<std::vector<InterferenceSample>> SimulatedPairs(const std::string& scenario) {
  const auto problem = Load(scenario, 1);
  if (!problem) return std::unexpected(problem.error());
  const PlanInput& input = problem->input;
  const ProfileTable& profile = *input.profile;
  Rng rng = Rng::Stream(kSeed, "gpulets/pairs");
  const auto use = [&](ModelId::rep m, int batch, LaneClass c) {
    return profile.Use(ModelId{m}, ExitId{0}, batch, c).throughput;
  };
  std::vector<InterferenceSample> samples;
  for (ModelId::rep a = 0; a < input.models.size(); ++a) {
    for (ModelId::rep b = a + 1; b < input.models.size(); ++b) {
      for (const int of_a : {2, 4, 8, 16, 32}) {
        for (const int of_b : {2, 4, 8, 16, 32}) {
          for (LaneClass::rep c = 0; c + 1 < input.shares.size(); ++c) {
            const LaneClass rest{static_cast<LaneClass::rep>(input.shares.size() - 2 - c)};
            AddPair({use(a, of_a, LaneClass{c}), use(b, of_b, rest)}, rng, samples);
          }
        }
      }
    }
  }
  return samples;
}

Expected<InterferenceModel> SimulatedInterference(const std::string& scenario) {
  const auto samples = SimulatedPairs(scenario);
  if (!samples) return std::unexpected(samples.error());
  return FitInterference(Split(*samples, kHeldOut, kSeed).fitted);
}

Expected<std::vector<double>> SimulatedOverheads(const std::string& scenario) {
  const auto samples = SimulatedPairs(scenario);
  if (!samples) return std::unexpected(samples.error());
  std::vector<double> overheads;
  for (const InterferenceSample& sample : *samples) overheads.push_back(sample.factor - 1);
  std::ranges::sort(overheads);
  return overheads;
}

Expected<std::vector<double>> SimulatedErrors(const std::string& scenario) {
  const auto model = SimulatedInterference(scenario);
  if (!model) return std::unexpected(model.error());
  return RelativeErrors(*model, Split(*SimulatedPairs(scenario), kHeldOut, kSeed).held_out);
}

Expected<std::vector<double>> SimulatedErrorsOfNone(const std::string& scenario) {
  const auto samples = SimulatedPairs(scenario);
  if (!samples) return std::unexpected(samples.error());
  return RelativeErrors({}, Split(*samples, kHeldOut, kSeed).held_out);
}

}  // namespace tactus
