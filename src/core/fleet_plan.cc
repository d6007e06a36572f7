#include "core/fleet_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace tactus {
namespace {

constexpr double kSlack = 1e-9;

std::string Quoted(const std::string& name) { return "'" + name + "'"; }

Status CheckDevices(const FleetInput& input) {
  std::set<std::string> names;
  for (const FleetDevice& device : input.devices) {
    if (!names.insert(device.name).second) {
      return InvalidArgument("two devices are called " + Quoted(device.name) + "; rename one");
    }
    if (device.accelerators < 1 || device.streams < 1 || !(device.memory_mb > 0) ||
        !(device.most_use > 0)) {
      return InvalidArgument("device " + Quoted(device.name) +
                             ": accelerators, streams, memory_mb and most_use must be above 0");
    }
  }
  for (const FleetLink& link : input.links) {
    if (link.a == link.b || !(link.mbps > 0) || link.rtt < Duration{}) {
      return InvalidArgument("a link of site " + Quoted(input.sites[link.a.value()]) +
                             ": it joins two sites, with mbps above 0 and an rtt from 0 on");
    }
  }
  return {};
}

Status CheckCosts(const FleetInput& input) {
  for (const FleetCost& cost : input.costs) {
    const std::string what = "costs of " + Quoted(input.models[cost.model.value()]) + " on " +
                             Quoted(input.kinds[cost.kind.value()]);
    if (cost.batches.empty()) return InvalidArgument(what + ": no batch");
    int last = 0;
    for (const FleetBatch& batch : cost.batches) {
      if (batch.batch <= last || batch.total() <= Duration{} || !(batch.use >= 0) ||
          !(batch.peak_mb >= 0)) {
        return InvalidArgument(what + ": batches must ascend, each with a time above 0");
      }
      last = batch.batch;
    }
  }
  return {};
}

bool RunsSomewhere(const FleetInput& input, const FleetPipeline& pipeline, ModelId model) {
  for (DeviceId::rep d = 0; d < input.devices.size(); ++d) {
    const FleetDevice& device = input.devices[d];
    const bool here = DeviceId{d} == pipeline.source;
    const bool reached =
        device.server && (device.site == input.devices[pipeline.source.value()].site ||
                          input.LinkBetween(pipeline.source, DeviceId{d}) != kNoLink);
    if ((here || reached) && input.CostOf(model, device.kind) != nullptr) return true;
  }
  return false;
}

Status CheckPipeline(const FleetInput& input, const FleetPipeline& pipeline) {
  const std::string what = "pipeline " + Quoted(pipeline.name);
  if (pipeline.slo <= Duration{} || !(pipeline.rate_rps >= 0) || pipeline.stages.empty()) {
    return InvalidArgument(what + ": needs an SLO above 0, a rate from 0 on and a stage");
  }
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const FleetStage& stage = pipeline.stages[s];
    const std::string where = what + ", stage " + Quoted(stage.name);
    if (!(stage.items >= 0) || !(stage.in_kb >= 0) || !(stage.out_kb >= 0)) {
      return InvalidArgument(where + ": items, in_kb and out_kb must be from 0 on");
    }
    for (const FleetStageId before : stage.after) {
      if (before.value() >= s) {
        return InvalidArgument(where + ": stages stand after those that they wait for");
      }
    }
    if (!RunsSomewhere(input, pipeline, stage.model)) {
      return InvalidArgument(where + ": no device that its source reaches runs " +
                             Quoted(input.models[stage.model.value()]) +
                             "; add its costs there, or a link");
    }
  }
  return {};
}

// What instances take of one accelerator.
struct Load {
  std::set<ModelId> models;
  std::map<int, std::pair<double, double>> streams;  // peak memory, use: the largest of each
  double weights_mb = 0;
};

}  // namespace

const FleetCost* FleetInput::CostOf(ModelId model, KindId kind) const {
  const auto is_it = [&](const FleetCost& c) { return c.model == model && c.kind == kind; };
  const auto found = std::ranges::find_if(costs, is_it);
  return found == costs.end() ? nullptr : &*found;
}

std::size_t FleetInput::LinkBetween(DeviceId from, DeviceId to) const {
  const SiteId a = devices[from.value()].site;
  const SiteId b = devices[to.value()].site;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const FleetLink& link = links[i];
    if ((link.a == a && link.b == b) || (link.a == b && link.b == a)) return i;
  }
  return kNoLink;
}

double FleetInput::RateOf(FleetPipelineId p, FleetStageId s) const {
  const FleetPipeline& pipeline = pipelines[p.value()];
  return pipeline.rate_rps * pipeline.stages[s.value()].items;
}

double CoefficientOf(const FleetStage& stage) {
  if (stage.cv >= 0) return stage.cv;
  return std::sqrt(stage.items >= 1 ? stage.items - 1 : 1 - stage.items);
}

