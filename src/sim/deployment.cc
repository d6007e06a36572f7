// What a scenario and its profile say is served, and on what: simulation.h.
#include <algorithm>

#include "base/rng.h"
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

}  // namespace

DispatcherOptions MakeDispatcherOptions(const Scenario& scenario) {
  DispatcherOptions options;
  options.queue_capacity = static_cast<std::size_t>(scenario.queue_capacity);
  options.expiry = scenario.expiry == "hopeless" ? Expiry::kHopeless
                   : scenario.expiry == "passed" ? Expiry::kPassed
                                                 : Expiry::kNever;
  return options;
}

std::vector<LaneSpec> MakeLanes(const Scenario& scenario) {
  std::vector<LaneSpec> lanes;
  // Devices that may be split are all of one kind, and whole here: the last of their classes.
  auto lane_class = static_cast<LaneClass::rep>(scenario.plan_shares.size());
  for (const LaneKind& kind : LaneKinds(scenario)) {
    for (int i = 0; i < kind.count; ++i) {
      lanes.push_back({.device = DeviceId{static_cast<DeviceId::rep>(lanes.size())},
                       .lane_class = LaneClass{lane_class},
                       .slots = scenario.slots});
    }
    ++lane_class;
  }
  return lanes;
}

Expected<std::shared_ptr<const Deployment>> MakeDeployment(const Scenario& scenario,
                                                           const ProfileFile& profile) {
  auto models = MakeModels(scenario, profile);
  if (!models) return std::unexpected(models.error());
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return std::unexpected(selected.error());
  ProfileOptions options{.percentile = scenario.percentile, .jitter_ms = scenario.jitter_ms};
  options.speeds.clear();
  for (const LaneKind& kind : LaneKinds(scenario)) options.speeds.push_back(kind.speed);
  auto table = MakeTable(Drifted(*selected, scenario), *models, options);
  if (!table) return std::unexpected(table.error());
  if (!scenario.plan_shares.empty()) {
    table = OnShares(*table, {.shares = Shares(scenario), .exponent = scenario.plan_exponent});
    if (!table) return std::unexpected(table.error());
  }
  return std::make_shared<const Deployment>(Deployment{std::move(*models), std::move(*table)});
}

}  // namespace tactus
