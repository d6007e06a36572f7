#include "workload/fleet_plan_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/whole_file.h"
#include "workload/json_reader.h"

namespace tactus {
namespace {

constexpr const char* kFleetPlanAnew =
    "; write one for this fleet with `tactus plan fleet FLEET --out PLAN`";
constexpr int kMostOfAPlan = 1 << 20;  // an accelerator, a stream, a batch

// Finds what the fleet calls by a name; what it lacks is the reader's problem.
class FleetNames {
 public:
  explicit FleetNames(const FleetInput& input) {
    for (DeviceId::rep d = 0; d < input.devices.size(); ++d) {
      devices_.emplace(input.devices[d].name, DeviceId{d});
    }
    for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
      pipelines_.emplace(input.pipelines[p].name, FleetPipelineId{p});
      auto& stages = stages_.emplace_back();
      for (FleetStageId::rep s = 0; s < input.pipelines[p].stages.size(); ++s) {
        stages.emplace(input.pipelines[p].stages[s].name, FleetStageId{s});
      }
    }
  }

  DeviceId Device(const JsonReader& node) const {
    const std::string name = node.Text("device");
    const auto found = devices_.find(name);
    if (found != devices_.end()) return found->second;
    node.Complain("device", "the fleet has no device '" + name + "'");
    return DeviceId{0};
  }
  FleetPipelineId Pipeline(const JsonReader& node, const char* key, const std::string& name) const {
    const auto found = pipelines_.find(name);
    if (found != pipelines_.end()) return found->second;
    node.Complain(key, "the fleet has no pipeline '" + name + "'");
    return FleetPipelineId{0};
  }
  FleetStageRef Stage(const JsonReader& node) const {
    const std::string pipeline = node.Text("pipeline"), stage = node.Text("stage");
    const FleetPipelineId p = Pipeline(node, "pipeline", pipeline);
    if (p.value() >= stages_.size()) return {p, FleetStageId{0}};  // there are none
    const auto found = stages_[p.value()].find(stage);
    if (found != stages_[p.value()].end()) return {p, found->second};
    node.Complain("stage", "pipeline '" + pipeline + "' has no stage '" + stage + "'");
    return {p, FleetStageId{0}};
  }

 private:
  std::map<std::string, DeviceId> devices_;
  std::map<std::string, FleetPipelineId> pipelines_;
  std::vector<std::map<std::string, FleetStageId>> stages_;  // by pipeline
};

FleetInstance ReadInstance(const JsonReader& node, const FleetNames& names) {
  node.Only({"pipeline", "stage", "device", "accelerator", "stream", "batch", "offset_ms",
             "length_ms", "cycle_ms", "also"});
  const FleetStageRef stage = names.Stage(node);
  FleetInstance instance{.pipeline = stage.pipeline, .stage = stage.stage, .device = {}};
  instance.device = names.Device(node);
  instance.accelerator = static_cast<int>(node.Integer("accelerator", 0, kMostOfAPlan));
  instance.stream = static_cast<int>(node.Integer("stream", 0, kMostOfAPlan));
  instance.batch = static_cast<int>(node.Integer("batch", 1, kMostOfAPlan));
  instance.offset = node.Time("offset_ms");
  instance.length = node.Time("length_ms");
  instance.cycle = node.Time("cycle_ms");
  if (!node.Has("also")) return instance;
  node.Each("also", [&](const JsonReader& each) {
    each.Only({"pipeline", "stage"});
    instance.also.push_back(names.Stage(each));
  });
  return instance;
}

FleetRoute ReadRoute(const JsonReader& node, const FleetNames& names) {
  node.Only({"pipeline", "stage", "to"});
  const FleetStageRef stage = names.Stage(node);
  FleetRoute route{stage.pipeline, stage.stage, {}};
  node.Each("to", [&](const JsonReader& each) {
    each.Only({"device", "weight"});
    const DeviceId device = names.Device(each);
    route.to.push_back({device, each.Number("weight", 0)});
  });
  return route;
}

// Rates and SLOs that differ are no fault: they are what somebody may want to try.
void ReadMadeFor(const JsonReader& all, const FleetInput& input, const FleetNames& names,
                 std::vector<std::string>& doubts) {
  for (const std::string& name : all.Keys()) {
    const FleetPipelineId p = names.Pipeline(all, name.c_str(), name);
    if (p.value() >= input.pipelines.size()) continue;
    const FleetPipeline& pipeline = input.pipelines[p.value()];
    all.Object(name.c_str(), [&](const JsonReader& each) {
      each.Only({"rate_rps", "slo_ms"});
      const auto compare = [&](const char* key, double now) {
        const double then = each.Number(key, 0);
        if (std::abs(then - now) <= 1e-6 * std::max(then, now)) return;
        doubts.push_back(
            fmt::format("pipeline '{}': the plan was made for {} = {:g}, and it is {:g}", name, key,
                        then, now));
      };
      compare("rate_rps", pipeline.rate_rps);
      compare("slo_ms", ToMillis(pipeline.slo));
    });
  }
}

FleetPlanFile ReadFleetPlan(const JsonReader& root, const FleetInput& input) {
  FleetPlanFile file;
  root.Only({"tactus_fleet_plan", "planner", "epoch", "latency_ms", "instances", "routes",
             "short_of", "reasons", "made_for"});
  if (root.Integer("tactus_fleet_plan", 0, kMostOfAPlan) != 1) {
    root.Complain("tactus_fleet_plan", "must be 1, the only version there is");
  }
  const FleetNames names(input);
  FleetPlan& plan = file.plan;
  file.planner = root.Text("planner");
  plan.epoch = static_cast<std::uint64_t>(root.Integer("epoch", 0, std::int64_t{1} << 62));
  root.Object("latency_ms", [&](const JsonReader& all) {
    for (const FleetPipeline& each : input.pipelines) {
      plan.latency.push_back(all.Time(each.name.c_str()));
    }
    for (const std::string& name : all.Keys()) names.Pipeline(all, name.c_str(), name);
  });
  root.Each("instances",
            [&](const JsonReader& each) { plan.instances.push_back(ReadInstance(each, names)); });
  root.Each("routes",
            [&](const JsonReader& each) { plan.routes.push_back(ReadRoute(each, names)); });
  root.Each("short_of", [&](const JsonReader& each) {
    each.Only({"pipeline", "stage", "missing_rps", "why"});
    const FleetStageRef stage = names.Stage(each);
    plan.short_of.push_back(
        {stage.pipeline, stage.stage, each.Number("missing_rps", 0), each.Text("why")});
  });
  root.Each("reasons", [&](const JsonReader& each) {
    each.Only({"pipeline", "stage", "why"});
    const FleetStageRef stage = names.Stage(each);
    plan.reasons.push_back({stage.pipeline, stage.stage, each.Text("why")});
  });
  if (root.Has("made_for")) {
    root.Object("made_for",
                [&](const JsonReader& all) { ReadMadeFor(all, input, names, file.doubts); });
  }
  return file;
}

}  // namespace

