#include "core/fleet_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tactus {
namespace {

constexpr double kSlack = 1e-9;
constexpr double kMost = 1e9;  // of any number: sums and products of some stay finite
constexpr Duration kLeastSlo = Micros(1);

// False for what is no number, too.
bool InRange(double number, double low = 0) { return number >= low && number <= kMost; }

std::string Quoted(const std::string& name) { return "'" + name + "'"; }

Status CheckDevices(const FleetInput& input) {
  std::set<std::string> names;
  for (const FleetDevice& device : input.devices) {
    if (!names.insert(device.name).second) {
      return InvalidArgument("two devices are called " + Quoted(device.name) + "; rename one");
    }
    if (device.accelerators < 1 || device.streams < 1 || !(device.memory_mb > 0) ||
        !(device.most_use > 0) || !InRange(device.memory_mb) || !InRange(device.most_use)) {
      return InvalidArgument("device " + Quoted(device.name) +
                             ": accelerators, streams, memory_mb and most_use must be above 0");
    }
    if (device.kind.value() >= input.kinds.size() || device.site.value() >= input.sites.size()) {
      return InvalidArgument("device " + Quoted(device.name) + ": of an unknown kind or site");
    }
  }
  return {};
}

Status CheckLinks(const FleetInput& input) {
  std::set<std::pair<SiteId, SiteId>> joined;
  for (const FleetLink& link : input.links) {
    if (link.a.value() >= input.sites.size() || link.b.value() >= input.sites.size()) {
      return InvalidArgument("a link of a site that is not there");
    }
    const std::string what = "the link of sites " + Quoted(input.sites[link.a.value()]) + " and " +
                             Quoted(input.sites[link.b.value()]);
    if (link.a == link.b || !(link.mbps > 0) || !InRange(link.mbps) || link.rtt < Duration{}) {
      return InvalidArgument(what + ": it joins two sites, with mbps above 0 and an rtt from 0 on");
    }
    if (!(link.loss >= 0 && link.loss < 1)) {
      return InvalidArgument(what + ": loss is a part of its packets, from 0 to below 1");
    }
    if (!joined.insert(std::minmax(link.a, link.b)).second) {
      return InvalidArgument(what + " is there twice; leave one out");
    }
  }
  return {};
}

Status CheckExits(const std::vector<FleetExit>& exits, const std::string& what) {
  double part = 0, accuracy = 0;
  for (const FleetExit& each : exits) {
    if (!(each.part > part && each.part <= 1) ||
        !(each.accuracy > accuracy && each.accuracy <= 1)) {
      return InvalidArgument(what + ": exits must ascend in part and accuracy, up to 1");
    }
    part = each.part;
    accuracy = each.accuracy;
  }
  if (exits.empty() || part == 1) return {};
  return InvalidArgument(what + ": the last exit must be the whole model, part 1");
}

Status CheckCosts(const FleetInput& input) {
  std::set<std::pair<ModelId, KindId>> known;
  for (const FleetCost& cost : input.costs) {
    if (cost.model.value() >= input.models.size() || cost.kind.value() >= input.kinds.size()) {
      return InvalidArgument("costs of a model or a kind of device that is not there");
    }
    const std::string what = "costs of " + Quoted(input.models[cost.model.value()]) + " on " +
                             Quoted(input.kinds[cost.kind.value()]);
    if (!known.insert({cost.model, cost.kind}).second) {
      return InvalidArgument(what + " are there twice; leave one out");
    }
    if (cost.batches.empty()) return InvalidArgument(what + ": no batch");
    if (!InRange(cost.weights_mb)) return InvalidArgument(what + ": weights_mb must be from 0 on");
    if (auto exits = CheckExits(cost.exits, what); !exits) return exits;
    int last = 0;
    for (const FleetBatch& batch : cost.batches) {
      if (batch.batch <= last || batch.total() <= Duration{} || !InRange(batch.use) ||
          !InRange(batch.peak_mb)) {
        return InvalidArgument(what + ": batches must ascend, each with a time above 0");
      }
      last = batch.batch;
    }
  }
  return {};
}

bool RunsSomewhere(const FleetInput& input, const FleetPipeline& pipeline, ModelId model) {
  const auto runs = [&](DeviceId d) {
    return input.CostOf(model, input.devices[d.value()].kind) != nullptr;
  };
  return runs(pipeline.source) || std::ranges::any_of(input.ServersFor(pipeline.source), runs);
}

Status CheckPipeline(const FleetInput& input, const FleetPipeline& pipeline) {
  const std::string what = "pipeline " + Quoted(pipeline.name);
  if (pipeline.slo < kLeastSlo || !InRange(pipeline.rate_rps) || pipeline.stages.empty()) {
    return InvalidArgument(what + ": needs an SLO above 0, a rate from 0 on and a stage");
  }
  if (pipeline.source.value() >= input.devices.size()) {
    return InvalidArgument(what + ": its source is no device of the fleet");
  }
  std::set<std::string> names;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const FleetStage& stage = pipeline.stages[s];
    const std::string where = what + ", stage " + Quoted(stage.name);
    if (!names.insert(stage.name).second) {
      return InvalidArgument(what + ": two stages are called " + Quoted(stage.name) +
                             "; rename one");
    }
    if (!InRange(stage.items) || !InRange(stage.in_kb) || !InRange(stage.out_kb) ||
        !InRange(stage.cv, -kMost)) {
      return InvalidArgument(where + ": items, in_kb and out_kb must be from 0 on");
    }
    if (stage.model.value() >= input.models.size()) {
      return InvalidArgument(where + ": of a model that is not there");
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

bool FleetInput::Reaches(DeviceId from, DeviceId to) const {
  return devices[from.value()].site == devices[to.value()].site || LinkBetween(from, to) != kNoLink;
}

std::vector<DeviceId> FleetInput::ServersFor(DeviceId source) const {
  std::vector<DeviceId> servers;
  for (DeviceId::rep d = 0; d < devices.size(); ++d) {
    const auto reached = [&](DeviceId from) { return Reaches(from, DeviceId{d}); };
    if (devices[d].server && reached(source) && std::ranges::all_of(servers, reached)) {
      servers.push_back(DeviceId{d});
    }
  }
  return servers;
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
  if (auto links = CheckLinks(input); !links) return links;
  if (auto costs = CheckCosts(input); !costs) return costs;
  std::set<std::string> names;
  for (const FleetPipeline& pipeline : input.pipelines) {
    if (!names.insert(pipeline.name).second) {
      return InvalidArgument("two pipelines are called " + Quoted(pipeline.name) + "; rename one");
    }
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
  if (instance.cycle <= Duration{}) return what + "its cycle is not above 0";
  if (instance.offset < Duration{} || instance.offset + instance.length > instance.cycle) {
    return what + "its window ends beyond the cycle";
  }
  const ModelId model = pipeline.stages[instance.stage.value()].model;
  for (const FleetStageRef& each : instance.also) {
    const bool known = each.pipeline.value() < input.pipelines.size() &&
                       each.stage.value() < input.pipelines[each.pipeline.value()].stages.size();
    if (!known) return what + "it runs an unknown stage too";
    if (input.pipelines[each.pipeline.value()].stages[each.stage.value()].model != model) {
      return what + "it runs a stage of another model too";
    }
  }
  return "";
}

// Where each stage runs, and what gets there from where the one before it runs.
class Ways {
 public:
  explicit Ways(const FleetInput& input) : input_(input) {}

  void Add(FleetStageRef stage, DeviceId device) { at_[stage].insert(device); }
  bool Has(FleetStageRef stage) const { return at_.contains(stage); }
  bool Has(FleetStageRef stage, DeviceId device) const {
    const auto found = at_.find(stage);
    return found != at_.end() && found->second.contains(device);
  }
  const std::map<FleetStageRef, std::set<DeviceId>>& all() const { return at_; }

  std::string Fault() const {
    for (const auto& [stage, devices] : at_) {
      const FleetPipeline& pipeline = input_.pipelines[stage.pipeline.value()];
      const std::vector<FleetStageId>& after = pipeline.stages[stage.stage.value()].after;
      std::set<DeviceId> from;
      if (after.empty()) from.insert(pipeline.source);
      for (const FleetStageId each : after) {
        const auto before = at_.find({stage.pipeline, each});
        if (before != at_.end()) from.insert(before->second.begin(), before->second.end());
      }
      const auto servers = input_.ServersFor(pipeline.source);
      const DeviceId sink = servers.empty() ? pipeline.source : servers.front();
      for (const DeviceId device : devices) {
        const bool reached =
            input_.Reaches(device, sink) &&
            std::ranges::all_of(from, [&](DeviceId each) { return input_.Reaches(each, device); });
        if (reached) continue;
        return pipeline.name + "/" + pipeline.stages[stage.stage.value()].name +
               ": no link between " + input_.devices[device.value()].name +
               " and where its items come from or its results go";
      }
    }
    return "";
  }

 private:
  const FleetInput& input_;
  std::map<FleetStageRef, std::set<DeviceId>> at_;
};

std::string NameOf(const FleetInput& input, FleetStageRef stage) {
  const FleetPipeline& pipeline = input.pipelines[stage.pipeline.value()];
  return pipeline.name + "/" + pipeline.stages[stage.stage.value()].name;
}

std::string FaultOfRoutes(const FleetPlan& plan, const FleetInput& input, const Ways& ways) {
  std::set<FleetStageRef> routed;
  for (const FleetRoute& route : plan.routes) {
    const FleetStageRef stage{route.pipeline, route.stage};
    const bool known = route.pipeline.value() < input.pipelines.size() &&
                       route.stage.value() < input.pipelines[route.pipeline.value()].stages.size();
    if (!known) return "a route of an unknown stage";
    const std::string what = NameOf(input, stage) + ": ";
    if (!routed.insert(stage).second) return what + "it has two routes";
    if (route.to.empty()) return what + "its route leads nowhere";
    std::set<DeviceId> devices;
    for (const FleetTarget& target : route.to) {
      if (!ways.Has(stage, target.device)) return what + "its route leads where it does not run";
      if (!devices.insert(target.device).second) return what + "its route names a device twice";
      if (!(target.weight > 0) || !InRange(target.weight)) {
        return what + "a weight of its route is not above 0";
      }
    }
  }
  for (const auto& [stage, devices] : ways.all()) {
    if (!routed.contains(stage)) return NameOf(input, stage) + ": it runs, and has no route";
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

std::vector<FleetRoute> RoutesOf(const std::vector<FleetInstance>& instances) {
  std::vector<std::pair<FleetStageRef, DeviceId>> at;
  for (const FleetInstance& each : instances) {
    at.push_back({{each.pipeline, each.stage}, each.device});
    for (const FleetStageRef& also : each.also) at.push_back({also, each.device});
  }
  std::ranges::stable_sort(at, {}, &std::pair<FleetStageRef, DeviceId>::first);
  std::vector<FleetRoute> routes;
  for (const auto& [stage, device] : at) {
    const bool same = !routes.empty() && routes.back().pipeline == stage.pipeline &&
                      routes.back().stage == stage.stage;
    if (!same) routes.push_back({stage.pipeline, stage.stage, {}});
    std::vector<FleetTarget>& to = routes.back().to;
    const auto target = std::ranges::find(to, device, &FleetTarget::device);
    if (target == to.end()) {
      to.push_back({device, 1});
    } else {
      target->weight += 1;
    }
  }
  return routes;
}

std::string FaultOf(const FleetPlan& plan, const FleetInput& input, UseLimit use) {
  Ways ways(input);
  for (const FleetInstance& instance : plan.instances) {
    if (std::string fault = FaultOfInstance(instance, input); !fault.empty()) return fault;
    ways.Add({instance.pipeline, instance.stage}, instance.device);
    for (const FleetStageRef& each : instance.also) ways.Add(each, instance.device);
  }
  const auto stage = [](const FleetInstance& i) { return FleetStageRef{i.pipeline, i.stage}; };
  if (!std::ranges::is_sorted(plan.instances, {}, stage)) {
    return "instances do not come by pipeline, then stage";
  }
  std::set<FleetStageRef> said;
  for (const FleetShortage& each : plan.short_of) said.insert({each.pipeline, each.stage});
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    for (FleetStageId::rep s = 0; s < input.pipelines[p].stages.size(); ++s) {
      const FleetStageRef stage{FleetPipelineId{p}, FleetStageId{s}};
      if (ways.Has(stage) || said.contains(stage)) continue;
      return input.pipelines[p].name + "/" + input.pipelines[p].stages[s].name +
             ": it runs nowhere, and nothing says that it is short";
    }
  }
  if (std::string fault = ways.Fault(); !fault.empty()) return fault;
  if (std::string fault = FaultOfRoutes(plan, input, ways); !fault.empty()) return fault;
  if (std::string fault = FaultOfWindows(plan.instances); !fault.empty()) return fault;
  return FaultOfLoad(plan, input, use);
}

}  // namespace tactus
