// The figures of a run of a fleet. A result is the answer of a last stage for one object; one that
// is at the sink by its frame's deadline counts ("effective throughput", OctopInf Section IV-B).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tactus {

// What became of a stage's runs; each ends in one of these.
struct FleetStageReport {
  std::string pipeline, stage;
  std::string device;          // of the last plan
  std::int64_t runs = 0;       // that were to be
  std::int64_t answered = 0;   // by the dispatcher, in time or not
  std::int64_t expired = 0;    // dropped by a dispatcher: its deadline could not be met
  std::int64_t shed = 0;       // by a policy, a full queue, or for want of an instance
  std::int64_t link_dead = 0;  // not sent: it would have come too late
  std::int64_t link_full = 0;  // not sent: the link's queue was full
  std::int64_t cancelled = 0;  // nobody needed it any more
};

struct FleetPipelineReport {
  std::string name;
  double slo_ms = 0;
  std::int64_t frames = 0;
  std::int64_t offered = 0;  // results that there would be if nothing were lost
  std::int64_t on_time = 0;
  std::int64_t late = 0;
  double value = 0;  // of results on time: by the accuracy of each, 1 for whole models
  double p50_ms = 0, p95_ms = 0, p99_ms = 0;  // of results, late ones too; from the frame on
  std::vector<std::int64_t> on_time_by_minute, offered_by_minute;  // by the frame's arrival
};

struct FleetDeviceReport {
  std::string name;
  double busy = 0;       // of the time at least one batch ran, mean over accelerators
  double memory_mb = 0;  // that the last plan takes
};

struct FleetLinkReport {
  std::string name;      // "agx -> rack"
  double busy = 0;       // of the time
  double megabytes = 0;  // delivered
  std::int64_t delivered = 0;
  std::int64_t dropped = 0;
};

struct FleetReport {
  std::string fleet, planner, policy;
  std::uint64_t seed = 0;
  double duration_s = 0;
  std::int64_t items = 0;  // runs of all stages
  std::int64_t frames = 0;
  std::int64_t ended = 0;  // frames that ended, each counted once
  bool exits = false;      // models of the fleet have early exits
  int plans = 0;           // that served
  int scalings = 0;        // of the AutoScaler
  double memory_mb = 0;    // of servers, by the last plan
  std::vector<FleetPipelineReport> pipelines;
  std::vector<FleetStageReport> stages;
  std::vector<FleetDeviceReport> devices;
  std::vector<FleetLinkReport> links;

  std::int64_t offered() const;
  std::int64_t on_time() const;
  std::int64_t late() const;
  double value() const;
  // Results on time a second, each counted by its accuracy.
  double value_rps() const { return duration_s > 0 ? value() / duration_s : 0; }
  double effective_rps() const { return duration_s > 0 ? on_time() / duration_s : 0; }
  double on_time_share() const {
    return offered() > 0 ? static_cast<double>(on_time()) / offered() : 1;
  }
};

// One run: pipelines, what stages lost and why, devices and links.
std::string FleetTable(const FleetReport& report);
// Several runs, a row for each planner and policy, means over seeds.
std::string FleetComparison(std::span<const FleetReport> reports);
// {"tactus_fleet_runs": 1, "runs": [...]}
std::string FleetReportsJson(std::span<const FleetReport> reports);

}  // namespace tactus
