#include "planners/gpulet/duty_cycle.h"

#include <algorithm>
#include <cmath>

namespace tactus {
namespace {

constexpr double kRequestRounding = 1e-9;  // of a request

Duration Latency(const PlanInput& input, LaneClass lane, const LaneMember& member, int batch) {
  const Duration alone = input.Latency(member.model, batch, lane);
  if (member.slowdown == 1) return alone;
  return Nanos(std::llround(static_cast<double>(alone.count()) * member.slowdown));
}

// What gathers in a cycle, and how long a cycle it allows.
struct Gathered {
  Duration cycle{};
  Duration busy{};
};

int BatchIn(const LaneMember& member, Duration cycle) {
  const double gathered = member.rate_rps * ToSeconds(cycle);
  return std::max(1, static_cast<int>(std::ceil(gathered - kRequestRounding)));
}

// Nothing where a batch is larger than profiled.
std::optional<Gathered> Gather(const PlanInput& input, LaneClass lane,
                               std::span<const LaneMember> members, Duration cycle) {
  Gathered all{.cycle = cycle};
  for (const LaneMember& member : members) {
    const int batch = BatchIn(member, cycle);
    if (batch > input.profile->max_batch(member.model)) return std::nullopt;
    const Duration latency = Latency(input, lane, member, batch);
    all.busy += latency;
    all.cycle = std::min(all.cycle, input.models[member.model.value()].slo - latency);
  }
  return all;
}

// The longest cycle in which the member gathers no more than `batch`; no cycle is longer than an
// SLO.
Duration Filled(const PlanInput& input, const LaneMember& member, int batch) {
  const Duration slo = input.models[member.model.value()].slo;
  const double whole_ns = 1e9 * batch / std::max(member.rate_rps, 1e-9);
  return whole_ns < static_cast<double>(slo.count()) ? Nanos(std::llround(std::floor(whole_ns)))
                                                     : slo;
}

double Occupancy(const Gathered& all) { return ToSeconds(all.busy) / ToSeconds(all.cycle); }

}  // namespace

std::optional<DutyCycle> FitCycle(const PlanInput& input, LaneClass lane,
                                  std::span<const LaneMember> members) {
  Gathered best;
  Duration longest{};
  for (const LaneMember& member : members) {
    const Duration slo = input.models[member.model.value()].slo;
    for (int batch = 1; batch <= input.profile->max_batch(member.model); ++batch) {
      const Duration cycle = Filled(input, member, batch);
      const auto all = Gather(input, lane, members, cycle);
      if (!all) break;  // a longer cycle gathers more
      const bool fits = all->busy <= all->cycle;
      if (fits && (longest == Duration{} || Occupancy(*all) < Occupancy(best))) {
        best = *all;
        longest = cycle;
      }
      if (cycle == slo) break;
    }
  }
  if (longest == Duration{}) return std::nullopt;
  DutyCycle fit{.cycle = best.cycle, .busy = best.busy};
  for (const LaneMember& member : members) fit.batches.push_back(BatchIn(member, longest));
  return fit;
}

double MostBeside(const PlanInput& input, LaneClass lane, std::span<const LaneMember> members,
                  ModelId joining, double slowdown) {
  const LaneMember joins = {joining, 0, slowdown};
  const Duration slo = input.models[joining.value()].slo;
  std::vector<Duration> steps = {slo};  // at which a member's batch grows
  for (const LaneMember& member : members) {
    for (int batch = 1; batch <= input.profile->max_batch(member.model); ++batch) {
      const Duration step = Filled(input, member, batch);
      if (step >= slo) break;
      steps.push_back(step);
    }
  }
  std::ranges::sort(steps);
  double most = 0;
  Duration from{};
  for (const Duration to : steps) {
    const auto others = Gather(input, lane, members, to);
    if (!others) break;
    // Batches as they are in `to`, the cycle as short as the joining batch allows.
    for (int batch = 1; batch <= input.profile->max_batch(joining); ++batch) {
      const Duration latency = Latency(input, lane, joins, batch);
      const Duration cycle = std::max(from, others->busy + latency);
      if (cycle > others->cycle || cycle + latency > slo) break;
      most = std::max(most, batch / ToSeconds(cycle));
    }
    from = to;
  }
  return most;
}

double MostRate(const PlanInput& input, LaneClass lane, ModelId model, double slowdown) {
  double most = 0;
  for (int batch = 1; batch <= input.profile->max_batch(model); ++batch) {
    const Duration latency = Latency(input, lane, {model, 0, slowdown}, batch);
    if (2 * latency > input.models[model.value()].slo) continue;
    most = std::max(most, batch / ToSeconds(latency));
  }
  return most;
}

}  // namespace tactus
