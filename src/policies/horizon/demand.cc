#include "policies/horizon/demand.h"

#include <algorithm>
#include <cmath>

#include "policies/candidate.h"

namespace tactus {
namespace {

// The share of b* that a batch holds on to. At b* itself a head that chance delayed would be given
// up for a batch larger than the load needs.
constexpr double kAim = 0.8;
// A batch may have to wait for a lane as long as others keep them: so many times the mean batch
// over the lanes, where other models have all of these, ...
constexpr double kLeadForOthers = 4;
constexpr double kLeadWithExits = 2;  // what starts early takes the time of deeper exits
// ... and more where few lanes serve many models, as whoever comes too late for the last moment
// finds no other then.
constexpr double kCrowd = 2;
// Before there is a rate nobody knows what waiting would do to others: this part of the SLO.
constexpr double kFirstLead = 0.2;
// A request that is given up has to buy so many right answers more than it would have been itself:
// one that is not answered at all is worse than one that is wrong.
constexpr double kPriceOfALoss = 1;
// ... and of no model more than this part is, so that nobody is shut out.
constexpr double kMostGivenUp = 0.75;
// No more than so many are owed at once: what was not given up in time is not made up for later.
constexpr double kMostDue = 100;
// Longer than the time that any request has (366 days), short enough for sums.
constexpr Duration kAnyTime = Seconds(std::int64_t{1000} * 24 * 3600);

double LeadForOthers(const KindOfLane& kind, double models) {
  const auto lanes = static_cast<double>(kind.lanes.size());
  return kind.steps.empty() ? kLeadForOthers * std::max(1 + 1 / lanes, kCrowd * models / lanes)
                            : kLeadWithExits * (1 + 1 / lanes);
}

}  // namespace

void Demand::Prepare(const View& view, const LaneKinds& kinds) {
  counts_.resize(view.models.size());
  load_.resize(view.models.size());
  sustained_.resize(view.models.size());
  std::size_t steps = 0;
  for (std::uint32_t k = 0; k < kinds.size(); ++k) steps = std::max(steps, kinds[k].steps.size());
  more_.resize(steps);
  needed_.assign(kinds.size(), 0);
  longest_.assign(kinds.size(), Duration{});
  outlooks_.assign(kinds.size() * counts_.size(), Outlook{});
  Review(view, kinds);
}

bool Demand::Count(ModelId m, TimePoint at) {
  const bool over = at >= step_end_;
  if (over) Roll(at);
  Counts& counts = counts_[m.value()];
  ++counts.current;
  counts.due = std::min(kMostDue, counts.due + counts.given_up);
  return over;
}

bool Demand::Pass(TimePoint now) {
  if (now < quiet()) return false;
  Roll(now);
  return true;
}

void Demand::Roll(TimePoint at) {
  const std::int64_t step = (at - kStart) / kStep;
  if (first_step_ < 0) first_step_ = step;
  // The step of the first arrival had begun before it, so it is left out.
  const std::int64_t complete = std::min<std::int64_t>(kSteps, step - first_step_ - 1);
  for (Counts& counts : counts_) {
    for (std::int64_t s = std::max(at_step_, step - kSteps); at_step_ >= 0 && s < step; ++s) {
      counts.came[s % kSteps] = s == at_step_ ? counts.current : 0;
    }
    std::int64_t sum = 0;
    for (std::int64_t i = 1; i <= complete; ++i) sum += counts.came[(step - i) % kSteps];
    counts.per_second =
        complete > 0 ? static_cast<double>(sum) / (static_cast<double>(complete) * ToSeconds(kStep))
                     : 0;
    counts.seen = counts.seen * (1 - 1.0 / kSteps) + static_cast<double>(counts.current);
    counts.lost *= 1 - 1.0 / kSteps;
    counts.lost_part = counts.seen > 0 ? std::min(1.0, counts.lost / counts.seen) : 0;
    counts.current = 0;
  }
  at_step_ = step;
  step_end_ = kStart + (step + 1) * kStep;
}

void Demand::Review(const View& view, const LaneKinds& kinds) {
  for (Counts& counts : counts_) counts.given_up = 0;
  for (std::uint32_t k = 0; k < kinds.size(); ++k) ReviewKind(view, kinds, k);
  for (Counts& counts : counts_) {
    if (counts.given_up == 0) counts.due = 0;
  }
}

void Demand::ReviewKind(const View& view, const LaneKinds& kinds, std::uint32_t k) {
  const KindOfLane& kind = kinds[k];
  const auto lanes = static_cast<double>(kind.lanes.size());
  longest_[k] = Duration{};
  double work = 0;     // lanes that all models take together
  double batches = 0;  // a second
  const auto outlook = [&](ModelId m) -> Outlook& {
    return outlooks_[k * counts_.size() + m.value()];
  };
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    load_[i] = 0;
    if (!kind.courses[i].served()) continue;
    Outlook& own = outlook(m) = {.rate = counts_[i].per_second * kinds.ShareOf(k, m)};
    const BatchCosts& costs = kind.courses[i].quickest();
    const int most = sustained_[i] =
        TargetBatch(costs, view.models[i].slo, own.rate, static_cast<int>(kind.lanes.size()));
    own.target = std::max(1, static_cast<int>(std::lround(kAim * most)));
    load_[i] = own.rate / most * ToSeconds(costs(most) - view.profile.margin(m));
    work += load_[i];
    batches += own.rate / most;
    longest_[k] = std::max(longest_[k], costs(costs.max_batch()));
  }
  ShareOut(kind, k);
  SetMore(kind, k);
  work = TradeIn(view, kinds, k, work);
  for (std::size_t s = 0; s < kind.steps.size(); ++s) {
    const Step& step = kind.steps[s];
    Outlook& own = outlook(step.model);
    if (own.rate <= 0 || own.depth != step.to - 1) continue;
    const double more = more_[s] * (1 - own.given_up);
    if (work + more > lanes) continue;
    own.depth = step.to;
    work += more;
    load_[step.model.value()] += more;
  }
  const double mean = batches > 0 ? work / batches : 0;
  double squares = 0;
  for (const double load : load_) squares += load * load;
  // As many models of equal load would be as uneven.
  const double for_others = LeadForOthers(kind, squares > 0 ? work * work / squares : 1);
  needed_[k] = work;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    if (!kind.courses[i].served()) continue;
    const double others = std::clamp((work - load_[i]) / lanes, 0.0, 1.0);
    Outlook& own = outlook(m);
    // One lane has nothing better to do while it is free: whatever waits goes, also a step of an
    // ensemble that is due long after the SLO of its model.
    own.lead = lanes == 1 ? kAnyTime
               : mean > 0 ? FromSeconds((1 + for_others * others) * mean / lanes)
                          : FromSeconds(kFirstLead * ToSeconds(view.models[i].slo));
  }
}

