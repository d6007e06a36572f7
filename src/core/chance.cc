#include "core/chance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/rng.h"
#include "base/weighted_turn.h"
#include "core/window_drop.h"

namespace tactus {
namespace {

// Requests a second that an entry serves if its batches are full.
double PlannedRps(const LanePlan& lane, const PlanEntry& entry) {
  return entry.batch / ToSeconds(std::max(lane.cycle, Nanos(1)));
}

// Lanes that share models, as policies/planned runs them: on each its models take turns, each up to
// its planned batch, or more if it is alone; heads are given up that would hold a batch under its
// size. A model's requests lie in one queue; they are divided among its lanes as they come, and a
// lane takes as many from the queue's front as were sent to it.
class LanesRun {
 public:
  explicit LanesRun(const PlanInput& input) : input_(input), rng_(Rng::Stream(1, "core/chance")) {}

  // `beside`: the part of the time in which the device's other lanes run batches.
  void Add(const LanePlan& planned, double beside) {
    Lane& lane = lanes_.emplace_back();
    for (const PlanEntry& entry : planned.entries) {
      const std::size_t m = QueueOf(entry.model);
      CHECK(entry.batch >= 1 && entry.batch <= input_.profile->max_batch(entry.model),
            "a plan that fits its profile");
      Turn& turn = lane.turns.emplace_back();
      turn.queue = m;
      turn.route = queues_[m].routes.size();
      turn.batch = entry.batch;
      for (int b = 1; b <= input_.profile->max_batch(entry.model); ++b) {
        turn.takes.push_back(input_.Latency(entry.model, b, planned.spec.lane_class));
      }
      const double planned_s = ToSeconds(turn.takes[entry.batch - 1]);
      if (planned_s > 0) {
        turn.slowdown += beside * std::max(0.0, ToSeconds(entry.length) / planned_s - 1);
      }
      Queue& queue = queues_[m];
      queue.quickest = std::min(queue.quickest, turn.takes.front());
      queue.batch = std::max(queue.batch, entry.batch);
      queue.routes.push_back({.weight = PlannedRps(planned, entry)});
      queue.credit.push_back(0);
    }
  }

  // Until that many batches have run, or as many requests violated their deadlines; nothing where
  // none come.
  bool Run(std::int64_t batches) {
    double all_rps = 0;
    for (Queue& queue : queues_) queue.rates_until = all_rps += queue.rate_rps;
    if (all_rps <= 0) return false;
    for (const std::int64_t until = steps_ + batches; steps_ < until;) {
      TimePoint next = next_;
      for (const Lane& lane : lanes_) {
        if (lane.until > now_) next = std::min(next, lane.until);
      }
      now_ = next;
      while (next_ <= now_) Arrive(all_rps);
      for (Queue& queue : queues_) GiveUpUnmeetable(queue);
      for (Lane& lane : lanes_) {
        while (lane.until <= now_ && ServeNext(lane)) {
        }
      }
    }
    for (Queue& queue : queues_) queue.slices.push_back({queue.arrived, queue.violations});
    return true;
  }
  std::int64_t arrived() const { return arrived_; }

  // Of the requests that came to the models of these lanes.
  void WriteViolations(std::vector<ChanceViolations>& models) const {
    for (const Queue& queue : queues_) models[queue.model.value()] = ViolationsOf(queue);
  }
  // Whether every common model is three standard errors from the limit, or one is that far above
  // it. Rare models would need too long.
  bool Decided() const {
    constexpr double kErrors = 3;    // standard errors
    constexpr double kRare = 0.005;  // fraction of all requests
    bool all = true;
    for (const Queue& queue : queues_) {
      if (queue.rate_rps < kRare * queues_.back().rates_until) continue;
      const ChanceViolations violations = ViolationsOf(queue);
      const double off = std::abs(violations.ratio - kMostViolationsByChance);
      if (off < kErrors * violations.error) {
        all = false;
      } else if (violations.ratio > kMostViolationsByChance) {
        return true;
      }
    }
    return all;
  }