Status CheckFleet(const FleetInput& input) {
  if (auto devices = CheckDevices(input); !devices) return devices;
  if (auto costs = CheckCosts(input); !costs) return costs;
  for (const FleetPipeline& pipeline : input.pipelines) {
    if (auto checked = CheckPipeline(input, pipeline); !checked) return checked;
  }
  return {};
}

namespace {

std::string FaultOfInstance(const FleetInstance& instance, const FleetInput& input) {
  if (instance.pipeline.value() >= input.pipelines.size()) return "an unknown pipeline";
  const FleetPipeline& pipeline = input.pipelines[instance.pipeline.value()];
  if (instance.stage.value() >= pipeline.stages.size()) return "an unknown stage";
  const std::string what =
      pipeline.name + "/" + pipeline.stages[instance.stage.value()].name + ": ";
  if (instance.device.value() >= input.devices.size()) return what + "an unknown device";
  const FleetDevice& device = input.devices[instance.device.value()];
  if (instance.accelerator < 0 || instance.accelerator >= device.accelerators ||
      instance.stream < 0 || instance.stream >= device.streams) {
    return what + "an accelerator or a stream that " + device.name + " lacks";
  }
  const FleetCost* cost = input.CostOf(pipeline.stages[instance.stage.value()].model, device.kind);
  if (cost == nullptr) return what + "its model does not run on " + device.name;
  if (std::ranges::find(cost->batches, instance.batch, &FleetBatch::batch) == cost->batches.end()) {
    return what + "a batch that was not profiled";
  }
  if (instance.offset < Duration{} || instance.offset + instance.length > instance.cycle) {
    return what + "its window ends beyond the cycle";
  }
  return "";
}

std::string FaultOfWindows(std::vector<FleetInstance> instances) {
  const auto key = [](const FleetInstance& i) {
    return std::tuple(i.device, i.accelerator, i.stream, i.offset);
  };
  std::erase_if(instances, [](const FleetInstance& i) { return i.length == Duration{}; });
  std::ranges::sort(instances, {}, key);
  for (std::size_t i = 1; i < instances.size(); ++i) {
    const FleetInstance& a = instances[i - 1];
    const FleetInstance& b = instances[i];
    const bool same = std::tuple(a.device, a.accelerator, a.stream) ==
                      std::tuple(b.device, b.accelerator, b.stream);
    if (same && a.cycle != b.cycle) return "windows of one stream in two cycles";
    if (same && a.offset + a.length > b.offset) return "two windows of one stream overlap";
  }
  return "";
}

std::string FaultOfLoad(const FleetPlan& plan, const FleetInput& input, UseLimit limit) {
  std::map<std::pair<DeviceId, int>, Load> loads;
  for (const FleetInstance& each : plan.instances) {
    const ModelId model = input.pipelines[each.pipeline.value()].stages[each.stage.value()].model;
    const FleetCost& cost = *input.CostOf(model, input.devices[each.device.value()].kind);
    const auto batch = std::ranges::find(cost.batches, each.batch, &FleetBatch::batch);
    Load& load = loads[{each.device, each.accelerator}];
    if (load.models.insert(model).second) load.weights_mb += cost.weights_mb;
    auto& [peak_mb, use] = load.streams[each.stream];
    peak_mb = std::max(peak_mb, batch->peak_mb);
    use = std::max(use, batch->use);
  }
  for (const auto& [at, load] : loads) {
    const FleetDevice& device = input.devices[at.first.value()];
    double memory = load.weights_mb;
    double use = 0;
    for (const auto& [stream, most] : load.streams) {
      memory += most.first;
      use += most.second;
    }
    if (memory > device.memory_mb * (1 + kSlack)) return device.name + ": more than its memory";
    if (limit == UseLimit::kKept && use > device.most_use * (1 + kSlack))
      return device.name + ": more than its most use";
  }
  return "";
}

}  // namespace

std::string FaultOf(const FleetPlan& plan, const FleetInput& input, UseLimit use) {
  std::set<std::pair<FleetPipelineId, FleetStageId>> there;
  for (const FleetInstance& instance : plan.instances) {
    if (std::string fault = FaultOfInstance(instance, input); !fault.empty()) return fault;
    there.emplace(instance.pipeline, instance.stage);
  }
  for (const FleetShortage& each : plan.short_of) there.emplace(each.pipeline, each.stage);
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    for (FleetStageId::rep s = 0; s < input.pipelines[p].stages.size(); ++s) {
      if (there.contains({FleetPipelineId{p}, FleetStageId{s}})) continue;
      return input.pipelines[p].name + "/" + input.pipelines[p].stages[s].name +
             ": it runs nowhere, and nothing says that it is short";
    }
  }
  if (std::string fault = FaultOfWindows(plan.instances); !fault.empty()) return fault;
  return FaultOfLoad(plan, input, use);
}

}  // namespace tactus
