#include "planners/gpulet/duty_cycle.h"

#include <algorithm>
#include <cmath>

namespace tactus {
namespace {

constexpr double kRounding = 1e-9;  // of a request

Duration Latency(const PlanInput& input, LaneClass lane, const LaneMember& member, int batch) {
  const Duration alone = input.Latency(member.model, batch, lane);
  if (member.slowdown == 1) return alone;
  return Nanos(std::llround(static_cast<double>(alone.count()) * member.slowdown));
}

// The batches that gather in `cycle`, and the longest cycle that they allow; nothing where a batch
// is larger than profiled or the batches do not fit.
std::optional<DutyCycle> TryCycle(const PlanInput& input, LaneClass lane,
                                  std::span<const LaneMember> members, Duration cycle) {
  DutyCycle fit{.cycle = cycle};
  for (const LaneMember& member : members) {
    const double gathered = member.rate_rps * ToSeconds(cycle);
    const int batch = std::max(1, static_cast<int>(std::ceil(gathered - kRounding)));
    if (batch > input.profile->max_batch(member.model)) return std::nullopt;
    const Duration latency = Latency(input, lane, member, batch);
    fit.busy += latency;
    fit.cycle = std::min(fit.cycle, input.models[member.model.value()].slo - latency);
    fit.batches.push_back(batch);
  }
  if (fit.busy > fit.cycle) return std::nullopt;
  return fit;
}

double Occupancy(const DutyCycle& fit) { return ToSeconds(fit.busy) / ToSeconds(fit.cycle); }

}  // namespace

std::optional<DutyCycle> FitCycle(const PlanInput& input, LaneClass lane,
                                  std::span<const LaneMember> members) {
  std::optional<DutyCycle> best;
  for (const LaneMember& member : members) {
    const Duration slo = input.models[member.model.value()].slo;
    for (int batch = 1; batch <= input.profile->max_batch(member.model); ++batch) {
      // As long as this member gathers no more than `batch`; no cycle is longer than an SLO.
      const double whole_ns = 1e9 * batch / std::max(member.rate_rps, 1e-9);
      const Duration cycle = whole_ns < static_cast<double>(slo.count())
                                 ? Nanos(std::llround(std::floor(whole_ns)))
                                 : slo;
      auto fit = TryCycle(input, lane, members, cycle);
      if (fit && (!best || Occupancy(*fit) < Occupancy(*best))) best = std::move(fit);
      if (cycle == slo) break;
    }
  }
  return best;
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
