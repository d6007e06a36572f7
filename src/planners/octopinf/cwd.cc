#include "planners/octopinf/cwd.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "planners/fleet_sharing.h"
#include "planners/octopinf/relief.h"

namespace tactus {
namespace {

// Of a pipeline's placement, to be smaller (EstThrpt): all of the load is sustained by as many
// instances as it needs, so what differs is what they cost.
struct Cost {
  double busy = 0;       // accelerators
  double memory_mb = 0;  // on servers, of intermediates

  bool Improves(const Cost& other) const {
    constexpr double kLess = 1 - 1e-9;
    if (busy < other.busy * kLess) return true;
    return busy <= other.busy / kLess && memory_mb < other.memory_mb * kLess;
  }
};

// Three digits, and no exponent.
std::string Rounded(double kb) {
  return kb < 1000 ? fmt::format("{:.3g}", kb) : fmt::format("{:.0f}", kb);
}

SharedBatches SharedOf(const CwdOptions& options) {
  return options.static_batches ? SharedBatches::kAsPlaced : SharedBatches::kSearched;
}

class Distributor {
 public:
  Distributor(const FleetInput& input, const CwdOptions& options)
      : input_(input),
        options_(options),
        busy_(input.devices.size()),
        memory_mb_(input.devices.size()) {
    result_.placement.resize(input.pipelines.size());
    result_.links.resize(input.links.size());
    for (const FleetPipeline& pipeline : input.pipelines) {
      why_.emplace_back(pipeline.stages.size());
    }
  }

  PlacedFleet Run() {
    const std::vector<FleetPipelineId> order = LeastSlackFirst();
    if (options_.share == WhenShared::kBefore) StartTogether(order);
    for (const FleetPipelineId p : order) {
      options_.share == WhenShared::kBefore ? Commit(p, -1) : Start(p);
      if (!options_.static_batches) GrowBatches(p);
      if (options_.to_edge) {
        for (FleetStageId::rep s = 0; s < Pipeline(p).stages.size(); ++s) {
          if (Pipeline(p).stages[s].after.empty()) ToEdge(p, FleetStageId{s});
        }
      }
      Commit(p, 1);
    }
    for (FleetPipelineId::rep p = 0; p < why_.size(); ++p) {
      for (FleetStageId::rep s = 0; s < why_[p].size(); ++s) {
        result_.reasons.push_back({FleetPipelineId{p}, FleetStageId{s}, why_[p][s]});
      }
    }
    return std::move(result_);
  }

 private:
  using Placed = std::vector<StagePlacement>;

  const FleetPipeline& Pipeline(FleetPipelineId p) const { return input_.pipelines[p.value()]; }
  const FleetStage& Stage(FleetPipelineId p, FleetStageId s) const {
    return Pipeline(p).stages[s.value()];
  }
  Placed& At(FleetPipelineId p) { return result_.placement[p.value()]; }
  std::string& Why(FleetPipelineId p, FleetStageId s) { return why_[p.value()][s.value()]; }
  const FleetBatch& Batch(FleetPipelineId p, FleetStageId s, const StagePlacement& at) const {
    return *BatchOf(input_, Stage(p, s).model, at.device, at.batch);
  }

  // The paper takes pipelines as they are listed. One with little time to spare has fewer choices,
  // so it chooses first.
  std::vector<FleetPipelineId> LeastSlackFirst() {
    std::vector<FleetPipelineId> order;
    std::vector<Duration> slack;
    for (FleetPipelineId::rep p = 0; p < input_.pipelines.size(); ++p) {
      order.push_back(FleetPipelineId{p});
      Start(order.back());
      slack.push_back(Pipeline(order.back()).slo - Latency(order.back()));
      At(order.back()).clear();
    }
    std::ranges::stable_sort(order, {}, [&](FleetPipelineId p) { return slack[p.value()]; });
    return order;
  }

  Duration Latency(FleetPipelineId p) {
    AddLinkLoads(input_, p, At(p), 1, result_.links);
    const Duration worst = WorstLatency(input_, p, At(p), result_.links);
    AddLinkLoads(input_, p, At(p), -1, result_.links);
    return worst;
  }

