#include "core/chance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "core/chance_bound.h"

namespace tactus {
namespace {

constexpr std::int64_t kSliceBatches = 150;  // batches
constexpr std::size_t kLeastSlices = 8;      // slices, for them to tell how much they differ
constexpr std::size_t kMostSlices = 400;
constexpr std::int64_t kMostRequests = 1'000'000;
constexpr double kErrors = 3;         // standard errors
constexpr double kSurelyFew = 0.001;  // a bound of the violations under which nothing is simulated
constexpr double kRare = 0.02;        // fraction of the lanes' requests

double PlannedRps(const LanePlan& lane, const PlanEntry& entry) {
  return entry.batch / ToSeconds(std::max(lane.cycle, Nanos(1)));
}

// Of the time, that a lane beside this one runs batches, as planned.
double BusyBeside(const Plan& plan, std::size_t lane) {
  double busy = 0;
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    const LanePlan& other = plan.lanes[i];
    if (i == lane || other.spec.device != plan.lanes[lane].spec.device) continue;
    Duration taken{};
    for (const PlanEntry& entry : other.entries) taken += entry.length;
    busy += ToSeconds(taken) / ToSeconds(std::max(other.cycle, Nanos(1)));
  }
  return std::min(busy, 1.0);
}

// By lane: the first of those that it shares models with, over others too. Models of which nothing
// is expected bring no lanes together.
std::vector<std::size_t> GroupsOf(const Plan& plan, const PlanInput& input) {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> group(plan.lanes.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  std::vector<std::size_t> first(input.models.size(), kNone);  // lane of a model
  const auto root = [&](std::size_t lane) {
    while (group[lane] != lane) lane = group[lane];
    return lane;
  };
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    for (const PlanEntry& entry : plan.lanes[i].entries) {
      if (input.models[entry.model.value()].expected_rps <= 0) continue;
      std::size_t& of_model = first[entry.model.value()];
      if (of_model == kNone) of_model = i;
      const std::size_t a = root(of_model);
      const std::size_t b = root(i);
      group[std::max(a, b)] = std::min(a, b);
    }
  }
  for (std::size_t i = 0; i < group.size(); ++i) group[i] = root(i);
  return group;
}

// How many times longer a batch takes than alone, beyond 1, rounded up.
int SlowdownSteps(Duration alone, Duration window, double beside) {
  if (alone <= Duration{} || window <= alone) return 0;
  const double slowdown = beside * (ToSeconds(window) / ToSeconds(alone) - 1);
  constexpr double kRounding = 1e-6;
  return static_cast<int>(std::ceil(LaneWork::kSlowdownSteps * slowdown - kRounding));
}

// `sustained`: by model, of the whole plan.
LaneWork WorkOf(const Plan& plan, std::size_t lane, const PlanInput& input,
                const std::vector<double>& sustained) {
  const LanePlan& planned = plan.lanes[lane];
  const double beside = BusyBeside(plan, lane);
  LaneWork work = {.lane_class = planned.spec.lane_class, .alone = planned.entries.size() == 1};
  for (const PlanEntry& entry : planned.entries) {
    if (input.models[entry.model.value()].expected_rps <= 0) continue;
    const Duration alone = input.Latency(entry.model, entry.batch, work.lane_class);
    const double part = PlannedRps(planned, entry) / sustained[entry.model.value()];
    work.turns.push_back(
        {.model = entry.model,
         .batch = entry.batch,
         .slowdown = SlowdownSteps(alone, entry.length, beside),
         .weight = std::max(1, static_cast<int>(std::lround(LaneWork::kWeightSteps * part)))});
  }
  return work;
}

// By the first lane of those that share models; empty for the others.
std::vector<std::vector<LaneWork>> WorkOf(const Plan& plan, const PlanInput& input) {
  std::vector<double> sustained(input.models.size());
  for (const LanePlan& lane : plan.lanes) {
    for (const PlanEntry& entry : lane.entries) {
      sustained[entry.model.value()] += PlannedRps(lane, entry);
    }
  }
  const std::vector<std::size_t> groups = GroupsOf(plan, input);
  std::vector<std::vector<LaneWork>> all(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    LaneWork work = WorkOf(plan, i, input, sustained);
    if (!work.turns.empty()) all[groups[i]].push_back(std::move(work));
  }
  return all;
}

// Violations come in bursts: how much slices differ tells how well their mean is known. Where there
// was none yet, the next burst may be half a batch: of a late batch only the first are violations.
ChanceViolations ModelViolations(const LanesRun& run, std::size_t q, std::size_t slices) {
  const LanesRun::Counted& counted = run.counted(q, slices);
  const double burst = (1.0 + run.batch(q)) / 2;
  const auto arrived = static_cast<double>(std::max<std::int64_t>(1, counted.arrived));
  ChanceViolations violations = {.ratio = static_cast<double>(counted.violations) / arrived};
  const double squares = counted.violations_squared -
                         2 * violations.ratio * counted.violations_came +
                         violations.ratio * violations.ratio * counted.came_squared;
  // Of as many bursts as 6.6 in the mean one is missed as seldom as by three standard errors.
  constexpr double kUnseen = 6.6 / kErrors;  // bursts
  violations.error = counted.violations == 0
                         ? kUnseen * burst / arrived
                         : std::max(std::sqrt(std::max(0.0, squares)) / arrived,
                                    std::sqrt(kMostViolationsByChance * burst / arrived));
  return violations;
}

// The violations of several models together: their mean, weighted by rate.
class WeightedMean {
 public:
  void Add(double rate_rps, const ChanceViolations& violations) {
    rate_rps_ += rate_rps;
    violations_ += rate_rps * violations.ratio;
    variance_ += rate_rps * rate_rps * violations.error * violations.error;
  }
  ChanceViolations mean() const {
    if (rate_rps_ <= 0) return {};
    return {.ratio = violations_ / rate_rps_, .error = std::sqrt(variance_) / rate_rps_};
  }
  double rate_rps() const { return rate_rps_; }
  double variance() const { return variance_; }

