// A run that somebody has seen, to be simulated again under the same setting or another: what
// arrived, how long its batches took, and how it ended.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/expected.h"
#include "dispatch/journal_file.h"
#include "experiment/experiment.h"
#include "metrics/report.h"
#include "sim/simulation.h"
#include "workload/profile_file.h"

namespace tactus {

struct Observed {
  using Cell = std::tuple<std::uint32_t, std::uint16_t, int>;  // model, exit, batch
  struct Served {
    std::shared_ptr<const ServedModels> all;
    std::uint32_t id = 0;  // the model's there
    const Model& model() const { return all->models[id]; }
  };
  struct Took {
    TimePoint decided;
    Duration duration;  // until its lane was free for another
  };

  std::string name;       // of the run, for reports
  JournalHeader setting;  // its policy, lanes and options
  // The models, and what was served when each was loaded last. Those after it are by this order.
  std::vector<Served> models;
  std::map<Cell, std::vector<Took>> took;
  std::vector<LaneTotals> lanes;
  std::vector<RequestRecord> records;
  std::vector<std::vector<RecordedRequest>> arrivals;  // by model, in order of `known`
  std::size_t left_out = 0;      // calls that are not simulated: their models are not served now
  std::size_t of_many_rows = 0;  // calls of several rows: each row counts for itself
  std::size_t steps = 0;         // of the records, rows of steps of pipelines
  TimePoint first;               // what counts begins; kNever: nothing came
  TimePoint end;                 // of the arrivals
};

struct RecordedRun {
  // The lanes, the policy and the models of the run. Its profile says what batches took there.
  Experiment experiment;
  ProfileFile counted_on;  // what the policy counted on, without the margin
  std::vector<std::vector<RecordedRequest>> arrivals;  // by model, in order
  std::vector<Duration> slos;                          // that the models had then
  RunReport happened;
};

// What is said of lanes that are not simulated from what was seen.
inline constexpr std::string_view kLanesNotSimulated =
    "differ, are shares of a device, or follow a plan, which is not simulated from what was "
    "recorded; write a scenario with those lanes instead";
// InvalidArgument where the lanes are none or differ.
Status CheckLanesAlike(const std::vector<LaneSpec>& lanes);

// InvalidArgument for lanes that differ, and where nothing came for a model that is loaded.
Expected<RecordedRun> RunOf(const Observed& seen);

// Simulates it with the setting of `run.experiment`, which may have been changed. Where a model's
// SLO is another now, the deadlines of requests that had it move too. `on_progress` as in
// SimulationOptions.
Expected<RunReport> SimulateRecorded(const RecordedRun& run,
                                     const SimulationProgress& on_progress = {});

struct WhatIfRuns {
  RunReport was;
  RunReport same;                  // simulated with the setting that it had
  std::optional<RunReport> other;  // with the settings that were asked for, where some were
  int slots = 1;                   // of a lane as it was ...
  int other_slots = 1;             // ... and in the other
  // Calls that stated a deadline of their own, which another SLO of their model does not move.
  std::size_t own_deadlines = 0;
};
// Whether another setting may change what `settings` name; their values are not looked at.
Status CheckSettings(const std::vector<std::string>& settings);

// `settings` as --set has them: "lanes=3", "models.a.slo_ms=20". InvalidArgument for one that is
// unknown, and for those of arrivals, which are what they were.
Expected<WhatIfRuns> TryOther(RecordedRun run, const std::vector<std::string>& settings,
                              const SimulationProgress& on_progress = {});

}  // namespace tactus
