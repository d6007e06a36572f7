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
constexpr double kSurelyFew = 0.001;  // a bound of losses under which nothing is simulated
constexpr double kRare = 0.02;        // part of the lanes' requests

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

// Losses come in bursts: how much slices differ tells how well their mean is known, and where
// none was lost yet, the next burst may be half a batch: of one that is late the first are.
ChanceViolations LossOf(const LanesRun& run, std::size_t q, std::size_t slices) {
  const LanesRun::Counted& counted = run.counted(q, slices);
  const double burst = (1.0 + run.batch(q)) / 2;
  const auto arrived = static_cast<double>(std::max<std::int64_t>(1, counted.arrived));
  ChanceViolations loss = {.part = static_cast<double>(counted.lost) / arrived};
  const double squares = counted.lost_lost - 2 * loss.part * counted.lost_came +
                         loss.part * loss.part * counted.came_came;
  // Of as many bursts as 6.6 in the mean one is missed as seldom as by three standard errors.
  constexpr double kUnseen = 6.6 / kErrors;  // bursts
  loss.error = counted.lost == 0 ? kUnseen * burst / arrived
                                 : std::max(std::sqrt(std::max(0.0, squares)) / arrived,
                                            std::sqrt(kMostViolationsByChance * burst / arrived));
  return loss;
}

// A sum of losses, by the rates of those who lose.
class Sum {
 public:
  void Add(double rate_rps, const ChanceViolations& loss) {
    rate_rps_ += rate_rps;
    lost_ += rate_rps * loss.part;
    variance_ += rate_rps * rate_rps * loss.error * loss.error;
  }
  ChanceViolations loss() const {
    if (rate_rps_ <= 0) return {};
    return {.part = lost_ / rate_rps_, .error = std::sqrt(variance_) / rate_rps_};
  }
  double rate_rps() const { return rate_rps_; }
  double variance() const { return variance_; }

 private:
  double rate_rps_ = 0;
  double lost_ = 0;
  double variance_ = 0;
};

Sum SumOf(const LanesRun& run, std::size_t slices) {
  Sum sum;
  for (std::size_t q = 0; q < run.models(); ++q) sum.Add(run.rate_rps(q), LossOf(run, q, slices));
  return sum;
}

bool Clear(const ChanceViolations& loss) {
  return loss.error <= kPrecise ||
         std::abs(loss.part - kMostViolationsByChance) >= kErrors * loss.error;
}

bool AtEnd(const LanesRun& run, std::size_t slices) {
  std::int64_t arrived = 0;
  for (std::size_t q = 0; q < run.models(); ++q) arrived += run.counted(q, slices).arrived;
  return slices >= kMostSlices || arrived >= kMostRequests;
}

bool Clear(const LanesRun& run, std::size_t slices) {
  const Sum all = SumOf(run, slices);
  if (!Clear(all.loss())) return false;
  for (std::size_t q = 0; q < run.models(); ++q) {
    const bool rare = run.rate_rps(q) < kRare * all.rate_rps();
    if (!rare && !Clear(LossOf(run, q, slices))) return false;
  }
  return true;
}

void RunUntil(LanesRun& run, std::size_t slices) {
  while (run.slices() < slices) run.RunSlice(kSliceBatches);
}

// Whether a model is clear to lose too much.
bool Refused(const LanesRun& run, std::size_t slices) {
  const double all_rps = SumOf(run, slices).rate_rps();
  for (std::size_t q = 0; q < run.models(); ++q) {
    const ChanceViolations loss = LossOf(run, q, slices);
    const bool rare = run.rate_rps(q) < kRare * all_rps;
    if (!rare && loss.part - kMostViolationsByChance >= kErrors * loss.error) return true;
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
      most->part += MostLostByChance(work[l], t, input_) * turn.weight / LaneWork::kWeightSteps;
      few = most->part <= kSurelyFew;
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
    for (const Most& most : lanes.bounds) judged.bounds[most.model.value()].part = most.part;
  }
  for (const Part& part : judged.parts) RunUntil(*part.lanes->run, kLeastSlices);
  return judged;
}

ChanceLosses ChanceEstimator::LossesOf(const Judged& judged) const {
  ChanceLosses losses = {.models = judged.bounds};
  for (const Part& part : judged.parts) {
    const LanesRun& run = *part.lanes->run;
    for (std::size_t q = 0; q < run.models(); ++q) {
      losses.models[run.model(q).value()] = LossOf(run, q, part.slices);
    }
  }
  Sum all;
  for (std::size_t m = 0; m < losses.models.size(); ++m) {
    all.Add(input_.models[m].expected_rps, losses.models[m]);
  }
  losses.all = all.loss();
  return losses;
}

ChanceLosses ChanceEstimator::Of(const Plan& plan) {
  Judged judged = Take(plan);
  for (Part& part : judged.parts) part.slices = Needed(*part.lanes);
  for (;;) {
    ChanceLosses losses = LossesOf(judged);
    if (Clear(losses.all)) return losses;
    Part* least_known = nullptr;
    double most = 0;
    for (Part& part : judged.parts) {
      const double variance = SumOf(*part.lanes->run, part.slices).variance();
      if (variance <= most || AtEnd(*part.lanes->run, part.slices)) continue;
      most = variance;
      least_known = &part;
    }
    if (least_known == nullptr) return losses;
    RunUntil(*least_known->lanes->run, least_known->slices += kLeastSlices);
  }
}

ChanceLosses ChanceEstimator::UntilRefused(const Plan& plan) {
  Judged judged = Take(plan);
  bool refused = std::ranges::any_of(
      judged.parts, [](const Part& part) { return Refused(*part.lanes->run, part.slices); });
  for (std::size_t i = 0; i < judged.parts.size() && !refused; ++i) {
    Part& part = judged.parts[i];
    part.slices = Needed(*part.lanes);
    for (std::size_t q = 0; q < part.lanes->run->models(); ++q) {
      refused = refused || TooMany(LossOf(*part.lanes->run, q, part.slices));
    }
  }
  return refused ? LossesOf(judged) : Of(plan);
}

ChanceLosses ViolationsByChance(const Plan& plan, const PlanInput& input) {
  return ChanceEstimator(input).Of(plan);
}

bool TooMany(const ChanceViolations& loss) {
  const double unknown = loss.error <= kPrecise ? 0 : loss.error;
  return loss.part > kMostViolationsByChance + unknown;
}

}  // namespace tactus
