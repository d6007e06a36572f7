#include "planners/fleet_estimate.h"

#include <algorithm>
#include <cmath>

namespace tactus {
namespace {

constexpr double kMostLinkLoad = 0.9;

// Whatever is longer than forever is no longer than it.
Duration UpToForever(double seconds) { return FromSeconds(std::min(seconds, ToSeconds(kForever))); }

// At least 1; a number that no int holds is the most, too.
int WholeInstances(double instances) {
  return static_cast<int>(std::clamp(std::ceil(instances - 1e-9), 1.0, 1.0 * kMostInstances));
}

// Where the input of the stage comes from, and what of it crosses which link.
struct Hop {
  std::size_t link = kNoLink;
  bool blocked = false;  // two sites without a link
};

Hop HopOf(const FleetInput& input, DeviceId from, DeviceId to) {
  if (input.devices[from.value()].site == input.devices[to.value()].site) return {};
  const std::size_t link = input.LinkBetween(from, to);
  return {link, link == kNoLink};
}

template <class Each>
void EachHop(const FleetInput& input, const FleetPipeline& pipeline,
             const std::vector<StagePlacement>& placed, Each each) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const FleetStage& stage = pipeline.stages[s];
    if (stage.after.empty()) each(s, HopOf(input, pipeline.source, placed[s].device));
    for (const FleetStageId before : stage.after) {
      each(s, HopOf(input, placed[before.value()].device, placed[s].device));
    }
  }
}

}  // namespace

const FleetBatch* BatchOf(const FleetInput& input, ModelId model, DeviceId device, int batch) {
  const FleetCost* cost = input.CostOf(model, input.devices[device.value()].kind);
  if (cost == nullptr) return nullptr;
  const auto found = std::ranges::find(cost->batches, batch, &FleetBatch::batch);
  return found == cost->batches.end() ? nullptr : &*found;
}

int LargestBatch(const FleetInput& input, ModelId model, DeviceId device, int most) {
  const FleetCost* cost = input.CostOf(model, input.devices[device.value()].kind);
  int best = cost->batches.front().batch;
  for (const FleetBatch& each : cost->batches) {
    if (each.batch <= most) best = each.batch;
  }
  return best;
}

std::optional<DeviceId> LeastBusyServer(const FleetInput& input, DeviceId source, ModelId model,
                                        std::span<const double> busy) {
  std::optional<DeviceId> best;
  double least = 0;
  for (const DeviceId d : input.ServersFor(source)) {
    const FleetDevice& device = input.devices[d.value()];
    if (input.CostOf(model, device.kind) == nullptr) continue;
    const double load = busy[d.value()] / device.accelerators;
    if (best && load >= least) continue;
    best = d;
    least = load;
  }
  return best;
}

int InstancesFor(double rate_rps, const FleetBatch& batch) {
  const double each = kRateMargin * batch.batch / ToSeconds(batch.total());
  return WholeInstances(rate_rps / each);
}

int WindowsFor(double rate_rps, const FleetBatch& batch, Duration cycle) {
  const double in_cycle = rate_rps * ToSeconds(std::max(cycle, batch.total()));
  return WholeInstances(in_cycle / (kRateMargin * batch.batch));
}

double LeftByMost(double rate_rps, const FleetBatch& batch, int instances) {
  if (instances < kMostInstances) return 0;
  return std::max(0.0, rate_rps - instances * batch.batch / ToSeconds(batch.total()));
}

Duration QueueingTime(double rate_rps, double cv, int instances, const FleetBatch& batch) {
  const double busy = BusyOf(rate_rps, batch) / instances;
  if (busy >= 1) return kForever;
  const double delayed = std::pow(busy, std::sqrt(2.0 * (instances + 1)) - 1);
  const double spread = cv * cv / batch.batch / 2;
  return UpToForever(delayed / (instances * (1 - busy)) * spread * ToSeconds(batch.total()));
}

Duration FillingTime(double rate_rps, double cv, int batch, Duration cycle) {
  if (batch <= 1) return {};
  if (!(rate_rps > 0)) return cycle;
  return std::min(cycle, UpToForever((batch - 1) / (rate_rps * (1 + cv * cv))));
}

