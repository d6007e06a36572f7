#include "policies/edgeserving/edgeserving.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/feasible.h"

namespace tactus {
namespace {

// Half a unit in the last place: a sum of n terms is wrong by at most n of these of its largest
// part.
constexpr double kUlp = 0x1p-53;

// What else is rounded: the exponential and its argument, and up to kFew crossings.
constexpr double kFixedRoundings = 64;

// The anchor moves after this many SLOs. By then a fresh request weighs exp(-4) of what it weighs
// at the anchor, which costs two digits of the sum; kScoreTie leaves room for that.
constexpr int kAnchorLife = 4;

// So many candidates, and crossings in a queue, are tried each with each.
constexpr std::size_t kFew = 16;

// So far a search goes step by step before it gallops.
constexpr std::size_t kSteps = 4;

// The first position in [from, to) whose request is not clipped at `then`; `to` when all are.
// It mostly lies near `from`: a few steps, of which the processor foresees all but the last, then a
// gallop.
std::size_t FirstLive(const RequestQueue& queue, std::size_t from, std::size_t to,
                      Duration clip_after, TimePoint then) {
  const auto clipped = [&](std::size_t i) { return then - queue[i].deadline > clip_after; };
  for (const std::size_t near = std::min(to, from + kSteps); from < near; ++from) {
    if (!clipped(from)) return from;
  }
  for (std::size_t step = 1; from < to; step *= 2) {
    const std::size_t probe = from + step - 1;
    if (probe >= to) break;
    if (!clipped(probe)) {
      to = probe;
      break;
    }
    from = probe + 1;
  }
  while (from < to) {
    const std::size_t middle = from + (to - from) / 2;
    if (clipped(middle)) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

}  // namespace

void EdgeServing::Prepare(const View& view) {
  queues_.clear();
  queues_.resize(view.queues.size());
  groups_.clear();
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const Duration slo = view.models[i].slo;
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [slo](const Group& known) { return known.slo == slo; });
    if (group == groups_.end()) {
      group = groups_.insert(groups_.end(), Group{});
      group->slo = slo;
      group->per_slo = 1 / static_cast<double>(slo.count());
      // Rounded down, which is exact: ages are whole nanoseconds.
      group->clip_after = Duration{static_cast<Duration::rep>(
          std::floor(static_cast<double>(slo.count()) * std::log(options_.clip)))};
    }
    group->members.push_back(ModelId{static_cast<ModelId::rep>(i)});
    queues_[i].group = static_cast<std::uint32_t>(group - groups_.begin());
    queues_[i].ring.resize(std::bit_ceil(view.queues[i].capacity() + 1));
  }
  scored_.resize(view.queues.size());
  by_latency_.resize(view.queues.size());
  by_place_.resize(view.queues.size());
}

// Most requests join at the tail: they are summed at once, while the lanes are busy, and not when
// the next decision is waited for.
void EdgeServing::OnArrive(ModelId m, const Request& request) {
  QueueSums& sums = queues_[m.value()];
  const bool current = !sums.rebuild && sums.changed_from == kNever && sums.known == sums.size;
  if (current && request.deadline >= sums.last) {
    Append(groups_[sums.group], sums, request.deadline);
    ++sums.size;
    sums.last = request.deadline;
    return;
  }
  sums.changed_from = std::min(sums.changed_from, request.deadline);
}

// Right also when arrivals wait to be entered: what lies before them moves by `count`, and the rest
// is summed anew.
void EdgeServing::OnPopFront(ModelId m, int count) {
  QueueSums& sums = queues_[m.value()];
  const auto n = static_cast<std::size_t>(count);
  sums.head += n;
  sums.live -= std::min(sums.live, n);
  sums.known -= std::min(sums.known, n);
  sums.moved -= std::min(sums.moved, n);
  sums.size -= std::min(sums.size, n);
}

double EdgeServing::Aged(Duration by, const Group& group) {
  return std::exp(static_cast<double>(by.count()) * group.per_slo);
}

void EdgeServing::Append(const Group& group, QueueSums& sums, TimePoint deadline) {
  sums.At(sums.known + 1) = sums.Before(sums.known) + Aged(group.anchor - deadline, group);
  ++sums.known;
  ++sums.terms;
}

double EdgeServing::Rounding(const QueueSums& sums) {
  const double roundings = static_cast<double>(sums.terms) + kFixedRoundings;
  return kUlp * roundings * sums.Before(sums.known);
}

Decision EdgeServing::Decide(const View& view, TimePoint now) {
  if (FirstFreeLane(view.lanes) == nullptr) return Wait{};
  MakeCandidates(view, now);
  if (candidates_ == 0) return Wait{};
  if (candidates_ == 1) return ToDispatch(scored_[0].candidate);  // nothing to compare
  for (Group& group : groups_) Refresh(view, group, now);
  for (const Group& group : groups_) AddScores(view, group, now);
  Scored* best = &scored_[0];
  for (std::size_t i = 1; i < candidates_; ++i) {
    if (Beats(view, scored_[i], *best, now)) best = &scored_[i];
  }
  return ToDispatch(best->candidate);
}

void EdgeServing::MakeCandidates(const View& view, TimePoint now) {
  candidates_ = 0;
  longest_ = Duration{};
  sorted_ = false;
  for (std::size_t i = 0; i < view.queues.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    const auto candidate = MakeCandidate(view, m, options_, now);
    if (!candidate) continue;
    longest_ = std::max(longest_, candidate->latency);
    scored_[candidates_++] = {.candidate = *candidate};
  }
}

void EdgeServing::Refresh(const View& view, Group& group, TimePoint now) {
  const bool renew = now - group.anchor >= kAnchorLife * group.slo;
  if (renew) Renew(group, now);
  group.clipped = 0;
  group.live = 0;
  group.error = 0;
  for (const ModelId m : group.members) {
    const RequestQueue& queue = view.queues[m.value()];
    QueueSums& sums = queues_[m.value()];
    RefreshQueue(queue, group, sums, now);
    if (queue.empty()) continue;
    group.clipped += static_cast<double>(sums.live);
    group.live += sums.Before(queue.size()) - sums.Before(sums.live);
    group.error += Rounding(sums) + sums.inherited;
  }
}

// Moves the anchor to `now`. What it does to a sum is one factor, but that keeps the error of the
// sum, which was small only beside those of its requests that have left since. So a weight is moved
// once, which is as often as one lives unless the clip is large; then it is taken anew.
void EdgeServing::Renew(Group& group, TimePoint now) {
  const bool movable = now - group.anchor < 2 * kAnchorLife * group.slo;  // the factor is finite
  const double factor = movable ? Aged(now - group.anchor, group) : 0;
  group.anchor = now;
  for (const ModelId m : group.members) {
    QueueSums& sums = queues_[m.value()];
    if (!movable || sums.moved > sums.live) {
      sums.known = 0;  // RefreshQueue begins anew
      continue;
    }
    sums.inherited = Rounding(sums) * factor;  // none of it inherited itself: those have left
    sums.terms = 0;
    const double base = sums.Before(std::min(sums.live, sums.known));
    for (std::size_t i = sums.live; i <= sums.known; ++i) sums.At(i) = (sums.At(i) - base) * factor;
    sums.moved = sums.known;
  }
}

void EdgeServing::RefreshQueue(const RequestQueue& queue, const Group& group, QueueSums& sums,
                               TimePoint now) {
  const std::size_t size = queue.size();
  if (sums.rebuild) {
    sums.live = FirstLive(queue, 0, size, group.clip_after, now);
    sums.known = 0;
    sums.rebuild = false;
  } else if (sums.changed_from != kNever) {
    std::size_t i = size;
    while (i > sums.live && queue[i - 1].deadline >= sums.changed_from) --i;
    sums.known = std::min(sums.known, i);
  }
  sums.changed_from = kNever;
  sums.moved = std::min(sums.moved, sums.known);
  while (sums.live < size && now - queue[sums.live].deadline > group.clip_after) ++sums.live;
  if (sums.known <= sums.live) {
    sums.known = sums.live;
    sums.At(sums.live) = 0;
    sums.terms = 0;
    sums.inherited = 0;
  }
  while (sums.known < size) Append(group, sums, queue[sums.known].deadline);
  sums.size = size;
  sums.last = size > 0 ? queue[size - 1].deadline : TimePoint{};
}

// Eq. 4 for every candidate at once, but for what the candidate's own batch takes away.
void EdgeServing::AddScores(const View& view, const Group& group, TimePoint now) {
  FindCrossings(view, group, now);
  // Where many models are alike, so are their latencies: one exponential does for all of these.
  const bool many = candidates_ > kFew;
  if (many) SortByLatency();
  Duration aged_by = Duration::min();
  double age = 0;
  for (std::size_t place = 0; place < candidates_; ++place) {
    Scored& scored = scored_[many ? by_latency_[place].candidate : place];
    const EdgeServingCandidate& candidate = scored.candidate;
    if (candidate.latency != aged_by) {
      aged_by = candidate.latency;
      age = Aged(now + aged_by - group.anchor, group);
    }
    const double clipped = options_.clip * (group.clipped + scored.crossing.count);
    scored.score += clipped + (group.live - scored.crossing.sum) * age;
    scored.error += kUlp * kFixedRoundings * scored.score + group.error * age;
    if (&group == &groups_[queues_[candidate.model.value()].group]) {
      scored.score -= Served(view, candidate, group, age, now);
    }
  }
}

// Sets each candidate's crossings in this group.
void EdgeServing::FindCrossings(const View& view, const Group& group, TimePoint now) {
  for (std::size_t i = 0; i < candidates_; ++i) scored_[i].crossing = {};
  bool places = false;
  for (const ModelId m : group.members) {
    const RequestQueue& queue = view.queues[m.value()];
    const QueueSums& sums = queues_[m.value()];
    const std::size_t size = queue.size();
    if (sums.live == size) continue;
    if (now + longest_ - queue[sums.live].deadline <= group.clip_after) continue;
    const std::size_t end = FirstLive(queue, sums.live, size, group.clip_after, now + longest_);
    if (candidates_ <= kFew && end - sums.live <= kFew) {
      AddFewCrossings(queue, sums, end, group, now);
      continue;
    }
    if (!places) {
      SortByLatency();
      std::fill_n(by_place_.begin(), candidates_, Crossing{});
      places = true;
    }
    AddCrossings(queue, sums, end, group, now);
  }
  if (!places) return;
  Crossing so_far;
  for (std::size_t place = 0; place < candidates_; ++place) {
    so_far.count += by_place_[place].count;
    so_far.sum += by_place_[place].sum;
    Crossing& crossing = scored_[by_latency_[place].candidate].crossing;
    crossing.count += so_far.count;
    crossing.sum += so_far.sum;
  }
}

// Each request with each candidate, without a branch that the processor could guess wrong: with few
// of both that is less than any search.
void EdgeServing::AddFewCrossings(const RequestQueue& queue, const QueueSums& sums, std::size_t end,
                                  const Group& group, TimePoint now) {
  for (std::size_t i = sums.live; i < end; ++i) {
    const Duration needed = queue[i].deadline + group.clip_after - now;
    const double weight = sums.Before(i + 1) - sums.Before(i);
    for (std::size_t k = 0; k < candidates_; ++k) {
      const double crosses = scored_[k].candidate.latency > needed ? 1 : 0;
      scored_[k].crossing.count += crosses;
      scored_[k].crossing.sum += crosses * weight;
    }
  }
}

// Enters the requests from the first live one to before `end` at the place of the first candidate
// that is long enough to see them clipped. Walks both in step; where the requests are few beside
// the candidates it looks each of them up instead.
void EdgeServing::AddCrossings(const RequestQueue& queue, const QueueSums& sums, std::size_t end,
                               const Group& group, TimePoint now) {
  std::size_t from = sums.live;
  if (end - from > candidates_ / 8) {
    for (std::size_t place = 0; place < candidates_; ++place) {
      const std::size_t to =
          FirstLive(queue, from, end, group.clip_after, now + by_latency_[place].latency);
      by_place_[place].count += static_cast<double>(to - from);
      by_place_[place].sum += sums.Before(to) - sums.Before(from);
      from = to;
    }
    return;
  }
  std::size_t place = 0;
  for (; from < end; ++from) {
    const Duration needed = queue[from].deadline + group.clip_after - now;
    const auto first =
        std::partition_point(by_latency_.begin() + static_cast<std::ptrdiff_t>(place),
                             by_latency_.begin() + static_cast<std::ptrdiff_t>(candidates_),
                             [&](const Place& p) { return p.latency <= needed; });
    place = static_cast<std::size_t>(first - by_latency_.begin());
    by_place_[place].count += 1;
    by_place_[place].sum += sums.Before(from + 1) - sums.Before(from);
  }
}

void EdgeServing::SortByLatency() {
  if (sorted_) return;
  sorted_ = true;
  for (std::size_t i = 0; i < candidates_; ++i) {
    by_latency_[i] = {scored_[i].candidate.latency, static_cast<std::uint32_t>(i)};
  }
  std::sort(by_latency_.begin(), by_latency_.begin() + static_cast<std::ptrdiff_t>(candidates_),
            [](const Place& a, const Place& b) { return a.latency < b.latency; });
}

// What the candidate's batch would count in its own score if it stayed. `age` is since the anchor.
double EdgeServing::Served(const View& view, const EdgeServingCandidate& candidate,
                           const Group& group, double age, TimePoint now) const {
  const RequestQueue& queue = view.queues[candidate.model.value()];
  const QueueSums& sums = queues_[candidate.model.value()];
  const auto batch = static_cast<std::size_t>(candidate.batch);
  const std::size_t live = FirstLive(queue, std::min(sums.live, batch), batch, group.clip_after,
                                     now + candidate.latency);
  const double sum = live < batch ? sums.Before(batch) - sums.Before(live) : 0;
  return options_.clip * static_cast<double>(live) + sum * age;
}

bool EdgeServing::Beats(const View& view, Scored& challenger, Scored& best, TimePoint now) const {
  const double margin = challenger.score - LeastToBeat(best.score);
  const double doubt = challenger.error + best.error;
  if (std::abs(margin) > doubt) return margin < 0;
  challenger.score = StabilityScore(view, challenger.candidate, options_.clip, now);
  best.score = StabilityScore(view, best.candidate, options_.clip, now);
  return challenger.score < LeastToBeat(best.score);
}

}  // namespace tactus
