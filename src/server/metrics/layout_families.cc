// How a device is split by a plan, and what planning by itself does.
#include <map>

#include "server/metrics/gauge_family.h"
#include "server/metrics/runtime_families.h"

namespace tactus {
namespace {

MetricFamily One(const char* name, const char* help, MetricType type, double value) {
  MetricFamily family = Family(name, help, type);
  Add(family, {}, value);
  return family;
}

}  // namespace

std::vector<MetricFamily> LayoutFamilies(const DeviceLayout& layout) {
  MetricFamily lanes =
      Family("tactus_lane_share_ratio", "Share of the device that the lane has; 0: it is closed.",
             MetricType::Gauge);
  std::map<std::string, double> shares;
  std::map<std::string, double> sustained;
  for (const std::string& model : layout.models) shares[model] = sustained[model] = 0;
  for (std::size_t i = 0; i < layout.plan->lanes.size(); ++i) {
    const LanePlan& lane = layout.plan->lanes[i];
    Add(lanes, {{"lane", std::to_string(i)}}, lane.entries.empty() ? 0 : lane.spec.fraction);
    for (const PlanEntry& entry : lane.entries) {
      const std::string& model = layout.models[entry.model.value()];
      shares[model] += lane.spec.fraction * ToSeconds(entry.length) / ToSeconds(lane.cycle);
      sustained[model] += entry.batch / ToSeconds(lane.cycle);
    }
  }
  MetricFamily models = Family(
      "tactus_model_share_ratio",
      "What the plan gives the model of the device's time: its lanes' shares by its windows.",
      MetricType::Gauge);
  for (const auto& [model, share] : shares) Add(models, {{"model", model}}, share);
  MetricFamily rates =
      Family("tactus_model_planned_rps",
             "Requests (rows) a second that the plan sustains of the model.", MetricType::Gauge);
  for (const auto& [model, rps] : sustained) Add(rates, {{"model", model}}, rps);
  return {std::move(lanes),
          std::move(models),
          std::move(rates),
          One("tactus_plan_changes_total", "Plans that came to serve, with the first.",
              MetricType::Counter, static_cast<double>(layout.changes)),
          One("tactus_plan_given_up_total",
              "Plans of which a lane could not be had; the lanes before served on.",
              MetricType::Counter, static_cast<double>(layout.given_up)),
          One("tactus_plan_draining_lanes",
              "Lanes that end what they run before they go, or before a model leaves them.",
              MetricType::Gauge, layout.draining),
          One("tactus_plan_drain_seconds", "For how long the first of these has been at it.",
              MetricType::Gauge, ToSeconds(layout.drain))};
}

std::vector<MetricFamily> PlanningFamilies(const PlanningReading& planning) {
  MetricFamily offered =
      Family("tactus_model_offered_rps",
             "Requests (rows) a second that came for the model, as averaged for planning.",
             MetricType::Gauge);
  for (const auto& [model, rps] : planning.rates_rps) Add(offered, {{"model", model}}, rps);
  const auto counter = [](const char* name, const char* help, double value) {
    return One(name, help, MetricType::Counter, value);
  };
  return {std::move(offered),
          counter("tactus_replans_total", "Questions to the planner.",
                  static_cast<double>(planning.questions)),
          counter("tactus_replan_infeasible_total",
                  "Questions to which no plan sustains all of the load.",
                  static_cast<double>(planning.infeasible)),
          counter("tactus_replan_seconds_total", "Time that the planner took to answer.",
                  ToSeconds(planning.asked)),
          counter("tactus_plan_change_seconds_total",
                  "Time from the decision for another plan until the old lanes were gone.",
                  ToSeconds(planning.changed)),
          One("tactus_plan_short",
              "1 while no plan sustains all of the load that the planner was last asked for.",
              MetricType::Gauge, planning.shortage.empty() ? 0 : 1)};
}

}  // namespace tactus
