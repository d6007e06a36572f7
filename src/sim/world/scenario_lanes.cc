#include "sim/world/scenario_lanes.h"

#include <fmt/format.h>

namespace tactus {

LaneScalerOptions MakeScaler(const Scenario& scenario) {
  LaneScalerOptions options;
  options.advice = {.bad_threshold = scenario.bad_threshold,
                    .idle_threshold = scenario.idle_threshold,
                    .idle_kept = scenario.idle_kept,
                    .least = scenario.scale_least,
                    .most = scenario.lanes};
  options.window = FromSeconds(scenario.scale_window_s);
  options.start_delay = FromSeconds(scenario.scale_start_delay_s);
  options.initial = scenario.scale_initial;
  return options;
}

std::vector<double> SpeedsOf(const Scenario& scenario, std::size_t lanes) {
  std::vector<double> speeds;
  for (const LaneKind& kind : LaneKinds(scenario))
    speeds.insert(speeds.end(), kind.count, kind.speed);
  speeds.resize(lanes, 1);
  return speeds;
}

std::vector<LaneTotals> TotalsOf(const Scenario& scenario, std::span<const LaneSpec> lanes) {
  std::vector<LaneTotals> totals(lanes.size());
  const std::vector<LaneKind> kinds = LaneKinds(scenario);
  const bool in_shares = !scenario.plan_shares.empty() && scenario.plan_planner == "none";
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (in_shares) totals[i].kind = fmt::format("of {:.4g} %", 100 * lanes[i].fraction);
    if (kinds.size() > 1) totals[i].kind = kinds[lanes[i].lane_class.value()].name;
  }
  return totals;
}

}  // namespace tactus