Duration TransferTime(const FleetLink& link, double kilobytes, double load_mbps) {
  const double mbps = link.carried_mbps();
  const double busy = load_mbps / mbps;
  if (busy >= kMostLinkLoad) return kForever;
  const double alone = kilobytes * 8e-3 / mbps;
  double again = 0;
  if (link.loss > 0) {
    const double packets = std::max(1.0, std::ceil(kilobytes * 1e3 / kPacketBytes));
    again = ResendRounds(packets, link.loss) * ToSeconds(link.rtt);
  }
  return UpToForever(alone * (1 + busy / (1 - busy)) + again) + link.rtt / 2;
}

double ResendRounds(double packets, double loss) {
  constexpr int kMostRounds = 10'000;  // a link that loses nearly all is of no use anyway
  double rounds = 0;
  for (double lost = loss, k = 1; lost > 0 && k <= kMostRounds; lost *= loss, ++k) {
    const double more = -std::expm1(packets * std::log1p(-lost));
    rounds += more;
    if (more < 1e-9) break;
  }
  return rounds;
}

void AddLinkLoads(const FleetInput& input, FleetPipelineId p,
                  const std::vector<StagePlacement>& placed, double sign, LinkLoads& loads) {
  const FleetPipeline& pipeline = input.pipelines[p.value()];
  EachHop(input, pipeline, placed, [&](std::size_t s, const Hop& hop) {
    if (hop.link == kNoLink) return;
    const double rate = input.RateOf(p, FleetStageId{static_cast<FleetStageId::rep>(s)});
    loads[hop.link] += sign * rate * pipeline.stages[s].in_kb * 8e-3;
  });
}

std::vector<std::size_t> LinksOf(const FleetInput& input, FleetPipelineId p,
                                 const std::vector<StagePlacement>& placed) {
  std::vector<std::size_t> used;
  EachHop(input, input.pipelines[p.value()], placed, [&](std::size_t, const Hop& hop) {
    const bool known = std::ranges::find(used, hop.link) != used.end();
    if (hop.link != kNoLink && !known) used.push_back(hop.link);
  });
  return used;
}

Duration WorstLatency(const FleetInput& input, FleetPipelineId p,
                      const std::vector<StagePlacement>& placed, const LinkLoads& loads) {
  const FleetPipeline& pipeline = input.pipelines[p.value()];
  std::vector<Duration> ready(pipeline.stages.size());  // when a stage's input is there
  EachHop(input, pipeline, placed, [&](std::size_t s, const Hop& hop) {
    if (hop.blocked) {
      ready[s] = kForever;
    } else if (hop.link != kNoLink) {
      ready[s] = std::max(
          ready[s], TransferTime(input.links[hop.link], pipeline.stages[s].in_kb, loads[hop.link]));
    }
  });
  Duration worst{};
  std::vector<Duration> ends(pipeline.stages.size());
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const FleetStage& stage = pipeline.stages[s];
    const StagePlacement& at = placed[s];
    const FleetBatch* batch = BatchOf(input, stage.model, at.device, at.batch);
    if (batch == nullptr) return kForever;
    const double own = input.RateOf(p, FleetStageId{static_cast<FleetStageId::rep>(s)});
    const double rate = at.shared_rps > 0 ? at.shared_rps : own;
    const double cv = CoefficientOf(stage);
    Duration before{};
    for (const FleetStageId each : stage.after) before = std::max(before, ends[each.value()]);
    ends[s] = before + ready[s] + QueueingTime(rate, cv, at.instances, *batch) +
              FillingTime(rate, cv, at.batch, pipeline.slo / 2) + batch->total();
    worst = std::max(worst, ends[s]);
    if (worst >= kForever) return kForever;
  }
  return worst;
}

double BusyOf(double rate_rps, const FleetBatch& batch) {
  return rate_rps * ToSeconds(batch.total()) / batch.batch;
}

}  // namespace tactus
