#include "cluster/controller/cluster_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "metrics/text_table.h"

namespace tactus {
namespace {

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : " ") + each;
  return text.empty() ? "-" : text;
}

std::string PlanNumber(PlanId id) {
  return id.none() ? "-" : fmt::format("{}.{}", id.term, id.epoch);
}

std::string TroubleOf(const LeaderView::Node& node) {
  if (!node.left_out.empty()) return "left out: " + node.left_out;
  return node.report.trouble;
}

nlohmann::ordered_json JsonOf(const LeaderView::Node& node) {
  nlohmann::ordered_json routes = nlohmann::json::array();
  for (const SliceRoute& each : node.slice.routes) {
    nlohmann::ordered_json to = nlohmann::json::object();
    for (const RouteTarget& target : each.to) to[target.node] = target.weight;
    routes.push_back({{"pipeline", each.pipeline}, {"stage", each.stage}, {"to", to}});
  }
  nlohmann::ordered_json instances = nlohmann::json::array();
  for (const SliceInstance& each : node.slice.instances) {
    instances.push_back({{"pipeline", each.pipeline},
                         {"stage", each.stage},
                         {"model", each.model},
                         {"accelerator", each.accelerator},
                         {"stream", each.stream},
                         {"batch", each.batch}});
  }
  nlohmann::ordered_json links = nlohmann::json::object();
  for (const MeasuredLink& each : node.links) {
    links[each.to] = {{"mbps", each.reading.mbps}, {"rtt_ms", ToMillis(each.reading.rtt)}};
  }
  return {{"name", node.name},
          {"standing", Name(node.standing)},
          {"silent_s", ToSeconds(node.silent)},
          {"plan", PlanNumber(node.report.committed)},
          {"ready", node.report.committed_ready},
          {"http", node.report.http},
          {"grpc", node.report.grpc},
          {"models", ModelsOf(node.slice)},
          {"instances", instances},
          {"routes", routes},
          {"rates", node.rates},
          {"links", links},
          {"trouble", TroubleOf(node)}};
}

}  // namespace

std::string ClusterTable(const LeaderView& view) {
  TextTable table;
  table.AddColumns("node|is|plan|ready|models|http|grpc|trouble");
  for (const LeaderView::Node& node : view.nodes) {
    table.Add({node.name, Name(node.standing), PlanNumber(node.report.committed),
               node.report.committed_ready ? "yes" : "no", Listed(ModelsOf(node.slice)),
               node.report.http, node.report.grpc, TroubleOf(node)});
  }
  std::string text =
      view.term == 0 ? "the controller gathers its nodes\n"
                     : fmt::format("term {}, serving plan {}", view.term, PlanNumber(view.serving));
  if (view.term != 0) {
    text += view.rolling == view.serving
                ? "\n"
                : fmt::format(", plan {} {}\n", PlanNumber(view.rolling), view.phase);
  }
  if (!view.problem.empty()) text += view.problem + "\n";
  for (const auto& [pipeline, why] : view.lost) {
    text += fmt::format("pipeline '{}' has no place: {}\n", pipeline, why);
  }
  return text + "\n" + table.Print();
}

std::string ClusterJson(const LeaderView& view) {
  nlohmann::ordered_json nodes = nlohmann::json::array();
  for (const LeaderView::Node& each : view.nodes) nodes.push_back(JsonOf(each));
  nlohmann::ordered_json lost = nlohmann::json::array();
  nlohmann::ordered_json why_lost = nlohmann::json::object();
  for (const auto& [pipeline, why] : view.lost) {
    lost.push_back(pipeline);
    why_lost[pipeline] = why;
  }
  const nlohmann::ordered_json document = {{"tactus_cluster", 1},
                                           {"term", view.term},
                                           {"serving", PlanNumber(view.serving)},
                                           {"rolling", PlanNumber(view.rolling)},
                                           {"phase", view.phase},
                                           {"problem", view.problem},
                                           {"lost", lost},
                                           {"why_lost", why_lost},
                                           {"nodes", nodes}};
  return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool AllServe(const LeaderView& view) {
  return !view.serving.none() && std::ranges::all_of(view.nodes, [&](const auto& node) {
    if (node.standing == Standing::kAway || node.standing == Standing::kDead) return true;
    return node.report.committed == view.serving && node.report.committed_ready;
  });
}

}  // namespace tactus
