#include "policies/edgeserving/edgeserving.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/feasible.h"

namespace tactus {
namespace {

// Rounding of a sum of n terms is below n * 2^-53 of its largest part; this covers n = 90,000.
constexpr double kRounding = 1e-11;

// The sums are taken anew after this many SLOs. By then a fresh request weighs exp(-4) of what it
// weighs at the anchor, which costs two digits of the sum; kScoreTie leaves room for that.
constexpr int kAnchorLife = 4;

double Aged(Duration by, Duration slo) {
  return std::exp(static_cast<double>(by.count()) / static_cast<double>(slo.count()));
}

// The first position in [from, to) whose request is not clipped at `then`; `to` when all are.
// Gallops, as it mostly lies near `from`.
std::size_t FirstLive(const RequestQueue& queue, std::size_t from, std::size_t to,
                      Duration clip_after, TimePoint then) {
  const auto clipped = [&](std::size_t i) { return then - queue[i].deadline > clip_after; };
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
  crossing_count_.resize(view.queues.size());
  crossing_sum_.resize(view.queues.size());
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
  sums.size -= std::min(sums.size, n);
}

void EdgeServing::Append(const Group& group, QueueSums& sums, TimePoint deadline) {
  sums.At(sums.known + 1) = sums.Before(sums.known) + Aged(group.anchor - deadline, group.slo);
  ++sums.known;
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
  if (renew) group.anchor = now;
  group.clipped = 0;
  group.live = 0;
  group.magnitude = 0;
  for (const ModelId m : group.members) {
    const RequestQueue& queue = view.queues[m.value()];
    QueueSums& sums = queues_[m.value()];
    if (renew) sums.known = 0;
    RefreshQueue(queue, group, sums, now);
    if (queue.empty()) continue;
    group.clipped += static_cast<double>(sums.live);
    group.live += sums.Before(queue.size()) - sums.Before(sums.live);
    group.magnitude += sums.Before(queue.size());
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
  while (sums.live < size && now - queue[sums.live].deadline > group.clip_after) ++sums.live;
  if (sums.known <= sums.live) {
    sums.known = sums.live;
    sums.At(sums.live) = 0;
  }
  while (sums.known < size) Append(group, sums, queue[sums.known].deadline);
  sums.size = size;
  sums.last = size > 0 ? queue[size - 1].deadline : TimePoint{};
}

// Eq. 4 for every candidate at once, but for what the candidate's own batch takes away.
void EdgeServing::AddScores(const View& view, const Group& group, TimePoint now) {
  const bool crossings = FindCrossings(view, group, now);
  double clipped = group.clipped;
  double live = group.live;
  for (std::size_t place = 0; place < candidates_; ++place) {
    Scored& scored = scored_[crossings ? by_latency_[place].candidate : place];
    if (crossings) {
      clipped += crossing_count_[place];
      live -= crossing_sum_[place];
    }
    const EdgeServingCandidate& candidate = scored.candidate;
    const double age = Aged(now + candidate.latency - group.anchor, group.slo);
    scored.score += options_.clip * clipped + live * age;
    scored.magnitude += options_.clip * clipped + group.magnitude * age;
    if (&group == &groups_[queues_[candidate.model.value()].group]) {
      scored.score -= Served(view, candidate, group, age, now);
    }
  }
}

// Fills the crossing tables for this group; false when no request of it reaches the clip so soon.
bool EdgeServing::FindCrossings(const View& view, const Group& group, TimePoint now) {
  bool found = false;
  for (const ModelId m : group.members) {
    const RequestQueue& queue = view.queues[m.value()];
    const QueueSums& sums = queues_[m.value()];
    const std::size_t size = queue.size();
    if (sums.live == size) continue;
    if (now + longest_ - queue[sums.live].deadline <= group.clip_after) continue;
    if (!found) {
      SortByLatency();
      std::fill_n(crossing_count_.begin(), candidates_, 0.0);
      std::fill_n(crossing_sum_.begin(), candidates_, 0.0);
      found = true;
    }
    const std::size_t end = FirstLive(queue, sums.live, size, group.clip_after, now + longest_);
    AddCrossings(queue, sums, end, group, now);
  }
  return found;
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
      crossing_count_[place] += static_cast<double>(to - from);
      crossing_sum_[place] += sums.Before(to) - sums.Before(from);
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
    crossing_count_[place] += 1;
    crossing_sum_[place] += sums.Before(from + 1) - sums.Before(from);
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
  const double doubt = kRounding * std::max(challenger.magnitude, best.magnitude);
  if (std::abs(margin) > doubt) return margin < 0;
  challenger.score = StabilityScore(view, challenger.candidate, options_.clip, now);
  best.score = StabilityScore(view, best.candidate, options_.clip, now);
  return challenger.score < LeastToBeat(best.score);
}

}  // namespace tactus