 private:
  struct Route {
    double weight = 0;
    int claims = 0;
  };
  struct Slice {  // of a run: the counts at its end
    std::int64_t arrived = 0;
    std::int64_t violations = 0;
  };
  struct Queue {
    ModelId model;
    int batch = 1;  // the largest planned
    double rate_rps = 0;
    double rates_until = 0;  // of this one and those before it
    Duration slo{};
    Duration quickest = kNever - kStart;
    std::vector<Route> routes;
    std::vector<double> credit;  // by route
    std::vector<TimePoint> came;
    std::size_t head = 0;  // those before it are gone
    std::int64_t arrived = 0;
    std::int64_t violations = 0;
    std::vector<Slice> slices;

    int waiting() const { return static_cast<int>(came.size() - head); }
    TimePoint deadline(int i) const { return came[head + i] + slo; }
    void Pop(int count) {
      head += count;
      if (2 * head < came.size()) return;
      came.erase(came.begin(), came.begin() + static_cast<std::ptrdiff_t>(head));
      head = 0;
    }
    // Each is taken from the claims of the lane that has most of them.
    void GiveUp(int count) {
      violations += count;
      Pop(count);
      for (; count > 0; --count) --std::ranges::max_element(routes, {}, &Route::claims)->claims;
    }
  };
  struct Turn {
    std::size_t queue = 0;
    std::size_t route = 0;
    int batch = 1;                // as planned
    std::vector<Duration> takes;  // by batch less 1, without neighbours: what the policy counts on
    double slowdown = 1;
  };
  struct Lane {
    std::vector<Turn> turns;
    std::size_t next = 0;
    TimePoint until = kStart;
  };

  std::size_t QueueOf(ModelId m) {
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      if (queues_[q].model == m) return q;
    }
    const PlannedModel& model = input_.models[m.value()];
    queues_.push_back({.model = m, .rate_rps = model.expected_rps, .slo = model.slo});
    return queues_.size() - 1;
  }

  // Violations come in bursts: how much slices differ tells how well their mean is known, and where
  // there was none yet, the next burst may be a batch.
  static ChanceViolations ViolationsOf(const Queue& queue) {
    const auto arrived = static_cast<double>(std::max<std::int64_t>(1, queue.arrived));
    ChanceViolations all = {.ratio = static_cast<double>(queue.violations) / arrived};
    double squares = 0;
    Slice before;
    for (const Slice& slice : queue.slices) {
      const auto came = static_cast<double>(slice.arrived - before.arrived);
      const double off =
          static_cast<double>(slice.violations - before.violations) - all.ratio * came;
      squares += off * off;
      before = slice;
    }
    all.error = std::max(std::sqrt(squares) / arrived,
                         std::sqrt(kMostViolationsByChance * queue.batch / arrived));
    return all;
  }

  void Arrive(double all_rps) {
    const double drawn = all_rps * rng_.Uniform();
    std::size_t q = 0;
    while (q + 1 < queues_.size() && drawn >= queues_[q].rates_until) ++q;
    Queue& queue = queues_[q];
    queue.came.push_back(next_);
    ++queue.arrived;
    ++arrived_;
    const std::size_t route = TakeTurn(
        queue.credit, [&](std::size_t r) { return std::optional(queue.routes[r].weight); });
    ++queue.routes[route].claims;
    next_ += std::max(Nanos(1), FromSeconds(rng_.Exponential(all_rps)));
  }

  void GiveUpUnmeetable(Queue& queue) {
    for (; queue.waiting() > 0 && now_ + queue.quickest > queue.deadline(0); ++steps_) {
      queue.GiveUp(1);
    }
  }

  bool ServeNext(Lane& lane) {
    for (std::size_t i = 0; i < lane.turns.size(); ++i) {
      const std::size_t at = (lane.next + i) % lane.turns.size();
      if (!Serve(lane, lane.turns[at])) continue;
      lane.next = (at + 1) % lane.turns.size();
      return true;
    }
    return false;
  }

