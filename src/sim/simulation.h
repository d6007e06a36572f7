// One experiment in virtual time: the same Dispatcher that serves, driven from an event heap, with
// service times drawn from the profile.
//
//   auto policy = MakePolicy("edgeserving");
//   auto result = Simulate(scenario, profile, **policy);
//   RunReport report = MakeReport(scenario, profile, *result);
//
// Deterministic: the same scenario, profile, policy and seed give the same records, byte for byte.
// Arrivals and service times come from streams of their own, so two policies see the same arrivals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/expected.h"
#include "core/model.h"
#include "core/plan.h"
#include "core/policy.h"
#include "dispatch/dispatcher.h"
#include "metrics/pipeline_record.h"
#include "metrics/recorder.h"
#include "metrics/report.h"
#include "sim/world/recorded_arrivals.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"
#include "workload/share_profiles.h"

namespace tactus {

// How far a simulation is: requests that ended, of about so many. False ends it.
using SimulationProgress = std::function<bool(std::size_t done, std::size_t of)>;

struct SimulationOptions {
  // Service times vary as the profile's cells say. Off: every batch takes its cell's mean. Cells
  // that were not measured (repetitions 0) never vary.
  bool noise = true;
  // Gets every event and decision, if set.
  Journal* journal = nullptr;
  // After the scenario's duration no request arrives; those that still wait this long after it are
  // given up (shed), so that a policy that starves a queue cannot hold the simulation forever.
  Duration drain = Seconds(600);
  // What the policy runs, on lanes that are the plan's: one that fits (workload/plan_file.h). Null:
  // the scenario's lanes, and whatever plans the policy's planner makes for them. Where the
  // scenario has a [plan] planner, this is the plan that serves at first.
  std::shared_ptr<const Plan> plan = nullptr;
  // By ModelId, what that plan was made for: the planner's averages begin with these rates. Empty:
  // with the scenario's.
  std::vector<double> planned_rps = {};
  // See MakeServedModels. Its files outlive the run.
  std::span<const ShareProfile> on_share = {};
  // By ModelId, what arrives instead of what the scenario says: instants, deadlines, shapes and
  // priorities, in order of `known`. Outlives the run.
  RecordedRequests recorded = {};
  // What policies count on instead of what `profile` says; batches take that all the same.
  const ProfileFile* counted_on = nullptr;
  // Called from time to time. May be empty.
  SimulationProgress on_progress = {};
};

// Requests that a simulation keeps in memory at most, 56 bytes each.
inline constexpr double kMostSimulatedRequests = 1e8;

struct LaneTotals {
  Duration busy{};  // batches of several slots add up
  std::int64_t batches = 0;
  Duration closed{};   // time in which it took no batches, under autoscaling
  std::string kind{};  // what sets it apart from other lanes; empty where all are alike
};

struct SimulationResult {
  std::vector<Model> models;
  std::vector<RequestRecord> records;  // every request, warm-up included, in the order they ended
  std::vector<PipelineRecord> pipeline_requests;  // likewise
  std::vector<LaneTotals> lanes;
  std::vector<ScalingPoint> scaling;  // where lanes come and go
  std::vector<LayoutPoint> layout;    // where devices are split anew
  TimePoint begin;                    // what counts: requests that arrived in [begin, end) ...
  TimePoint end;
  std::int64_t skip = 0;    // ... after the first `skip` of them
  TimePoint last;           // when the last request ended
  std::uint64_t steps = 0;  // how often the dispatcher was asked
};

// An error when the profile does not cover the scenario's models, or when more than
// kMostSimulatedRequests would come; kCancelled where on_progress ended it.
Expected<SimulationResult> Simulate(const Scenario& scenario, const ProfileFile& profile,
                                    Policy& policy, const SimulationOptions& options = {});

// The figures of a run; `source` is "simulated". The policy's name is the scenario's `policy`.
RunReport MakeReport(const Scenario& scenario, const ProfileFile& profile,
                     const SimulationResult& result);

// The models and the table that policies count on. `on_share`: what was measured on each of the
// scenario's shares, and on the whole device; empty: a stand-in says what batches take on shares
// (planners/gpulet/share_latency.h).
Expected<std::shared_ptr<const ServedModels>> MakeServedModels(
    const Scenario& scenario, const ProfileFile& profile,
    std::span<const ShareProfile> on_share = {});
// What a scenario says about the dispatcher and its lanes, for every driver.
DispatcherOptions MakeDispatcherOptions(const Scenario& scenario);
std::vector<LaneSpec> MakeLanes(const Scenario& scenario);
// The lanes that Simulate drives: those of a plan, closed lanes for those that plans will
// make, or the scenario's. `plan` as in SimulationOptions.
std::vector<LaneSpec> SimulatedLanes(const Scenario& scenario, const Policy& policy,
                                     const Plan* plan);

}  // namespace tactus