  void Start(FleetPipelineId p) {
    Placed& placed = At(p);
    placed.clear();
    for (FleetStageId::rep i = 0; i < Pipeline(p).stages.size(); ++i) {
      const FleetStageId s{i};
      const DeviceId source = Pipeline(p).source;
      const ModelId model = Stage(p, s).model;
      const auto server = LeastBusyServer(input_, source, model, busy_);
      const bool at_source = input_.CostOf(model, KindOf(source)) != nullptr;
      const bool here = !server || (!options_.to_server && at_source);
      StagePlacement at{.device = here ? source : *server};
      at.batch = LargestBatch(input_, model, at.device,
                              options_.static_batches ? options_.fixed.Of(i, here) : 1);
      at.instances = InstancesFor(input_.RateOf(p, s), Batch(p, s, at));
      placed.push_back(at);
      Why(p, s) =
          here ? (server ? "told to stay at its source" : "no server that is reached runs it")
               : "begins on a server";
    }
  }
  // All of them on servers, where they share instances, before one is moved.
  void StartTogether(const std::vector<FleetPipelineId>& order) {
    for (const FleetPipelineId p : order) {
      Start(p);
      Commit(p, 1);
    }
    const FleetPlacement alone = result_.placement;
    ShareServers(input_, SharedOf(options_), result_);
    for (FleetPipelineId::rep p = 0; p < alone.size(); ++p) {
      for (std::size_t s = 0; s < alone[p].size(); ++s) {
        const FleetStageId stage{static_cast<FleetStageId::rep>(s)};
        Load(FleetPipelineId{p}, stage, alone[p][s], -1);
        Load(FleetPipelineId{p}, stage, result_.placement[p][s], 1);
      }
    }
  }
  KindId KindOf(DeviceId device) const { return input_.devices[device.value()].kind; }

  Cost CostOf(FleetPipelineId p) {
    Cost cost;
    for (FleetStageId::rep i = 0; i < At(p).size(); ++i) {
      const FleetStageId s{i};
      const FleetBatch& batch = Batch(p, s, At(p)[i]);
      cost.busy += BusyOf(input_.RateOf(p, s), batch);
      cost.memory_mb += At(p)[i].instances * batch.peak_mb;
    }
    return cost;
  }

  // Lines 9 to 25.
  void GrowBatches(FleetPipelineId p) {
    std::vector<std::uint32_t> order(Pipeline(p).stages.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, std::greater{},
                             [&](std::uint32_t s) { return CoefficientOf(Pipeline(p).stages[s]); });
    const Duration most = Pipeline(p).slo / 2;
    for (bool grown = true; grown;) {
      grown = false;
      for (const std::uint32_t i : order) {
        const FleetStageId s{i};
        const StagePlacement before = At(p)[i];
        if (before.shared_rps > 0) continue;  // its batch is that of all who share
        const Cost cost = CostOf(p);
        StagePlacement& at = At(p)[i];
        at.batch = 2 * before.batch;
        if (BatchOf(input_, Stage(p, s).model, at.device, at.batch) == nullptr) {
          at = before;
          continue;
        }
        at.instances = InstancesFor(input_.RateOf(p, s), Batch(p, s, at));
        if (Latency(p) <= most && CostOf(p).Improves(cost)) {
          grown = true;
        } else {
          at = before;
        }
      }
    }
  }

  // What m's answers send over a link where it runs at the source and those behind it do not.
  double SentBehind(FleetPipelineId p, FleetStageId m) const {
    double kilobytes = 0;
    bool last = true;
    for (FleetStageId::rep i = 0; i < Pipeline(p).stages.size(); ++i) {
      const FleetStage& stage = Pipeline(p).stages[i];
      if (std::ranges::find(stage.after, m) == stage.after.end()) continue;
      last = false;
      kilobytes += input_.RateOf(p, FleetStageId{i}) * stage.in_kb;
    }
    return last ? input_.RateOf(p, m) * Stage(p, m).out_kb : kilobytes;
  }
  bool AnyBehindAtEdge(FleetPipelineId p, FleetStageId m) {
    for (FleetStageId::rep i = 0; i < Pipeline(p).stages.size(); ++i) {
      const FleetStage& stage = Pipeline(p).stages[i];
      const bool behind = std::ranges::find(stage.after, m) != stage.after.end();
      if (behind && At(p)[i].device == Pipeline(p).source) return true;
    }
    return false;
  }

