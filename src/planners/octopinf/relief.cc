#include "planners/octopinf/relief.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace tactus {
namespace {

constexpr int kRounds = 3;
constexpr double kOverfull = 0.01;
constexpr double kMore = 1 + 1e-9;
constexpr double kImpossible = -std::numeric_limits<double>::infinity();

class Relief {
 public:
  Relief(const FleetInput& input, const ReliefOptions& options, PlacedFleet& placed)
      : input_(input),
        options_(options),
        placed_(placed),
        busy_(input.devices.size()),
        memory_mb_(input.devices.size()) {
    for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
      Load(FleetPipelineId{p}, At(FleetPipelineId{p}), 1);
    }
    for (const double part : options.link_parts) {
      FleetInput& slower = slower_.emplace_back(input);
      for (FleetLink& link : slower.links) link.mbps *= part;
    }
  }

  void Run() {
    bool changed = true;
    for (int round = 0; round < kRounds && changed; ++round) {
      changed = false;
      for (FleetPipelineId::rep p = 0; p < input_.pipelines.size(); ++p) {
        changed |= Relieve(FleetPipelineId{p});
      }
    }
  }

 private:
  using Placed = std::vector<StagePlacement>;

  Placed& At(FleetPipelineId p) { return placed_.placement[p.value()]; }
  const FleetCost* CostAt(FleetPipelineId p, std::size_t s, DeviceId device) const {
    return input_.CostOf(input_.pipelines[p.value()].stages[s].model,
                         input_.devices[device.value()].kind);
  }
  double RateOf(FleetPipelineId p, std::size_t s) const {
    return input_.RateOf(p, FleetStageId{static_cast<FleetStageId::rep>(s)});
  }
  const FleetBatch& Batch(FleetPipelineId p, std::size_t s, const StagePlacement& at) const {
    return *BatchOf(input_, input_.pipelines[p.value()].stages[s].model, at.device, at.batch);
  }
  // Accelerators of the device that may be busy; with windows, streams of them.
  double Has(DeviceId d) const {
    const FleetDevice& device = input_.devices[d.value()];
    const double all = device.accelerators * (options_.windows ? device.streams : 1);
    return all * (device.server ? 1 : options_.most_edge);
  }
  double Takes(FleetPipelineId p, std::size_t s, const StagePlacement& at) const {
    return BusyOf(RateOf(p, s), Batch(p, s, at));
  }

  void Load(FleetPipelineId p, const Placed& placed, double sign) {
    for (std::size_t s = 0; s < placed.size(); ++s) {
      const FleetBatch& batch = Batch(p, s, placed[s]);
      const std::size_t d = placed[s].device.value();
      busy_[d] += sign * Takes(p, s, placed[s]);
      memory_mb_[d] +=
          sign * (CostAt(p, s, placed[s].device)->weights_mb + placed[s].instances * batch.peak_mb);
    }
  }

  bool Relieve(FleetPipelineId p) {
    Placed best = At(p);
    Load(p, best, -1);
    AddLinkLoads(input_, p, best, -1, placed_.links);
    double value = Value(p, best);
    if (value < ResultsOf(p) / kMore) {
      for (const bool at_source : {true, false}) {
        Placed start = AllAt(p, at_source);
        double reached = Value(p, start);
        Climb(p, start, reached);
        if (reached > value) std::tie(best, value) = std::pair(std::move(start), reached);
      }
      Climb(p, best, value);
    }
    const bool changed = best != At(p);
    if (changed) Explain(p, best);
    At(p) = std::move(best);
    Load(p, At(p), 1);
    AddLinkLoads(input_, p, At(p), 1, placed_.links);
    return changed;
  }

  double ResultsOf(FleetPipelineId p) const {
    return RateOf(p, input_.pipelines[p.value()].stages.size() - 1);
  }

  // Results a second that it would have in time, less what others on its devices would lose by it,
  // an accelerator's second being worth as much to them as to it. Below 0 where it is late, the
  // more so the later.
  double Value(FleetPipelineId p, const Placed& placed) {
    Load(p, placed, 1);
    const double sent = SentInTime(p, placed);
    double part = 1, own = 0;
    bool fits = true;
    for (std::size_t s = 0; s < placed.size(); ++s) {
      const DeviceId d = placed[s].device;
      part = std::min(part, Has(d) / std::max(busy_[d.value()], Has(d)));
      own += Takes(p, s, placed[s]);
      const FleetDevice& device = input_.devices[d.value()];
      fits &= memory_mb_[d.value()] <= device.memory_mb * device.accelerators;
    }
    Load(p, placed, -1);
    if (!fits) return kImpossible;
    if (sent < 0) return sent;
    // One batch at a time: whoever waits for what is too much is late as well. Not 0, as another
    // place may be no better.
    if (options_.windows && part < 1) part *= kOverfull;
    return ResultsOf(p) * (part * sent - LostByOthers(p, placed) / std::max(own, 1e-12));
  }