// Lanes that each step of the hull takes besides, for all requests of its model, in the batches
// that the rate sustains at the quickest exit.
void Demand::SetMore(const KindOfLane& kind, std::uint32_t k) {
  for (std::size_t s = 0; s < kind.steps.size(); ++s) {
    const Step& step = kind.steps[s];
    const std::size_t i = step.model.value();
    const Course& course = kind.courses[i];
    const int batch = sustained_[i];
    more_[s] = outlooks_[k * counts_.size() + i].rate / batch *
               ToSeconds(course.at(step.to)(batch) - course.at(step.to - 1)(batch));
  }
}

// Gives value, not presence, its price: of the lowest priority, whose requests take so long that
// the same time spent on deeper exits of others is worth more than they are, loss included, are
// given up until all such exits have time; those who cost most for what they are worth first.
// Returns the lanes that the rest keeps busy.
double Demand::TradeIn(const View& view, const LaneKinds& kinds, std::uint32_t k, double work) {
  const KindOfLane& kind = kinds[k];
  if (kind.steps.empty()) return work;
  const auto lanes = static_cast<double>(kind.lanes.size());
  int lowest = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (load_[i] > 0) lowest = std::max(lowest, view.models[i].priority);
  }
  // What a second of m is worth at its quickest exit: right, as long as nobody says otherwise.
  const auto worth = [&](std::size_t i) {
    const Course& course = kind.courses[i];
    const double right = course.stated ? course.accuracy[course.hull.front()] : 1;
    return (kPriceOfALoss + right) * outlooks_[k * counts_.size() + i].rate / load_[i];
  };
  for (;;) {
    std::size_t dearest = counts_.size();
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (load_[i] <= 0 || view.models[i].priority < lowest) continue;
      const Outlook& own = outlooks_[k * counts_.size() + i];
      if (own.given_up > 0 || own.spared) continue;
      if (dearest == counts_.size() || worth(i) < worth(dearest)) dearest = i;
    }
    if (dearest == counts_.size()) return work;
    double lacking = work - lanes;
    for (std::size_t s = 0; s < kind.steps.size(); ++s) {
      const Step& step = kind.steps[s];
      if (!kind.courses[step.model.value()].stated) continue;  // its price is made up
      const double answered = 1 - outlooks_[k * counts_.size() + step.model.value()].given_up;
      if (step.price > worth(dearest)) lacking += more_[s] * answered;
    }
    if (lacking <= 0) return work;
    const double given = std::min(lacking, kMostGivenUp * load_[dearest]);
    const double part = given / load_[dearest];
    if (given <= 0) return work;
    outlooks_[k * counts_.size() + dearest].given_up = part;
    counts_[dearest].given_up +=
        part * kinds.ShareOf(k, ModelId{static_cast<ModelId::rep>(dearest)});
    load_[dearest] -= given;
    work -= given;
  }
}

// Max-min: whoever asks for less than an equal share of what the others leave is spared. Only where
// a single model would fill all lanes: a load that is too much of everything is for the rules of
// those whom it keeps waiting.
void Demand::ShareOut(const KindOfLane& kind, std::uint32_t k) {
  auto room = static_cast<double>(kind.lanes.size());
  const auto asks = [](double load) { return load > 0; };
  const double most = load_.empty() ? 0 : *std::max_element(load_.begin(), load_.end());
  if (most <= room) return;
  auto left = static_cast<double>(std::count_if(load_.begin(), load_.end(), asks));
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = 0; i < load_.size(); ++i) {
      Outlook& own = outlooks_[k * counts_.size() + i];
      if (!asks(load_[i]) || own.spared || load_[i] * left > room) continue;
      own.spared = found = true;
      room -= load_[i];
      --left;
    }
  }
}

}  // namespace tactus
