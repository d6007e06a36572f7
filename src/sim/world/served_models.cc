// What a scenario and its profile say is served, and on what: simulation.h.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"
#include "placement/plan_transition.h"
#include "planners/gpulet/share_latency.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

// The profile as policies are told it: figures of throughput that have drifted since.
ProfileFile Drifted(ProfileFile profile, const Scenario& scenario) {
  if (scenario.drift == 0) return profile;
  for (ProfiledModel& model : profile.models) {
    Rng rng = Rng::Stream(scenario.seed, "drift/" + model.name);
    for (ProfiledExit& exit : model.exits) {
      for (ProfileCell& cell : exit.cells) {
        for (double& share : cell.throughput) {
          share = std::clamp(share * (1 + scenario.drift * (2 * rng.Uniform() - 1)), 0.0, 1.0);
        }
      }
    }
  }
  return profile;
}

// By what the profile says of the whole device.
Expected<ProfileTable> StandInTable(const Scenario& scenario, const ProfileFile& profile,
                                    const std::vector<Model>& models,
                                    const ProfileOptions& options) {
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  auto table = MakeTable(Drifted(*selected, scenario), models, options);
  if (!table || scenario.plan_shares.empty()) return table;
  std::vector<std::string> names;
  for (const Model& model : models) names.push_back(model.name);
  return OnShares(*table, {.shares = Shares(scenario),
                           .exponent = scenario.plan_exponent,
                           .utilization_base = scenario.plan_utilization_base == "device"
                                                   ? UtilizationBase::kDevice
                                                   : UtilizationBase::kLargestBatch,
                           .models = std::move(names)});
}

Expected<ProfileTable> MeasuredTable(const Scenario& scenario,
                                     std::span<const ShareProfile> on_share,
                                     const std::vector<Model>& models,
                                     const ProfileOptions& options) {
  if (options.speeds.size() > 1) {
    return InvalidArgument(
        "devices whose shares were measured are all alike; leave out [[lane_kinds]]");
  }
  std::vector<ShareProfile> shares;
  for (const ShareProfile& each : on_share) {
    const auto selected = SelectProfile(scenario, each.profile);
    if (!selected) {
      return Fail(selected.error().code, fmt::format("the profile of {:g} % of a device: {}",
                                                     100 * each.share, selected.error().message));
    }
    shares.push_back({each.share, Drifted(*selected, scenario)});
  }
  return MakeTable(shares, models, options);
}

ModelSet ServedBy(const LaneKind& kind, const Scenario& scenario) {
  if (kind.models.empty()) return ModelSet::All();
  ModelSet serves = ModelSet::None(scenario.models.size());
  for (ModelId::rep m = 0; m < scenario.models.size(); ++m) {
    if (MayRun(kind, scenario.models[m].name)) serves.Insert(ModelId{m});
  }
  return serves;
}

}  // namespace

DispatcherOptions MakeDispatcherOptions(const Scenario& scenario) {
  DispatcherOptions options;
  options.queue_capacity = static_cast<std::size_t>(scenario.queue_capacity);
  options.expiry = scenario.expiry == "unmeetable" ? Expiry::kUnmeetable
                   : scenario.expiry == "passed"   ? Expiry::kPassed
                                                   : Expiry::kNever;
  const bool drifts = scenario.drift_factor != 1 || scenario.drift_stall_ms > 0;
  const bool stalls = scenario.follow == "stalls";
  options.follow = {
      .on = stalls || scenario.follow == "yes" || (scenario.follow == "auto" && drifts),
      .percentile = scenario.percentile,
      .stalls = stalls,
      .margin = FromMillis(scenario.jitter_ms)};
  return options;
}

std::vector<LaneSpec> MakeLanes(const Scenario& scenario) {
  std::vector<LaneSpec> lanes;
  // Devices that may be split are all of one kind, and whole here: the last of their classes.
  auto lane_class = static_cast<LaneClass::rep>(scenario.plan_shares.size());
  for (const LaneKind& kind : LaneKinds(scenario)) {
    const ModelSet serves = ServedBy(kind, scenario);
    for (int i = 0; i < kind.count; ++i) {
      lanes.push_back({.device = DeviceId{static_cast<DeviceId::rep>(lanes.size())},
                       .lane_class = LaneClass{lane_class},
                       .slots = scenario.slots,
                       .serves = serves});
    }
    ++lane_class;
  }
  return lanes;
}

std::vector<LaneSpec> SimulatedLanes(const Scenario& scenario, const Policy& policy,
                                     const Plan* plan) {
  if (!policy.traits().planner.empty() && scenario.plan_planner != "none") {
    return PlanTransition(scenario.lanes).AllLanes();
  }
  if (plan == nullptr) return MakeLanes(scenario);
  std::vector<LaneSpec> lanes;
  for (const LanePlan& lane : plan->lanes) lanes.push_back(lane.spec);
  return lanes;
}

Expected<std::shared_ptr<const ServedModels>> MakeServedModels(
    const Scenario& scenario, const ProfileFile& profile, std::span<const ShareProfile> on_share) {
  auto models = MakeModels(scenario, profile);
  if (!models) return std::unexpected(models.error());
  ProfileOptions options{.percentile = scenario.percentile, .jitter_ms = scenario.jitter_ms};
  options.speeds.clear();
  for (const LaneKind& kind : LaneKinds(scenario)) options.speeds.push_back(kind.speed);
  auto table = on_share.empty() ? StandInTable(scenario, profile, *models, options)
                                : MeasuredTable(scenario, on_share, *models, options);
  if (!table) return std::unexpected(table.error());
  return std::make_shared<const ServedModels>(ServedModels{std::move(*models), std::move(*table)});
}

}  // namespace tactus
