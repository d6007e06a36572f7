#include "core/lanes_run.h"

#include <array>
#include <limits>
#include <memory>
#include <numbers>
#include <optional>

#include "base/check.h"
#include "base/weighted_turn.h"
#include "core/window_drop.h"

namespace tactus {

namespace {

constexpr int kGapBits = 11;
constexpr std::size_t kGaps = std::size_t{1} << kGapBits;

// Of x in (0, 1].
constexpr double Log(double x) {
  double log = 0;
  for (; x < 0.75; x *= 2) log -= std::numbers::ln2;
  const double y = (x - 1) / (x + 1);
  double power = y;
  for (int n = 1; n < 40; n += 2) {
    log += 2 * power / n;
    power *= y * y;
  }
  return log;
}

// Of the exponential distribution of mean 1: what as many equally likely gaps are in the middle.
constexpr std::array<double, kGaps> kGapQuantiles = [] {
  std::array<double, kGaps> gaps{};
  double all = 0;
  for (std::size_t i = 0; i < kGaps; ++i) {
    gaps[i] = -Log(1 - (static_cast<double>(i) + 0.5) / kGaps);
    all += gaps[i];
  }
  for (double& gap : gaps) gap *= kGaps / all;
  return gaps;
}();

}  // namespace

// A table of gaps, as logarithms would take most of the time that simulations take.
void PoissonInstants::DrawUpTo(std::size_t i) {
  constexpr std::size_t kAtLeast = 1000;
  constexpr int kOfAWord = 64 / kGapBits;
  double last = instants_.empty() ? 0 : instants_.back();
  const std::size_t until = std::max(i + 1, instants_.size() + kAtLeast);
  while (instants_.size() < until) {
    std::uint64_t word = rng_.Next();
    for (int k = 0; k < kOfAWord; ++k, word >>= kGapBits) {
      instants_.push_back(last += kGapQuantiles[word % kGaps]);
    }
  }
}

LanesRun::LanesRun(std::span<const LaneWork> lanes, const PlanInput& input,
                   ArrivalStreams& streams) {
  for (const LaneWork& lane : lanes) Add(lane, input, streams);
}

std::size_t LanesRun::QueueOf(ModelId m, const PlanInput& input, ArrivalStreams& streams) {
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    if (queues_[q].model == m) return q;
  }
  const PlannedModel& model = input.models[m.value()];
  CHECK(model.expected_rps > 0, "a model of which something is expected");
  const std::size_t q = queues_.size();
  while (streams.size() <= q) streams.push_back(std::make_unique<PoissonInstants>(streams.size()));
  Queue& queue = queues_.emplace_back();
  queue.model = m;
  queue.rate_rps = model.expected_rps;
  queue.gap = 1 / model.expected_rps;
  queue.slo = ToSeconds(model.slo);
  queue.quickest = std::numeric_limits<double>::infinity();
  queue.instants = streams[q].get();
  queue.next = queue.instants->At(0) * queue.gap;
  return q;
}

void LanesRun::Add(const LaneWork& work, const PlanInput& input, ArrivalStreams& streams) {
  Lane& lane = lanes_.emplace_back();
  lane.alone = work.alone;
  for (const LaneWork::Turn& planned : work.turns) {
    const std::size_t q = QueueOf(planned.model, input, streams);
    Queue& queue = queues_[q];
    const int largest = input.profile->max_batch(planned.model);
    CHECK(planned.batch >= 1 && planned.batch <= largest, "a plan that fits its profile");
    Turn& turn = lane.turns.emplace_back();
    turn.queue = q;
    turn.route = queue.routes.size();
    turn.batch = planned.batch;
    turn.slowdown = 1 + static_cast<double>(planned.slowdown) / LaneWork::kSlowdownSteps;
    for (int b = 1; b <= largest; ++b) {
      turn.takes.push_back(ToSeconds(input.Latency(planned.model, b, work.lane_class)));
    }
    queue.quickest = std::min(queue.quickest, turn.takes.front());
    queue.batch = std::max(queue.batch, planned.batch);
    queue.routes.push_back({.weight = planned.weight});
    queue.all_turns += static_cast<std::size_t>(planned.weight);
    queue.credit.push_back(0);
  }
}