std::string FleetPlanJson(const FleetPlan& plan, const FleetInput& input,
                          std::string_view planner) {
  using nlohmann::json;
  const auto named = [&](FleetPipelineId p, FleetStageId s) {
    const FleetPipeline& pipeline = input.pipelines[p.value()];
    return json{{"pipeline", pipeline.name}, {"stage", pipeline.stages[s.value()].name}};
  };
  json document = {{"tactus_fleet_plan", 1}, {"planner", planner}, {"epoch", plan.epoch}};
  for (const char* list : {"instances", "routes", "short_of", "reasons"}) {
    document[list] = json::array();
  }
  document["latency_ms"] = json::object();
  for (std::size_t p = 0; p < plan.latency.size(); ++p) {
    document["latency_ms"][input.pipelines[p].name] = ToMillis(plan.latency[p]);
  }
  document["made_for"] = json::object();
  for (const FleetPipeline& each : input.pipelines) {
    document["made_for"][each.name] = {{"rate_rps", each.rate_rps}, {"slo_ms", ToMillis(each.slo)}};
  }
  for (const FleetInstance& each : plan.instances) {
    json entry = named(each.pipeline, each.stage);
    entry.update({{"device", input.devices[each.device.value()].name},
                  {"accelerator", each.accelerator},
                  {"stream", each.stream},
                  {"batch", each.batch},
                  {"offset_ms", ToMillis(each.offset)},
                  {"length_ms", ToMillis(each.length)},
                  {"cycle_ms", ToMillis(each.cycle)}});
    for (const FleetStageRef& also : each.also) {
      entry["also"].push_back(named(also.pipeline, also.stage));
    }
    document["instances"].push_back(std::move(entry));
  }
  for (const FleetRoute& each : plan.routes) {
    json entry = named(each.pipeline, each.stage);
    entry["to"] = json::array();
    for (const FleetTarget& to : each.to) {
      entry["to"].push_back(
          {{"device", input.devices[to.device.value()].name}, {"weight", to.weight}});
    }
    document["routes"].push_back(std::move(entry));
  }
  for (const FleetShortage& each : plan.short_of) {
    json entry = named(each.pipeline, each.stage);
    entry.update({{"missing_rps", each.missing_rps}, {"why", each.why}});
    document["short_of"].push_back(std::move(entry));
  }
  for (const FleetReason& each : plan.reasons) {
    json entry = named(each.pipeline, each.stage);
    entry["why"] = each.why;
    document["reasons"].push_back(std::move(entry));
  }
  return document.dump(1) + "\n";
}

Expected<FleetPlanFile> ParseFleetPlan(std::string_view text, std::string_view where,
                                       const FleetInput& input) {
  auto file = ReadJson(text, where, kFleetPlanAnew,
                       [&](const JsonReader& root) { return ReadFleetPlan(root, input); });
  if (!file) return file;
  const std::string fault = FaultOf(file->plan, input, UseLimit::kNone);
  if (fault.empty()) return file;
  return InvalidArgument(
      fmt::format("{}: not a plan of this fleet: {}{}", where, fault, kFleetPlanAnew));
}

Expected<FleetPlanFile> LoadFleetPlan(const std::filesystem::path& path, const FleetInput& input) {
  const auto text = ReadWhole(path, "plan");
  if (!text) return std::unexpected(text.error());
  return ParseFleetPlan(*text, path.string(), input);
}

}  // namespace tactus