  // Which part of its items comes through the links in time, mean over what these may carry. Below
  // 0 where none would, the more so the later.
  double SentInTime(FleetPipelineId p, const Placed& placed) {
    AddLinkLoads(input_, p, placed, 1, placed_.links);
    const std::vector<std::size_t> used = LinksOf(input_, p, placed);
    double sum = 0;
    Duration least = kForever;
    for (const FleetInput& slower : slower_) {
      sum += PartInTime(slower, p, placed, used, least);
      if (used.empty()) {
        sum *= static_cast<double>(slower_.size());
        break;
      }
    }
    AddLinkLoads(input_, p, placed, -1, placed_.links);
    const double slo = ToSeconds(input_.pipelines[p.value()].slo);
    return sum > 0 ? sum / static_cast<double>(slower_.size()) : -ToSeconds(least) / slo;
  }

  // The largest part of its items that the links let through in time; 0 where none is, and then
  // `least` is what an item takes at least.
  double PartInTime(const FleetInput& input, FleetPipelineId p, const Placed& placed,
                    const std::vector<std::size_t>& used, Duration& least) {
    LinkLoads& links = placed_.links;
    std::vector<double> loads;
    for (const std::size_t l : used) loads.push_back(links[l]);
    double reached = 0;
    for (const double most : options_.through) {
      double part = 1;
      for (std::size_t i = 0; i < used.size(); ++i) {
        const double through = std::min(loads[i], most * input.links[used[i]].carried_mbps());
        if (loads[i] > 0) part = std::min(part, through / loads[i]);
        links[used[i]] = through;
      }
      const Duration latency = WorstLatency(input, p, placed, links);
      least = std::min(least, latency);
      if (latency <= input.pipelines[p.value()].slo) reached = part;
      if (reached > 0 || used.empty()) break;
    }
    for (std::size_t i = 0; i < used.size(); ++i) links[used[i]] = loads[i];
    return reached;
  }

  // Accelerator seconds a second.
  double LostByOthers(FleetPipelineId p, const Placed& placed) const {
    double lost = 0;
    for (std::size_t s = 0; s < placed.size(); ++s) {
      const DeviceId d = placed[s].device;
      double added = 0;
      bool first = true;
      for (std::size_t t = 0; t < placed.size(); ++t) {
        if (placed[t].device != d) continue;
        first &= t >= s;
        added += Takes(p, t, placed[t]);
      }
      if (!first) continue;
      const double others = busy_[d.value()];
      const auto sustained = [&](double busy) { return Has(d) / std::max(busy, Has(d)); };
      lost += others * (sustained(others) - sustained(others + added));
    }
    return lost;
  }

  // Batches of one: where it may be at its source, else on servers, or the other way round.
  Placed AllAt(FleetPipelineId p, bool at_source) const {
    const FleetPipeline& pipeline = input_.pipelines[p.value()];
    Placed placed;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const auto server = LeastBusyServer(input_, pipeline.source, pipeline.stages[s].model, busy_);
      const bool can = CostAt(p, s, pipeline.source) != nullptr;
      const DeviceId d = can && (at_source || !server) ? pipeline.source : *server;
      placed.push_back(Sized(p, s, d, CostAt(p, s, d)->batches.front()));
    }
    return placed;
  }
  StagePlacement Sized(FleetPipelineId p, std::size_t s, DeviceId d,
                       const FleetBatch& batch) const {
    return {d, batch.batch, InstancesFor(RateOf(p, s), batch)};
  }

  // One stage at a time, the change that gains the most.
  void Climb(FleetPipelineId p, Placed& placed, double& value) {
    const FleetPipeline& pipeline = input_.pipelines[p.value()];
    for (std::size_t step = 0; step < 4 * placed.size(); ++step) {
      Placed best = placed;
      double reached = value;
      for (std::size_t s = 0; s < placed.size(); ++s) {
        const auto server =
            LeastBusyServer(input_, pipeline.source, pipeline.stages[s].model, busy_);
        for (const std::optional<DeviceId> d : {std::optional(pipeline.source), server}) {
          if (!d || CostAt(p, s, *d) == nullptr) continue;
          for (const FleetBatch& batch : CostAt(p, s, *d)->batches) {
            Placed trial = placed;
            trial[s] = Sized(p, s, *d, batch);
            const double would = Value(p, trial);
            if (would <= reached) continue;
            reached = would;
            best = std::move(trial);
          }
        }
      }
      if (reached <= value) return;
      placed = std::move(best);
      value = reached;
    }
  }

  void Explain(FleetPipelineId p, const Placed& now) {
    for (FleetReason& reason : placed_.reasons) {
      if (reason.pipeline != p) continue;
      const std::size_t s = reason.stage.value();
      if (now[s] == At(p)[s]) continue;
      reason.why = now[s].device == input_.pipelines[p.value()].source
                       ? "at the source: more is in time so, by the estimate"
                       : "on a server: more is in time so, by the estimate";
    }
  }

  const FleetInput& input_;
  std::vector<FleetInput> slower_;  // by link_parts
  const ReliefOptions options_;
  PlacedFleet& placed_;
  std::vector<double> busy_;       // by device: accelerators
  std::vector<double> memory_mb_;  // by device
};

}  // namespace

void RelievePipelines(const FleetInput& input, const ReliefOptions& options, PlacedFleet& placed) {
  Relief(input, options, placed).Run();
}

}  // namespace tactus