  // Line 32: the largest batch with which the source's device is in time, and not too busy. A
  // pipeline that is `late` where it is now may still be: what follows m may make up for it.
  bool FitAtEdge(FleetPipelineId p, FleetStageId m, bool late) {
    const DeviceId source = Pipeline(p).source;
    const FleetDevice& device = input_.devices[source.value()];
    const FleetCost* cost = input_.CostOf(Stage(p, m).model, device.kind);
    const StagePlacement before = At(p)[m.value()];
    if (cost == nullptr) return Refuse(p, m, device.name + " does not run its model");
    double busy = busy_[source.value()];
    double memory = memory_mb_[source.value()] + cost->weights_mb;
    for (FleetStageId::rep i = 0; i < At(p).size(); ++i) {
      if (i == m.value() || At(p)[i].device != source) continue;
      const FleetStageId s{i};
      busy += BusyOf(input_.RateOf(p, s), Batch(p, s, At(p)[i]));
      memory +=
          input_.CostOf(Stage(p, s).model, device.kind)->weights_mb + Batch(p, s, At(p)[i]).peak_mb;
    }
    std::string why = device.name + " would be too busy";
    std::optional<StagePlacement> smallest;
    for (auto batch = cost->batches.rbegin(); batch != cost->batches.rend(); ++batch) {
      const double rate = input_.RateOf(p, m);
      const int fixed = options_.fixed.Of(m.value(), true);
      const int known = LargestBatch(input_, Stage(p, m).model, source, fixed);
      if (options_.static_batches && batch->batch != known) continue;
      if (busy + BusyOf(rate, *batch) > options_.most_edge * device.accelerators) continue;
      if (memory + batch->peak_mb > device.memory_mb * device.accelerators) {
        why = device.name + " has not the memory";
        continue;
      }
      smallest = {source, batch->batch, InstancesFor(rate, *batch)};
      At(p)[m.value()] = *smallest;
      if (Latency(p) <= Pipeline(p).slo) return true;
      why = fmt::format("on {} the pipeline would take longer than its SLO", device.name);
    }
    At(p)[m.value()] = late && smallest ? *smallest : before;
    return (late && smallest) || Refuse(p, m, why);
  }
  // Kilobytes a second that its stages are sent over links.
  double SentOverLinks(FleetPipelineId p) const {
    LinkLoads loads(input_.links.size());
    AddLinkLoads(input_, p, result_.placement[p.value()], 1, loads);
    return std::accumulate(loads.begin(), loads.end(), 0.0);
  }
  bool Refuse(FleetPipelineId p, FleetStageId m, const std::string& why) {
    Why(p, m) = "on a server: " + why;
    return false;
  }

  // Depth first, lines 31 to 39.
  void ToEdge(FleetPipelineId p, FleetStageId m) {
    const DeviceId source = Pipeline(p).source;
    const Placed before = At(p);
    const double sent = SentOverLinks(p);
    const bool late = Latency(p) > Pipeline(p).slo;
    if (before[m.value()].device == source || !FitAtEdge(p, m, late)) return;
    std::vector<std::uint32_t> behind;
    for (std::uint32_t i = 0; i < Pipeline(p).stages.size(); ++i) {
      const std::vector<FleetStageId>& after = Pipeline(p).stages[i].after;
      const bool follows = std::ranges::find(after, m) != after.end();
      const bool all = std::ranges::all_of(
          after, [&](FleetStageId each) { return At(p)[each.value()].device == source; });
      if (follows && all) behind.push_back(i);
    }
    std::ranges::stable_sort(behind, {},
                             [&](std::uint32_t s) { return CoefficientOf(Pipeline(p).stages[s]); });
    for (const std::uint32_t i : behind) ToEdge(p, FleetStageId{i});
    if (Latency(p) > Pipeline(p).slo && SentOverLinks(p) >= sent) {
      At(p) = before;
      Refuse(p, m, "it is late at its source too");
      return;
    }
    const double in = input_.RateOf(p, m) * Stage(p, m).in_kb;
    const double out = SentBehind(p, m);
    if (!late && in * options_.alpha < out && !AnyBehindAtEdge(p, m)) {
      At(p)[m.value()] = before[m.value()];
      Refuse(p, m, fmt::format("its answers are {} kB/s, its input {}", Rounded(out), Rounded(in)));
      return;
    }
    Why(p, m) = AnyBehindAtEdge(p, m)
                    ? "at the source, as some of what follows it"
                    : fmt::format("at the source: it sends {} kB/s on instead of {}", Rounded(out),
                                  Rounded(in));
  }

  void Commit(FleetPipelineId p, double sign) {
    AddLinkLoads(input_, p, At(p), sign, result_.links);
    for (FleetStageId::rep i = 0; i < At(p).size(); ++i) {
      Load(p, FleetStageId{i}, At(p)[i], sign);
    }
  }
  void Load(FleetPipelineId p, FleetStageId s, const StagePlacement& at, double sign) {
    const FleetBatch& batch = Batch(p, s, at);
    busy_[at.device.value()] += sign * BusyOf(input_.RateOf(p, s), batch);
    memory_mb_[at.device.value()] +=
        sign * (input_.CostOf(Stage(p, s).model, KindOf(at.device))->weights_mb +
                at.instances * batch.peak_mb);
  }

  const FleetInput& input_;
  const CwdOptions& options_;
  PlacedFleet result_;
  std::vector<std::vector<std::string>> why_;  // by pipeline, then stage
  std::vector<double> busy_;                   // by device: accelerators, of pipelines so far
  std::vector<double> memory_mb_;              // likewise
};

}  // namespace

PlacedFleet DistributeWorkload(const FleetInput& input, const CwdOptions& options) {
  PlacedFleet placed = Distributor(input, options).Run();
  if (options.relieve)
    RelievePipelines(input, {.most_edge = options.most_edge, .windows = options.windows}, placed);
  if (options.share != WhenShared::kNever) ShareServers(input, SharedOf(options), placed);
  return placed;
}

}  // namespace tactus
