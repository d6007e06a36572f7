#include "policies/horizon/demand.h"

#include <algorithm>
#include <cmath>
#include <utility>

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
// Arrivals follow answers if they see so many requests fewer under way than time does, ...
constexpr double kFewer = 0.2;
// ... and so many standard errors.
constexpr double kCertain = 2;
// Steps over which this is averaged: two seconds.
constexpr double kRemembered = 40;
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
  needed_.assign(kinds.size(), 0);
  longest_.assign(kinds.size(), Duration{});
  outlooks_.assign(kinds.size() * counts_.size(), Outlook{});
  Review(view, kinds);
}

bool Demand::Count(ModelId m, TimePoint at, std::int64_t underway) {
  if (!std::exchange(counted_, true)) {
    underway_.seen += static_cast<double>(underway);
    ++underway_.arrivals;
  }
  const bool over = at >= step_end_;
  if (over) Roll(at);
  ++counts_[m.value()].current;
  return over;
}

void Demand::NoteUnderway(std::int64_t underway, TimePoint now) {
  const double seconds = ToSeconds(now - std::exchange(noted_, now).value_or(now));
  counted_ = false;
  underway_.seconds += seconds;
  underway_.sum += seconds * now_underway_;
  underway_.squares += seconds * now_underway_ * now_underway_;
  now_underway_ = static_cast<double>(underway);
}

// Arrivals by chance see what time sees (Wolff, "Poisson arrivals see time averages", 1982). Those
// of callers that wait for their answers, and of the next step of a pipeline, come when a batch
// has just ended, so they see fewer requests under way.
bool Demand::AnswersBringRequests() const {
  if (underway_.seconds <= 0 || underway_.arrivals <= 0) return false;
  const double mean = underway_.sum / underway_.seconds;
  const double variance = std::max(0.0, underway_.squares / underway_.seconds - mean * mean);
  const double fewer = mean - underway_.seen / underway_.arrivals;
  return fewer > std::max(kFewer, kCertain * std::sqrt(variance / underway_.arrivals));
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
  answers_bring_requests_ = AnswersBringRequests();
  const double kept = std::pow(1 - 1.0 / kRemembered, at_step_ < 0 ? 1 : step - at_step_);
  for (double* const sum : {&underway_.seconds, &underway_.sum, &underway_.squares,
                            &underway_.arrivals, &underway_.seen}) {
    *sum *= kept;
  }
  at_step_ = step;
  step_end_ = kStart + (step + 1) * kStep;
}

void Demand::Review(const View& view, const LaneKinds& kinds) {
  for (std::uint32_t k = 0; k < kinds.size(); ++k) ReviewKind(view, kinds, k);
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
  for (const Step& step : kind.steps) {
    Outlook& own = outlook(step.model);
    if (own.rate <= 0 || own.depth != step.to - 1) continue;
    const Course& course = kind.courses[step.model.value()];
    const int batch = sustained_[step.model.value()];
    const double more =
        own.rate / batch * ToSeconds(course.at(step.to)(batch) - course.at(step.to - 1)(batch));
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
    own.lead = lanes == 1 || answers_bring_requests_ ? kAnyTime
               : mean > 0 ? FromSeconds((1 + for_others * others) * mean / lanes)
                          : FromSeconds(kFirstLead * ToSeconds(view.models[i].slo));
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