 private:
  double rate_rps_ = 0;
  double violations_ = 0;
  double variance_ = 0;
};

WeightedMean MeanOf(const LanesRun& run, std::size_t slices) {
  WeightedMean mean;
  for (std::size_t q = 0; q < run.models(); ++q)
    mean.Add(run.rate_rps(q), ModelViolations(run, q, slices));
  return mean;
}

bool Clear(const ChanceViolations& violations) {
  return violations.error <= kPrecise ||
         std::abs(violations.ratio - kMostViolationsByChance) >= kErrors * violations.error;
}

bool AtEnd(const LanesRun& run, std::size_t slices) {
  std::int64_t arrived = 0;
  for (std::size_t q = 0; q < run.models(); ++q) arrived += run.counted(q, slices).arrived;
  return slices >= kMostSlices || arrived >= kMostRequests;
}

bool Clear(const LanesRun& run, std::size_t slices) {
  const WeightedMean all = MeanOf(run, slices);
  if (!Clear(all.mean())) return false;
  for (std::size_t q = 0; q < run.models(); ++q) {
    const bool rare = run.rate_rps(q) < kRare * all.rate_rps();
    if (!rare && !Clear(ModelViolations(run, q, slices))) return false;
  }
  return true;
}

void RunUntil(LanesRun& run, std::size_t slices) {
  while (run.slices() < slices) run.RunSlice(kSliceBatches);
}

// Whether a model clearly has too many violations.
bool Refused(const LanesRun& run, std::size_t slices) {
  const double all_rps = MeanOf(run, slices).rate_rps();
  for (std::size_t q = 0; q < run.models(); ++q) {
    const ChanceViolations violations = ModelViolations(run, q, slices);
    const bool rare = run.rate_rps(q) < kRare * all_rps;
    if (!rare && violations.ratio - kMostViolationsByChance >= kErrors * violations.error)
      return true;
  }
  return false;
}

}  // namespace

