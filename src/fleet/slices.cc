#include "fleet/slices.h"

#include <algorithm>
#include <utility>

namespace tactus {
namespace {

constexpr double kLeastOfDeclared = 0.1;

bool Runs(const FleetInput& input, const FleetPipeline& pipeline, ModelId model) {
  for (DeviceId::rep d = 0; d < input.devices.size(); ++d) {
    const FleetDevice& device = input.devices[d];
    const bool reached =
        DeviceId{d} == pipeline.source ||
        (device.server && (device.site == input.devices[pipeline.source.value()].site ||
                           input.LinkBetween(pipeline.source, DeviceId{d}) != kNoLink));
    if (reached && input.CostOf(model, device.kind) != nullptr) return true;
  }
  return false;
}

}  // namespace

std::map<std::string, FleetSlice> SlicesOf(const FleetPlan& plan, const FleetInput& input,
                                           PlanId id, const std::set<std::string>& nodes) {
  std::map<std::string, FleetSlice> slices;
  for (const std::string& node : nodes) slices[node].id = id;
  for (const FleetInstance& each : plan.instances) {
    const FleetPipeline& pipeline = input.pipelines[each.pipeline.value()];
    const FleetStage& stage = pipeline.stages[each.stage.value()];
    const auto slice = slices.find(input.devices[each.device.value()].name);
    if (slice == slices.end()) continue;
    slice->second.instances.push_back({.pipeline = pipeline.name,
                                       .stage = stage.name,
                                       .model = input.models[stage.model.value()],
                                       .accelerator = each.accelerator,
                                       .stream = each.stream,
                                       .batch = each.batch,
                                       .offset = each.offset,
                                       .length = each.length,
                                       .cycle = each.cycle});
  }
  for (const FleetRoute& each : plan.routes) {
    const FleetPipeline& pipeline = input.pipelines[each.pipeline.value()];
    const FleetStage& stage = pipeline.stages[each.stage.value()];
    SliceRoute route{pipeline.name, stage.name, input.models[stage.model.value()], {}};
    for (const FleetTarget& to : each.to) {
      route.to.push_back({input.devices[to.device.value()].name, to.weight});
    }
    const auto source = slices.find(input.devices[pipeline.source.value()].name);
    if (source != slices.end()) source->second.routes.push_back(std::move(route));
  }
  return slices;
}

void AddModels(const std::map<std::string, std::string>& digests,
               std::map<std::string, FleetSlice>& slices) {
  for (auto& [node, slice] : slices) {
    std::set<std::string> names;
    for (const SliceInstance& each : slice.instances) names.insert(each.model);
    for (const SliceRoute& each : slice.routes) names.insert(each.pipeline);
    slice.models.clear();
    for (const std::string& name : names) {
      const auto found = digests.find(name);
      if (found != digests.end()) slice.models.push_back({name, found->second});
    }
  }
}

std::vector<std::vector<std::string>> WavesOf(const std::map<std::string, FleetSlice>& slices,
                                              const FleetInput& input) {
  std::map<std::pair<std::string, std::string>, int> depths;  // of stages
  for (const FleetPipeline& pipeline : input.pipelines) {
    for (const FleetStage& stage : pipeline.stages) {
      int depth = 0;
      for (const FleetStageId before : stage.after) {
        depth = std::max(depth, 1 + depths[{pipeline.name, pipeline.stages[before.value()].name}]);
      }
      depths[{pipeline.name, stage.name}] = depth;
    }
  }
  constexpr int kRoutesNothing = 1 << 20;
  std::map<int, std::vector<std::string>, std::greater<>> waves;
  for (const auto& [node, slice] : slices) {
    int shallowest = kRoutesNothing;
    for (const SliceRoute& route : slice.routes) {
      shallowest = std::min(shallowest, depths[{route.pipeline, route.stage}]);
    }
    waves[shallowest].push_back(node);
  }
  std::vector<std::vector<std::string>> ordered;
  for (auto& [depth, nodes] : waves) ordered.push_back(std::move(nodes));
  return ordered;
}

FleetInput Without(const FleetInput& input, const std::set<std::string>& devices,
                   std::vector<LostPipeline>& lost) {
  FleetInput rest = input;
  rest.devices.clear();
  rest.pipelines.clear();
  std::map<DeviceId, DeviceId> renumbered;
  for (DeviceId::rep d = 0; d < input.devices.size(); ++d) {
    if (devices.contains(input.devices[d].name)) continue;
    renumbered[DeviceId{d}] = DeviceId{static_cast<DeviceId::rep>(rest.devices.size())};
    rest.devices.push_back(input.devices[d]);
  }
  for (const FleetPipeline& pipeline : input.pipelines) {
    const auto source = renumbered.find(pipeline.source);
    if (source == renumbered.end()) {
      lost.push_back({pipeline.name,
                      "its source '" + input.devices[pipeline.source.value()].name + "' is away"});
      continue;
    }
    FleetPipeline kept = pipeline;
    kept.source = source->second;
    const auto nowhere = std::ranges::find_if_not(
        kept.stages, [&](const FleetStage& stage) { return Runs(rest, kept, stage.model); });
    if (nowhere == kept.stages.end()) {
      rest.pipelines.push_back(std::move(kept));
    } else {
      lost.push_back(
          {pipeline.name, "no node that is here and in its reach has [[costs]] of model '" +
                              input.models[nowhere->model.value()] + "', its stage '" +
                              nowhere->name + "'"});
    }
  }
  return rest;
}

FleetInput WithLinks(FleetInput input, const LinkReadings& readings) {
  std::map<std::string, DeviceId> devices;
  for (DeviceId::rep d = 0; d < input.devices.size(); ++d) {
    devices[input.devices[d].name] = DeviceId{d};
  }
  std::map<std::size_t, LinkReading> links;
  for (const auto& [ends, reading] : readings) {
    const auto from = devices.find(ends.first);
    const auto to = devices.find(ends.second);
    if (from == devices.end() || to == devices.end()) continue;
    const std::size_t link = input.LinkBetween(from->second, to->second);
    if (link == kNoLink) continue;
    LinkReading& worst = links[link];
    if (reading.mbps > 0 && (worst.mbps <= 0 || reading.mbps < worst.mbps)) {
      worst.mbps = reading.mbps;
    }
    worst.rtt = std::max(worst.rtt, reading.rtt);
  }
  for (const auto& [link, worst] : links) {
    if (worst.mbps > 0) input.links[link].mbps = worst.mbps;
    if (worst.rtt > Duration{}) input.links[link].rtt = worst.rtt;
  }
  return input;
}

bool LinksDiffer(const std::vector<FleetLink>& a, const std::vector<FleetLink>& b) {
  constexpr double kFar = 2;
  return !std::ranges::equal(a, b, [](const FleetLink& x, const FleetLink& y) {
    return x.mbps <= kFar * y.mbps && y.mbps <= kFar * x.mbps;
  });
}

FleetInput Measured(const FleetInput& declared, const std::map<std::string, double>& rates) {
  std::vector<double> all(declared.models.size(), 0);  // declared items a second, by model
  for (FleetPipelineId::rep p = 0; p < declared.pipelines.size(); ++p) {
    const auto& stages = declared.pipelines[p].stages;
    for (FleetStageId::rep s = 0; s < stages.size(); ++s) {
      all[stages[s].model.value()] += declared.RateOf(FleetPipelineId{p}, FleetStageId{s});
    }
  }
  FleetInput input = declared;
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    FleetPipeline& pipeline = input.pipelines[p];
    const double frames = pipeline.rate_rps;
    std::vector<double> items(pipeline.stages.size());
    for (FleetStageId::rep s = 0; s < items.size(); ++s) {
      const FleetStage& stage = pipeline.stages[s];
      items[s] = declared.RateOf(FleetPipelineId{p}, FleetStageId{s});
      const double total = all[stage.model.value()];
      const auto rate = rates.find(input.models[stage.model.value()]);
      if (rate == rates.end() || total <= 0) continue;
      items[s] = std::max(kLeastOfDeclared, rate->second / total) * items[s];
    }
    // The frames are what its first stage gets.
    const double first = pipeline.stages.front().items;
    pipeline.rate_rps = first > 0 ? items.front() / first : frames;
    for (std::size_t s = 0; s < items.size() && pipeline.rate_rps > 0; ++s) {
      pipeline.stages[s].items = items[s] / pipeline.rate_rps;
    }
  }
  return input;
}

}  // namespace tactus
