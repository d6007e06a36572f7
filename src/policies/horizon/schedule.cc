#include "policies/horizon/schedule.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace tactus {
namespace {

// Of the requests that come while a partial batch can still wait, the part that it counts on.
constexpr double kJoin = 0.8;
// Expected batches gather for this part of an SLO ...
constexpr double kGather = 0.5;
// ... and are looked at this far ahead, of the longest SLO.
constexpr double kAhead = 0.3;
constexpr double kRounding = 1e-9;

}  // namespace

void Schedule::Prepare(const View& view, const LaneKinds& kinds) {
  std::size_t lanes = 0;
  for (std::uint32_t k = 0; k < kinds.size(); ++k) {
    std::size_t places = 0;
    for (const LaneId lane : kinds[k].lanes) places += view.lanes[lane.value()].slots;
    lanes = std::max(lanes, places);
  }
  free_.reserve(lanes);
  ends_.reserve(lanes);
  batches_.reserve(view.models.size() * (kMostOfQueue + kMostExpected));
}

void Schedule::Make(const View& view, const KindOfLane& kind, std::uint32_t number,
                    const Demand& demand, TimePoint now) {
  free_.clear();
  for (const LaneId id : kind.lanes) {
    const Lane& lane = view.lanes[id.value()];
    if (!lane.open) continue;
    Duration busy = lane.HasFreeSlot() ? Duration{} : lane.free_at - now;
    if (!lane.batches.empty()) busy -= view.profile.margin(lane.batches[0].model);
    free_.push_back(std::max(0.0, ToSeconds(busy)));
  }
  std::sort(free_.begin(), free_.end());
  double ahead = 0;
  for (std::size_t i = 0; i < view.models.size(); ++i) {
    if (kind.courses[i].served()) ahead = std::max(ahead, kAhead * ToSeconds(view.models[i].slo));
  }
  batches_.clear();
  for (std::size_t i = 0; i < view.models.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    const Course& course = kind.courses[i];
    if (!course.served()) continue;
    const Outlook& outlook = demand.Of(number, m);
    const int joined = AddQueue(view, course, m, outlook, now);
    if (outlook.rate > 0) AddExpected(view, course, m, outlook, joined, ahead);
  }
  std::sort(batches_.begin(), batches_.end(), [](const PlannedBatch& a, const PlannedBatch& b) {
    return std::tie(a.key, a.model, a.release, a.deadline) <
           std::tie(b.key, b.model, b.release, b.deadline);
  });
  if (batches_.size() > kMost) batches_.resize(kMost);
  LeaveOut(demand);
}

// On one lane the earliest deadline goes first, which is never wrong there. On many a long batch
// cannot make up for a late start by what the others do meanwhile: the latest start counts.
void Schedule::Add(const View& view, const Course& course, PlannedBatch batch) {
  const auto lanes = static_cast<double>(free_.size());
  if (batch.priority == 0) batch.priority = view.models[batch.model.value()].priority;
  batch.margin = ToSeconds(view.profile.margin(batch.model));
  batch.length = ToSeconds(course.quickest()(batch.batch)) - batch.margin;
  batch.deadline -= batch.margin;
  batch.key = batch.deadline - batch.length * (lanes - 1) / lanes;
  batches_.push_back(batch);
}

// Returns how many of the expected requests the last batch counts on.
int Schedule::AddQueue(const View& view, const Course& course, ModelId m, const Outlook& outlook,
                       TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  const BatchCosts& costs = course.quickest();
  const int size = static_cast<int>(queue.size());
  for (int at = 0, k = 0; at < size; ++k) {
    const Duration slack = queue[at].deadline - now;
    const int together =
        at == 0 ? queue.Batchable(course.max_batch()) : std::min(course.max_batch(), size - at);
    const int fitting = costs.Largest(together, slack);
    // A head that these lanes cannot meet any more is left to others, or lost.
    if (at == 0 && fitting == 0) return 0;
    PlannedBatch next{.model = m, .first = at, .waiting = std::max(1, fitting)};
    next.batch = next.waiting;
    next.deadline = ToSeconds(slack);
    // Of those further back the model's own does.
    if (at == 0) next.priority = queue.Priority(next.waiting, view.models[m.value()].priority);
    at += next.waiting;
    if (at == size && next.waiting < course.max_batch()) {
      const double room = std::max(0.0, ToSeconds(slack - costs(next.waiting)));
      const int joins = static_cast<int>(kJoin * outlook.rate * room);
      next.batch = std::max(
          next.waiting, costs.Largest(std::min(course.max_batch(), next.waiting + joins), slack));
      Add(view, course, next);
      return next.batch - next.waiting;
    }
    if (k == kMostOfQueue - 1 && at < size) {
      next.count += static_cast<double>(size - at) / next.waiting;
      at = size;
    }
    Add(view, course, next);
  }
  return 0;
}