void LanesRun::Queue::ArriveUntil(double now) {
  const std::size_t before = tail;
  for (; next <= now; next = instants->At(tail) * gap) ++tail;
  if (routes.size() == 1) {
    routes.front().claims += static_cast<int>(tail - before);
    return;
  }
  for (std::size_t i = before; i < tail; ++i) ++routes[NextRoute()].claims;
}

std::size_t LanesRun::Queue::NextRoute() {
  if (turn == turns.size()) {
    const auto weight = [&](std::size_t r) { return std::optional<double>(routes[r].weight); };
    turns.push_back(static_cast<std::uint16_t>(TakeTurn(credit, weight)));
  }
  const std::size_t route = turns[turn];
  if (++turn == all_turns) turn = 0;
  return route;
}

// Each is taken from the claims of the lane that has most of them.
void LanesRun::Queue::GiveUp(int count) {
  violations += count;
  head += count;
  for (; count > 0; --count) --std::ranges::max_element(routes, {}, &Route::claims)->claims;
}

void LanesRun::Queue::Count() {
  Counted now = counted.empty() ? Counted{} : counted.back();
  const auto came = static_cast<double>(static_cast<std::int64_t>(tail) - now.arrived);
  const auto gone = static_cast<double>(violations - now.violations);
  now.arrived = static_cast<std::int64_t>(tail);
  now.violations = violations;
  now.violations_squared += gone * gone;
  now.violations_came += gone * came;
  now.came_squared += came * came;
  counted.push_back(now);
}

// A lane that is free waits for requests, others until they are.
double LanesRun::NextEvent() const {
  double next = std::numeric_limits<double>::infinity();
  bool free = false;
  for (const Lane& lane : lanes_) {
    if (lane.until > now_) {
      next = std::min(next, lane.until);
    } else {
      free = true;
    }
  }
  if (!free) return next;
  for (const Queue& queue : queues_) next = std::min(next, queue.next);
  return next;
}

void LanesRun::RunSlice(std::int64_t batches) {
  for (const std::int64_t until = steps_ + batches; steps_ < until;) {
    now_ = NextEvent();
    for (Queue& queue : queues_) {
      if (queue.next <= now_) queue.ArriveUntil(now_);
    }
    for (Lane& lane : lanes_) {
      while (lane.until <= now_ && ServeNext(lane)) {
      }
    }
  }
  for (Queue& queue : queues_) queue.Count();
}

inline void LanesRun::GiveUpUnmeetable(Queue& queue) {
  for (; queue.waiting() > 0 && now_ + queue.quickest > queue.deadline(0); ++steps_) {
    queue.GiveUp(1);
  }
}

bool LanesRun::ServeNext(Lane& lane) {
  const std::size_t turns = lane.turns.size();
  for (std::size_t i = 0, at = lane.next; i < turns; ++i) {
    const std::size_t after = at + 1 < turns ? at + 1 : 0;
    if (Serve(lane, lane.turns[at])) {
      lane.next = after;
      return true;
    }
    at = after;
  }
  return false;
}

bool LanesRun::Serve(Lane& lane, const Turn& turn) {
  Queue& queue = queues_[turn.queue];
  Route& route = queue.routes[turn.route];
  if (route.claims == 0) return false;
  GiveUpUnmeetable(queue);
  if (route.claims == 0) return false;
  const auto fits = [&](int head, int batch) {
    return now_ + turn.takes[batch - 1] <= queue.deadline(head);
  };
  queue.GiveUp(lane.alone && route.claims < turn.batch
                   ? MostServedFrom(turn.batch, route.claims, fits)
                   : WindowDrop(queue.waiting(), turn.batch, route.claims, fits));
  const int most = lane.alone ? static_cast<int>(turn.takes.size()) : turn.batch;
  int batch = std::min(route.claims, most);
  while (batch > 0 && !fits(0, batch)) --batch;
  if (batch == 0) return false;
  lane.until = now_ + turn.takes[batch - 1] * turn.slowdown;
  // Deadlines ascend.
  for (int i = 0; i < batch && queue.deadline(i) < lane.until; ++i) ++queue.violations;
  ++steps_;
  queue.head += batch;
  route.claims -= batch;
  return true;
}

}  // namespace tactus
