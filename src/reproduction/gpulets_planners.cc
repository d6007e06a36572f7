#include "reproduction/gpulets_planners.h"

#include <algorithm>
#include <filesystem>

#include "base/rng.h"
#include "planners/gpulet/elastic.h"
#include "planners/nexus/squishy.h"
#include "sim/devices/contention.h"
#include "sim/devices/interference_pairs.h"

namespace tactus {
namespace {

constexpr double kHeldOut = 0.3;
constexpr std::uint64_t kSeed = 1;
constexpr LaneClass kHalf{2};  // of the shares in LoadSplit

// One pair of batches on the scenario's device, each in its lane: a sample for each.
void AddPair(const Scenario& scenario, const std::array<Throughput, 2>& use, Rng& rng,
             std::vector<InterferenceSample>& samples) {
  Contention device{.crosstalk = scenario.crosstalk};
  std::ranges::copy(scenario.capacity, device.capacity.begin());
  std::array<Contender, 2> batches;
  std::array<double, 2> slowdown{};
  for (std::size_t i = 0; i < 2; ++i) {
    batches[i] = {.use = use[i], .luck = DrawLuck(scenario.tail, rng)};
  }
  Slowdowns(device, batches, slowdown);
  for (std::size_t i = 0; i < 2; ++i) {
    samples.push_back({.own = use[i], .other = use[1 - i], .factor = slowdown[i]});
  }
}

}  // namespace

Expected<Experiment> LoadSplit(const SetScenario& scenario) {
  auto experiment = LoadExperiment(scenario.file, scenario.settings);
  if (!experiment) return experiment;
  experiment->scenario.plan_shares = {20, 40, 50, 60, 80};
  return experiment;
}
Expected<PlanQuestion> LoadQuestion(const SetScenario& scenario) {
  const auto experiment = LoadSplit(scenario);
  if (!experiment) return std::unexpected(experiment.error());
  return MakePlanQuestion(experiment->scenario, experiment->profile);
}

Expected<std::vector<InterferenceSample>> SimulatedPairs(const SetScenario& scenario) {
  const auto all = std::filesystem::path(scenario.file).replace_filename("equal.toml");
  const auto experiment = LoadSplit({all.string(), scenario.settings});
  if (!experiment) return std::unexpected(experiment.error());
  const auto problem = MakePlanQuestion(experiment->scenario, experiment->profile);
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
            AddPair(experiment->scenario, {use(a, of_a, LaneClass{c}), use(b, of_b, rest)}, rng,
                    samples);
          }
        }
      }
    }
  }
  return samples;
}

SplitSamples SplitSides(const std::vector<InterferenceSample>& samples) {
  return Split(samples, kHeldOut, kSeed);
}
SplitSamples SplitPairs(const std::vector<InterferenceSample>& samples) {
  return SplitByPair(samples, kHeldOut, kSeed);
}

Expected<InterferenceModel> SimulatedInterference(const SetScenario& scenario) {
  const auto samples = SimulatedPairs(scenario);
  if (!samples) return std::unexpected(samples.error());
  return FitInterference(SplitSides(*samples).fitted);
}

Expected<NamedPlanner> NamedPlanner::Make(const std::string& name, const SetScenario& scenario,
                                          const PlanInput& most) {
  NamedPlanner planner(name);
  if (name.contains("+int")) {
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

Expected<Plan> NamedPlanner::Solve(const PlanInput& input) const {
  auto plan = SolveUnchecked(input);
  if (!plan) return plan;
  if (auto valid = Validate(*plan, input); !valid) {
    return Internal(name_ + ": " + valid.error().message);
  }
  return plan;
}

Expected<bool> NamedPlanner::Schedules(const PlanInput& input) const {
  const auto plan = Solve(input);
  if (plan) return true;
  if (plan.error().code == ErrorCode::kResourceExhausted) return false;
  return std::unexpected(plan.error());
}

Expected<Plan> NamedPlanner::SolveUnchecked(const PlanInput& input) const {
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
  const bool published = name_ == kPublished;
  return PlanElastic(input, {.interference = interference_.get(),
                             .self_tuning = name_ == kSelfTuning,
                             .neighbours_bear_it = !published,
                             .expects_the_worst = !published});
}

}  // namespace tactus