ChanceEstimator::Lanes& ChanceEstimator::Find(std::vector<LaneWork> work) {
  std::ranges::sort(work);  // which device is which does not matter
  const auto [at, added] = found_.try_emplace(work);
  Lanes& lanes = at->second;
  if (!added) return lanes;
  bool few = true;
  for (std::size_t l = 0; l < work.size() && few; ++l) {
    for (std::size_t t = 0; t < work[l].turns.size() && few; ++t) {
      const LaneWork::Turn& turn = work[l].turns[t];
      auto most = std::ranges::find(lanes.bounds, turn.model, &Most::model);
      if (most == lanes.bounds.end()) most = lanes.bounds.insert(most, {.model = turn.model});
      most->ratio +=
          MostViolationsByChance(work[l], t, input_) * turn.weight / LaneWork::kWeightSteps;
      few = most->ratio <= kSurelyFew;
    }
  }
  if (few) return lanes;
  lanes.bounds.clear();
  lanes.run = std::make_unique<LanesRun>(work, input_, streams_);
  return lanes;
}

std::size_t ChanceEstimator::Needed(Lanes& lanes) {
  LanesRun& run = *lanes.run;
  if (lanes.needed > 0) return lanes.needed;
  std::size_t needed = kLeastSlices;
  for (RunUntil(run, needed); !Clear(run, needed) && !AtEnd(run, needed);) RunUntil(run, ++needed);
  return lanes.needed = needed;
}

ChanceEstimator::Judged ChanceEstimator::Take(const Plan& plan) {
  Judged judged{.bounds = std::vector<ChanceViolations>(input_.models.size())};
  for (std::vector<LaneWork>& work : WorkOf(plan, input_)) {
    if (work.empty()) continue;
    Lanes& lanes = Find(std::move(work));
    if (lanes.run) judged.parts.push_back({&lanes, kLeastSlices});
    for (const Most& most : lanes.bounds) judged.bounds[most.model.value()].ratio = most.ratio;
  }
  for (const Part& part : judged.parts) RunUntil(*part.lanes->run, kLeastSlices);
  return judged;
}

PlanViolations ChanceEstimator::ViolationsOf(const Judged& judged) const {
  PlanViolations violations = {.models = judged.bounds};
  for (const Part& part : judged.parts) {
    const LanesRun& run = *part.lanes->run;
    for (std::size_t q = 0; q < run.models(); ++q) {
      violations.models[run.model(q).value()] = ModelViolations(run, q, part.slices);
    }
  }
  WeightedMean all;
  for (std::size_t m = 0; m < violations.models.size(); ++m) {
    all.Add(input_.models[m].expected_rps, violations.models[m]);
  }
  violations.all = all.mean();
  return violations;
}

PlanViolations ChanceEstimator::Of(const Plan& plan) {
  Judged judged = Take(plan);
  for (Part& part : judged.parts) part.slices = Needed(*part.lanes);
  for (;;) {
    PlanViolations violations = ViolationsOf(judged);
    if (Clear(violations.all)) return violations;
    Part* least_known = nullptr;
    double most = 0;
    for (Part& part : judged.parts) {
      const double variance = MeanOf(*part.lanes->run, part.slices).variance();
      if (variance <= most || AtEnd(*part.lanes->run, part.slices)) continue;
      most = variance;
      least_known = &part;
    }
    if (least_known == nullptr) return violations;
    RunUntil(*least_known->lanes->run, least_known->slices += kLeastSlices);
  }
}

PlanViolations ChanceEstimator::UntilRefused(const Plan& plan) {
  Judged judged = Take(plan);
  bool refused = std::ranges::any_of(
      judged.parts, [](const Part& part) { return Refused(*part.lanes->run, part.slices); });
  for (std::size_t i = 0; i < judged.parts.size() && !refused; ++i) {
    Part& part = judged.parts[i];
    part.slices = Needed(*part.lanes);
    for (std::size_t q = 0; q < part.lanes->run->models(); ++q) {
      refused = refused || TooMany(ModelViolations(*part.lanes->run, q, part.slices));
    }
  }
  return refused ? ViolationsOf(judged) : Of(plan);
}

PlanViolations ViolationsByChance(const Plan& plan, const PlanInput& input) {
  return ChanceEstimator(input).Of(plan);
}

bool TooMany(const ChanceViolations& violations) {
  const double unknown = violations.error <= kPrecise ? 0 : violations.error;
  return violations.ratio > kMostViolationsByChance + unknown;
}

}  // namespace tactus
