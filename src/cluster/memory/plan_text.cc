#include "cluster/memory/plan_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/fnv.h"

namespace tactus {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Json LinkJson(const FleetLink& link, const FleetInput& input) {
  return {{"sites", {input.sites[link.a.value()], input.sites[link.b.value()]}},
          {"mbps", link.mbps},
          {"rtt_ms", ToMillis(link.rtt)},
          {"loss", link.loss}};
}

Json DeviceJson(const FleetDevice& device, const FleetInput& input) {
  return {{"name", device.name},
          {"kind", input.kinds[device.kind.value()]},
          {"site", input.sites[device.site.value()]},
          {"accelerators", device.accelerators},
          {"streams", device.streams},
          {"memory_mb", device.memory_mb},
          {"most_use", device.most_use},
          {"server", device.server}};
}

Json StagesJson(const FleetPipeline& pipeline, const FleetInput& input) {
  Json stages = Json::array();
  for (const FleetStage& each : pipeline.stages) {
    Json after = Json::array();
    for (const FleetStageId before : each.after) {
      after.push_back(pipeline.stages[before.value()].name);
    }
    stages.push_back({{"name", each.name},
                      {"model", input.models[each.model.value()]},
                      {"after", after},
                      {"items", each.items},
                      {"cv", each.cv},
                      {"in_kb", each.in_kb},
                      {"out_kb", each.out_kb}});
  }
  return stages;
}

Json PipelineDocument(const FleetPipeline& pipeline, const FleetInput& input) {
  return {{"name", pipeline.name},
          {"slo_ms", ToMillis(pipeline.slo)},
          {"source", input.devices[pipeline.source.value()].name},
          {"rate_rps", pipeline.rate_rps},
          {"stages", StagesJson(pipeline, input)}};
}

Json CostJson(const FleetCost& cost, const FleetInput& input) {
  Json batches = Json::array();
  for (const FleetBatch& each : cost.batches) {
    batches.push_back({{"batch", each.batch},
                       {"pre_ms", ToMillis(each.pre)},
                       {"infer_ms", ToMillis(each.infer)},
                       {"post_ms", ToMillis(each.post)},
                       {"peak_mb", each.peak_mb},
                       {"use", each.use}});
  }
  Json exits = Json::array();
  for (const FleetExit& each : cost.exits) {
    exits.push_back({{"part", each.part}, {"accuracy", each.accuracy}});
  }
  return {{"model", input.models[cost.model.value()]},
          {"kind", input.kinds[cost.kind.value()]},
          {"weights_mb", cost.weights_mb},
          {"batches", batches},
          {"exits", exits}};
}

Json InputDocument(const FleetInput& input) {
  Json devices = Json::array(), links = Json::array(), pipelines = Json::array(),
       costs = Json::array();
  for (const FleetDevice& each : input.devices) devices.push_back(DeviceJson(each, input));
  for (const FleetLink& each : input.links) links.push_back(LinkJson(each, input));
  for (const FleetPipeline& each : input.pipelines) {
    pipelines.push_back(PipelineDocument(each, input));
  }
  for (const FleetCost& each : input.costs) costs.push_back(CostJson(each, input));
  return {{"sites", input.sites},
          {"devices", devices},
          {"links", links},
          {"pipelines", pipelines},
          {"costs", costs}};
}

std::unexpected<Error> NoInput(const std::string& what) {
  return InvalidArgument("the input of a plan in the knowledge base: " + what +
                         "; it is not taken up");
}

}  // namespace

std::string FleetMark(const FleetInput& declared, std::string_view planner) {
  const std::string text = std::string(planner) + "\n" + Dump(InputDocument(declared));
  return fmt::format("{:016x}", Fnv1a(text));
}

std::string InputJson(const FleetInput& input, const std::string& mark, std::string_view planner) {
  Json document = {{"tactus_fleet_input", 1}, {"fleet", mark}, {"planner", planner}};
  document.update(InputDocument(input));
  return Dump(document);
}

std::string PredictedJson(const std::string& plan) {
  const Json document = Json::parse(plan);
  return Dump({{"latency_ms", document.at("latency_ms")}, {"short_of", document.at("short_of")}});
}

Expected<PlannedInput> ParseInput(const std::string& text, const FleetInput& declared) {
  PlannedInput input;
  try {
    const nlohmann::json document = nlohmann::json::parse(text);
    input.mark = document.at("fleet").get<std::string>();
    for (const auto& each : document.at("devices")) {
      input.devices.push_back(each.at("name").get<std::string>());
    }
    for (const auto& each : document.at("links")) {
      FleetLink link{.mbps = each.at("mbps").get<double>(),
                     .rtt = FromMillis(each.at("rtt_ms").get<double>()),
                     .loss = each.at("loss").get<double>()};
      for (int end = 0; end < 2; ++end) {
        const auto site = each.at("sites").at(end).get<std::string>();
        const auto found = std::ranges::find(declared.sites, site);
        if (found == declared.sites.end()) return NoInput("no site is called '" + site + "'");
        (end == 0 ? link.a : link.b) =
            SiteId{static_cast<SiteId::rep>(found - declared.sites.begin())};
      }
      input.links.push_back(link);
    }
  } catch (const nlohmann::json::exception& thrown) {
    return NoInput(thrown.what());
  }
  return input;
}

}  // namespace tactus
