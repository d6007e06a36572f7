#include "planners/fleet_rivals/rivals.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr int kLargestOfJellyfish = 16;
constexpr std::size_t kLargestOfRim = 3;

class Placer {
 public:
  explicit Placer(const FleetInput& input) : input_(input), busy_(input.devices.size()) {
    placed_.placement.resize(input.pipelines.size());
    placed_.links.resize(input.links.size());
  }

  // The first `at_source` stages at the source, as far as their models run there, the others on the
  // server that has least to do. `batch` says which one is wanted.
  template <class WantedBatch>
  std::vector<StagePlacement> Place(FleetPipelineId p, std::size_t at_source,
                                    WantedBatch batch) const {
    const FleetPipeline& pipeline = input_.pipelines[p.value()];
    std::vector<StagePlacement> made;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const ModelId model = pipeline.stages[s].model;
      const auto server = LeastBusyServer(input_, pipeline.source, model, busy_);
      const bool can =
          input_.CostOf(model, input_.devices[pipeline.source.value()].kind) != nullptr;
      const bool here = !server || (s < at_source && can);
      StagePlacement at{.device = here ? pipeline.source : *server};
      at.batch = LargestBatch(input_, model, at.device, batch(s, here));
      at.instances = InstancesFor(RateOf(p, s), *BatchOf(input_, model, at.device, at.batch));
      made.push_back(at);
    }
    return made;
  }

  // Accelerators of the device that `made` keeps busy, beside what is there, for each that it has.
  double BusyWith(FleetPipelineId p, const std::vector<StagePlacement>& made, bool source) const {
    const FleetPipeline& pipeline = input_.pipelines[p.value()];
    double busy = 0, accelerators = 0;
    for (DeviceId::rep d = 0; d < input_.devices.size(); ++d) {
      const bool counts = source ? DeviceId{d} == pipeline.source : input_.devices[d].server;
      if (!counts) continue;
      busy += busy_[d];
      accelerators += input_.devices[d].accelerators;
    }
    for (std::size_t s = 0; s < made.size(); ++s) {
      if ((made[s].device == pipeline.source) != source) continue;
      busy += BusyOf(RateOf(p, s), Batch(p, s, made[s]));
    }
    return accelerators > 0 ? busy / accelerators : 0;
  }

  Duration Latency(FleetPipelineId p, const std::vector<StagePlacement>& made) {
    AddLinkLoads(input_, p, made, 1, placed_.links);
    const Duration worst = WorstLatency(input_, p, made, placed_.links);
    AddLinkLoads(input_, p, made, -1, placed_.links);
    return worst;
  }

  void Commit(FleetPipelineId p, std::vector<StagePlacement> made, const std::string& why) {
    for (std::size_t s = 0; s < made.size(); ++s) {
      busy_[made[s].device.value()] += BusyOf(RateOf(p, s), Batch(p, s, made[s]));
      placed_.reasons.push_back({p, FleetStageId{static_cast<FleetStageId::rep>(s)}, why});
    }
    AddLinkLoads(input_, p, made, 1, placed_.links);
    placed_.placement[p.value()] = std::move(made);
  }
  PlacedFleet Done() && { return std::move(placed_); }

 private:
  double RateOf(FleetPipelineId p, std::size_t s) const {
    return input_.RateOf(p, FleetStageId{static_cast<FleetStageId::rep>(s)});
  }
  const FleetBatch& Batch(FleetPipelineId p, std::size_t s, const StagePlacement& at) const {
    return *BatchOf(input_, input_.pipelines[p.value()].stages[s].model, at.device, at.batch);
  }

  const FleetInput& input_;
  PlacedFleet placed_;
  std::vector<double> busy_;  // by device: accelerators
};

template <class Each>
PlacedFleet ForEach(const FleetInput& input, Each each) {
  Placer placer(input);
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    each(placer, FleetPipelineId{p}, input.pipelines[p].stages.size());
  }
  return std::move(placer).Done();
}

auto Wanted(const StaticBatches& batches) {
  return [batches](std::size_t s, bool here) { return batches.Of(s, here); };
}

}  // namespace

PlacedFleet PlaceDistream(const FleetInput& input, const StaticBatches& batches) {
  return ForEach(input, [&](Placer& placer, FleetPipelineId p, std::size_t stages) {
    std::vector<StagePlacement> best;
    std::size_t cut = 0;
    double least = 0;
    for (std::size_t at_source = 0; at_source <= stages; ++at_source) {
      auto made = placer.Place(p, at_source, Wanted(batches));
      const double apart =
          std::abs(placer.BusyWith(p, made, true) - placer.BusyWith(p, made, false));
      if (!best.empty() && apart >= least) continue;
      best = std::move(made);
      least = apart;
      cut = at_source;
    }
    placer.Commit(p, std::move(best),
                  fmt::format("Distream cuts after {} stages: loads differ by {:.2f}", cut, least));
  });
}

PlacedFleet PlaceJellyfish(const FleetInput& input) {
  return ForEach(input, [&](Placer& placer, FleetPipelineId p, std::size_t) {
    std::vector<StagePlacement> best;
    int chosen = 1;
    for (int batch = 1; batch <= kLargestOfJellyfish; batch *= 2) {
      auto made = placer.Place(p, 0, [batch](std::size_t, bool) { return batch; });
      const bool in_time = placer.Latency(p, made) <= input.pipelines[p.value()].slo;
      if (!best.empty() && !in_time) continue;
      best = std::move(made);
      chosen = batch;
    }
    placer.Commit(p, std::move(best), fmt::format("Jellyfish: on a server, batches of {}", chosen));
  });
}

PlacedFleet PlaceRim(const FleetInput& input, const StaticBatches& batches) {
  return ForEach(input, [&](Placer& placer, FleetPipelineId p, std::size_t stages) {
    std::vector<StagePlacement> best = placer.Place(p, 0, Wanted(batches));
    std::size_t cut = 0;
    for (std::size_t at_source = 1; at_source <= std::min(stages, kLargestOfRim); ++at_source) {
      auto made = placer.Place(p, at_source, Wanted(batches));
      if (placer.BusyWith(p, made, true) > 1) break;
      best = std::move(made);
      cut = at_source;
    }
    placer.Commit(p, std::move(best),
                  fmt::format("Rim: the first {} stages fit at the source", cut));
  });
}

}  // namespace tactus