// Near ones singly, those further off by twos, fours and so on, at the middle of their time.
void Schedule::AddExpected(const View& view, const Course& course, ModelId m,
                           const Outlook& outlook, int joined, double ahead) {
  const double slo = ToSeconds(view.models[m.value()].slo);
  const int each = std::clamp(static_cast<int>(std::lround(kGather * outlook.rate * slo)), 1,
                              course.max_batch());
  const double gap = each / outlook.rate;
  double head = (joined + 0.5) / outlook.rate;
  double left = (ahead - head) / gap;
  double count = 1;
  for (int k = 0; left > 0 && k < kMostExpected; ++k) {
    if (k >= 2 && k % 2 == 0) count *= 2;
    const double middle = head + (count - 1) / 2 * gap;
    PlannedBatch next{.model = m, .batch = each, .count = count, .deadline = middle + slo};
    next.release = std::min(middle + (each - 1) / outlook.rate,
                            next.deadline - ToSeconds(course.quickest()(each)));
    Add(view, course, next);
    head += count * gap;
    left -= count;
  }
}

bool Schedule::Place(bool mark) {
  ends_.assign(free_.begin(), free_.end());
  double gap = 0;  // lane time that expected batches leave unused before they come
  for (PlannedBatch& next : batches_) {
    if (next.left_out) continue;
    const int pieces =
        static_cast<int>(std::max(1.0, std::min(next.count, static_cast<double>(ends_.size()))));
    const double work = next.count * next.length / pieces;
    double start = 0;
    for (int i = 0; i < pieces; ++i) {
      double begin = ends_.front();
      double earlier = 0;
      if (next.release > begin) {
        gap += next.release - begin;
        begin = next.release;
      } else if (next.release <= 0 && gap > 0) {  // it waits already: it goes into such a gap
        earlier = std::min(gap, work);
        gap -= earlier;
      }
      if (i == 0) start = begin - earlier;
      const double end = begin - earlier + work;
      std::size_t at = 1;
      for (; at < ends_.size() && ends_[at] < end; ++at) ends_[at - 1] = ends_[at];
      ends_[at - 1] = end;
    }
    const bool late = start + next.length > next.deadline + kRounding;
    if (mark) {
      next.late = late;
      next.start = start;
    } else if (late && !next.late) {
      return false;
    }
  }
  return true;
}

// Where somebody would be late even at the quickest exits: of those before it, and itself, the
// lowest priority goes first, then whoever costs the lanes most for each request; less so, the more
// of its model was lost of late, so that no model bears it all.
void Schedule::LeaveOut(const Demand& demand) {
  const auto price = [&](const PlannedBatch& b) {
    return b.length / b.batch * (1 - demand.LostPart(b.model));
  };
  for (;;) {
    Place(true);
    const auto late = std::find_if(batches_.begin(), batches_.end(),
                                   [](const PlannedBatch& b) { return !b.left_out && b.late; });
    if (late == batches_.end()) return;
    auto worst = late;
    for (auto b = batches_.begin(); b != late; ++b) {
      if (b->left_out) continue;
      if (std::pair(b->priority, price(*b)) > std::pair(worst->priority, price(*worst))) worst = b;
    }
    worst->left_out = true;
  }
}

bool Schedule::Deepen(PlannedBatch& batch, double length) {
  if (!batch.late && batch.start + length > batch.deadline + kRounding) return false;
  const double before = std::exchange(batch.length, length);
  if (Place(false)) return true;
  batch.length = before;
  return false;
}

ExitId Schedule::ExitFor(const KindOfLane& kind, std::size_t place) {
  std::rotate(batches_.begin(), batches_.begin() + static_cast<std::ptrdiff_t>(place),
              batches_.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  PlannedBatch& go = batches_.front();
  const Course& own = kind.courses[go.model.value()];
  go.left_out = false;
  go.batch = go.waiting;
  go.length = ToSeconds(own.quickest()(go.batch)) - go.margin;
  Place(true);
  bool open = own.last_step() > 0;
  for (const Step& step : kind.steps) {
    if (!open) break;
    const Course& course = kind.courses[step.model.value()];
    for (PlannedBatch& batch : batches_) {
      if (batch.model != step.model || batch.step != step.to - 1 || batch.left_out) continue;
      const bool deeper = Deepen(batch, ToSeconds(course.at(step.to)(batch.batch)) - batch.margin);
      if (deeper) batch.step = step.to;
      if (&batch == &go) open = deeper && go.step < own.last_step();
    }
  }
  // What is left then may do for an exit that is not on the hull.
  int exit = own.hull[go.step];
  for (int e = static_cast<int>(own.costs.size()) - 1; e > exit; --e) {
    if (own.accuracy[e] <= own.accuracy[exit]) continue;
    if (!Deepen(go, ToSeconds(own.costs[e](go.batch)) - go.margin)) continue;
    exit = e;
  }
  return ExitId{static_cast<ExitId::rep>(exit)};
}

}  // namespace tactus