  bool Serve(Lane& lane, const Turn& turn) {
    Queue& queue = queues_[turn.queue];
    Route& route = queue.routes[turn.route];
    if (route.claims == 0) return false;
    const auto fits = [&](int head, int batch) {
      return now_ + turn.takes[batch - 1] <= queue.deadline(head);
    };
    const bool alone = lane.turns.size() == 1;
    queue.GiveUp(alone && route.claims < turn.batch
                     ? MostServedFrom(turn.batch, route.claims, fits)
                     : WindowDrop(queue.waiting(), turn.batch, route.claims, fits));
    const int most = alone ? static_cast<int>(turn.takes.size()) : turn.batch;
    int batch = std::min(route.claims, most);
    while (batch > 0 && !fits(0, batch)) --batch;
    if (batch == 0) return false;
    const double takes_s = ToSeconds(turn.takes[batch - 1]) * turn.slowdown;
    lane.until = now_ + std::max(Nanos(1), FromSeconds(takes_s));
    for (int i = 0; i < batch; ++i) queue.violations += queue.deadline(i) < lane.until ? 1 : 0;
    ++steps_;
    queue.Pop(batch);
    route.claims -= batch;
    return true;
  }

  const PlanInput& input_;
  Rng rng_;
  std::vector<Queue> queues_;
  std::vector<Lane> lanes_;
  TimePoint now_ = kStart;
  TimePoint next_ = kStart;
  std::int64_t arrived_ = 0;
  std::int64_t steps_ = 0;  // batches, and requests that were given up
};

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

// By lane: the first of those that it shares models with, over others too.
std::vector<std::size_t> GroupsOf(const Plan& plan, std::size_t models) {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> group(plan.lanes.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  std::vector<std::size_t> first(models, kNone);  // lane of a model
  const auto root = [&](std::size_t lane) {
    while (group[lane] != lane) lane = group[lane];
    return lane;
  };
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    for (const PlanEntry& entry : plan.lanes[i].entries) {
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

// In slices until Decided, up to a limit.
void RunLanes(LanesRun& run, std::vector<ChanceViolations>& models) {
  constexpr std::int64_t kSlice = 2'000;  // batches
  constexpr int kLeast = 3;               // slices
  constexpr int kMost = 30;
  constexpr std::int64_t kMostRequests = 1'000'000;
  for (int slice = 1; slice <= kMost && run.arrived() < kMostRequests; ++slice) {
    if (!run.Run(kSlice)) return;
    if (slice >= kLeast && run.Decided()) break;
  }
  run.WriteViolations(models);
}

}  // namespace

std::vector<ChanceViolations> ViolationsByChance(const Plan& plan, const PlanInput& input) {
  std::vector<ChanceViolations> all(input.models.size());
  const std::vector<std::size_t> groups = GroupsOf(plan, all.size());
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group] != group) continue;
    LanesRun run(input);
    for (std::size_t i = group; i < groups.size(); ++i) {
      if (groups[i] == group) run.Add(plan.lanes[i], BusyBeside(plan, i));
    }
    std::vector<ChanceViolations> of_group(all.size());
    RunLanes(run, of_group);
    for (std::size_t m = 0; m < all.size(); ++m) {
      if (of_group[m].error > 0) all[m] = of_group[m];
    }
  }
  return all;
}

ChanceViolations ViolationsOfAll(const std::vector<ChanceViolations>& models,
                                 const PlanInput& input) {
  ChanceViolations all;
  double expected_rps = 0;
  double variance = 0;
  for (std::size_t m = 0; m < models.size(); ++m) {
    const double rate_rps = input.models[m].expected_rps;
    expected_rps += rate_rps;
    all.ratio += rate_rps * models[m].ratio;
    variance += rate_rps * rate_rps * models[m].error * models[m].error;
  }
  if (expected_rps <= 0) return {};
  all.ratio /= expected_rps;
  all.error = std::sqrt(variance) / expected_rps;
  return all;
}

bool TooMany(const ChanceViolations& violations) {
  return violations.ratio > kMostViolationsByChance + violations.error;
}

}  // namespace tactus
