// One report for simulate, measure, load and demo: a table for people, JSON for programs.
//
//   {"runs": [{"policy", "scenario", "seed", "commit", "machine", "source", "profile",
//   "duration_s",
//              "settings": {"rate_rps": "200"},   // of a sweep, where there was one
//              "requests", "offered_rps", "goodput_rps", "bad_ratio", "p50_ms", "p95_ms", "p99_ms",
//              "mean_batch", "batch_sizes": {"size": share of batches}, "queue_p50_ms",
//              "queue_p99_ms", "accuracy", "measured_accuracy", "accuracy_limit",
//              "accuracy_limit_by_rate",
//              "exits": {"exit": share}, "outcomes": {"met": n, ...},
//              "models": [{"name", "slo_ms", the same figures}],
//              "pipelines": [{"name", "slo_ms", "requests", "offered_rps", "goodput_rps",
//              "bad_ratio", "p50_ms", "p95_ms", "p99_ms", "outcomes": {"on_time", "late",
//              "dropped"}, "dropped_at": {"stage": n},
//              "items", "items_lost"}],                  // where stages' answers have rows
//              "priorities": [{"priority", the same figures}],  // where models differ in it
//              "prediction": {"batches", "p50", "p95", "p99",  // of a policy that predicts
//                             "overhead_p50", "overhead_p99",
//                             "percentiles": [{"percent", "error", "signed_error",
//                             "latency_error", "overhead"}]},
//              "lanes_touched", "busy_ratio", "idle_ratio",
//              "lanes": [{"busy_ratio", "open_ratio", "batches", "kind" where they differ}],
//              "mean_open_lanes",
//              "lanes_over_time": [{"at_s", "open", "starting", "advised", "requests", "bad_ratio",
//              "idle_ratio"}],     // under autoscaling
//              "layout_over_time": [{"at_s", "lanes", "devices_used", "offered_rps", "bad_ratio",
//              "plans"}],          // of each period, where devices are split anew as loads change
//              "timeline": [{"model" or null for all, "end_s": [], "offered_rps": [],
//              "goodput_rps": [], "bad_ratio": [], "busy_lanes": []}],  // by parts of the run
//              "peak": {...}  // of a goodput search, below
//             }],
//    "failed": [{"policy", "why"}],  // of several, those that could not be run on the scenario
//    "checks": [{"what", "value", "bar", "ok"}]}
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "metrics/pipeline_record.h"
#include "metrics/recorder.h"

namespace tactus {

struct ExitShare {
  std::string name;
  double share = 0;  // of the answered requests
};

struct BatchShare {
  int size = 0;
  double share = 0;  // of the batches; one that began or ended outside the span counts in part
};

struct Summary {
  std::int64_t requests = 0;
  std::array<std::int64_t, kOutcomes> outcomes{};
  double offered_rps = 0;
  double goodput_rps = 0;  // met per second
  double bad_ratio = 0;    // everything that is not met, but for cancelled, over all but cancelled
  double p50_ms = 0;       // latency of answered requests, arrival to answer
  double p95_ms = 0;
  double p99_ms = 0;
  double mean_batch = 0;                    // as a request sees it
  double accuracy = 0;                      // looked up by exit, over answered requests
  std::optional<double> measured_accuracy;  // from labelled inputs, where there were any
  std::vector<ExitShare> exits;             // shallowest first; of all models: joined by name
  std::vector<BatchShare> batch_sizes;      // smallest first; those that occurred
  // From arrival to the start of execution, of answered requests; null where a client measured,
  // which sees only the whole.
  std::optional<double> queue_p50_ms;
  std::optional<double> queue_p99_ms;
};

struct ModelSummary {
  std::string name;
  double slo_ms = 0;
  Summary figures;
  bool staged = false;  // its requests are pipelines', which are judged in its stead
};

struct StageLosses {
  std::string name;
  std::int64_t dropped = 0;  // pipeline requests that ended there
};

struct PipelineSummary {
  std::string name;
  double slo_ms = 0;
  std::int64_t on_time = 0;
  std::int64_t late = 0;
  std::vector<StageLosses> stages;
  std::int64_t items = 0;       // rows that stages ran for, of requests that were answered, and ...
  std::int64_t items_lost = 0;  // ... those that the answer does without
  double offered_rps = 0;
  double goodput_rps = 0;  // on time
  double bad_ratio = 0;    // violations (docs/reference/deadlines.md) over all
  double p50_ms = 0;       // of those answered, from the arrival to the last answer
  double p95_ms = 0;
  double p99_ms = 0;

  std::int64_t dropped() const;
  std::int64_t requests() const { return on_time + late + dropped(); }
};

// All models of one priority.
struct PrioritySummary {
  int priority = 1;  // 1 is the highest
  Summary figures;
};

// What `percent` of the predictions do not exceed, as parts: of the kernels' time, without its sign
// and with it, of the whole latency, and of what neighbours cost.
struct PredictionPercentile {
  double percent = 0;
  double error = 0;
  double signed_error = 0;
  double latency_error = 0;
  double overhead = 0;
};

// How far a policy's predictions of the kernels' time were off, of batches that had neighbours.
struct PredictionSummary {
  std::int64_t batches = 0;
  double p50 = 0;  // of the absolute error over the actual time
  double p95 = 0;
  double p99 = 0;
  double overhead_p50 = 0;  // what neighbours cost: the kernels' time over the profiled, less 1
  double overhead_p99 = 0;
  std::vector<PredictionPercentile> percentiles;  // of one run; empty where several are averaged
};

struct LaneSummary {
  double busy_ratio = 0;  // of the run
  std::int64_t batches = 0;
  double open_ratio = 1;  // part of the run in which it took batches; less under autoscaling
  std::string kind = {};  // empty where all are alike
};

// What a goodput search found: the highest offered rate at which no model's violation ratio exceeds
// `bad_limit`, as the mean over seeds, and beside it what no scheduler beats (workload/bounds.h).
struct PeakGoodput {
  double rate_rps = 0;
  double half_width_rps = 0;  // of the 95 % confidence interval over the seeds; 0 for one seed
  int seeds = 0;
  double bad_limit = 0.01;
  std::string limiting_model;                 // the worst one just above the peak
  std::optional<double> staggered_bound_rps;  // of one model
  double fluid_limit_rps = 0;
  std::vector<double> rates_rps;  // by seed, of which rate_rps is the mean; 0: no rate passed
};

// A moment at which autoscaling looked at the lanes.
struct ScalingPoint {
  double at_s = 0;
  int open = 0;      // lanes that take batches
  int starting = 0;  // lanes asked for and not there yet
  int advised = 0;
  // What the advice was taken from; of no requests, as after the window was begun anew, it says
  // nothing.
  std::int64_t requests = 0;
  double bad_ratio = 0;
  double idle_ratio = 0;
};

// A period of a system whose devices are split anew as its load changes.
struct LayoutPoint {
  double at_s = 0;            // its end
  int lanes = 0;              // that serve, at the end
  double devices_used = 0;    // their shares, added up
  double offered_rps = 0;     // that arrived
  double bad_ratio = 0;       // of the requests that ended in it
  std::int64_t plans = 0;     // taken up since the start
  std::int64_t given_up = 0;  // since one of their lanes could not be made
};

// One part of a run's time, by the requests that arrived in it, warm-up included.
struct TimelineStep {
  double end_s = 0;
  double offered_rps = 0;
  double goodput_rps = 0;
  double bad_ratio = 0;   // whatever was not answered in time
  double busy_lanes = 0;  // as a mean, of the batches that started in it
};

struct Timeline {
  std::string model;  // empty: all
  std::vector<TimelineStep> steps;
};

struct RunReport {
  std::string policy;
  std::string scenario;
  std::string source;  // "simulated", "measured", "load http", ... and "emulated" where it is
  std::string profile_provenance;
  std::uint64_t seed = 0;
  std::string commit;
  std::string machine;
  std::map<std::string, std::string> settings;  // what a sweep changed, as it was written
  double duration_s = 0;                        // of the span that counts
  Summary all;
  // What no schedule passes at this load, where a profile is known: with the largest batch always,
  // and with batches as large as the rate allows (workload/accuracy_limit.h).
  std::optional<double> accuracy_limit;
  std::optional<double> accuracy_limit_by_rate;
  std::vector<ModelSummary> models;
  std::vector<PipelineSummary> pipelines;       // where requests go through several models
  std::vector<PrioritySummary> priorities;      // highest first; empty where all models share one
  std::optional<PredictionSummary> prediction;  // warm-up included
  std::vector<LaneSummary> lanes;
  double lanes_touched = 0;  // that ran a batch at all; of several seeds a mean
  std::optional<PeakGoodput> peak;
  std::vector<ScalingPoint> scaling;  // where lanes come and go
  std::vector<LayoutPoint> layout;    // where devices are split anew
  std::vector<Timeline> timeline;     // where it was asked for: each model's, then that of all
};

// Lanes that were there, as a mean over the run.
double MeanOpenLanes(const RunReport& run);
// The busy part of the time that lanes were open; with several slots this counts batches at once,
// and may exceed 1.
double BusyRatio(const RunReport& run);
// What the lanes have left: autoscaling gives it back.
double IdleRatio(const RunReport& run);
// The smallest size that at least `p` percent of the batches do not exceed; 0 for none.
int BatchPercentile(const Summary& figures, double p);

struct Check {
  std::string what;
  double value = 0;
  std::string bar;  // ">= 0.95"
  bool ok = false;
};

struct FailedPolicy {
  std::string policy;
  std::string why;
};

struct Report {
  std::vector<RunReport> runs;
  std::vector<Check> checks;
  std::vector<FailedPolicy> failed = {};
};

// Records that arrived in [begin, end) after the first `skip` of them; rates are over that span
// (from the first arrival that counts, where some are skipped). Fills the figures, the models and
// the duration; the caller says where they come from.
RunReport Summarize(std::span<const RequestRecord> records, std::span<const Model> models,
                    TimePoint begin, TimePoint end, std::int64_t skip);

// Fills in the figures of one pipeline, from the records that bear its index and arrived in
// [begin, end).
void Summarize(std::span<const PipelineRecord> records, std::uint32_t pipeline, TimePoint begin,
               TimePoint end, PipelineSummary& summary);

// Equal parts of the first `duration_s` seconds, at least one: a timeline for each model, and last
// one for all. What comes later counts for the last part.
std::vector<Timeline> MakeTimeline(std::span<const RequestRecord> records,
                                   std::span<const Model> models, double duration_s, int parts);

// Several seeds of one pipeline: counts are sums, all else is means. At least one.
PipelineSummary Average(std::span<const PipelineSummary> seeds);

// What of a run counts: records that arrived in [begin, end), after the first `skip` of them to
// arrive.
class Counting {
 public:
  Counting(std::span<const RequestRecord> records, TimePoint begin, TimePoint end,
           std::int64_t skip);

  TimePoint from() const { return from_; }
  // Asked once for each record, in their order: of those that arrive together as many are skipped
  // as need be.
  bool Counts(const RequestRecord& record);

 private:
  TimePoint from_;
  const TimePoint end_;
  std::int64_t to_skip_ = 0;  // of those that arrive at from_
};

std::string ToJson(const Report& report);
Status WriteJson(const Report& report, const std::string& path);
// Several seeds of one experiment as one run: rates, ratios and percentiles are means over the
// seeds, counts are sums. The seed is the first one's.
RunReport Average(std::span<const RunReport> runs);
// One row a run, aligned; `wide` adds a row for each model. Plain text, at most 120 columns.
std::string ToTable(std::span<const RunReport> runs, bool wide);
std::string ToText(std::span<const Check> checks);
// What became of pipeline requests, a row for each pipeline of each run; empty where there are
// none.
std::string PipelineTable(std::span<const RunReport> runs);
// The lanes over time, a row for each change; empty where they stayed.
std::string ScalingTable(const RunReport& run);
// How devices were split over time, a row for each period; empty where they stayed.
std::string LayoutTable(const RunReport& run);

// Where these figures come from: the commit this binary was built at, the kind of machine.
std::string BuildCommit();
std::string MachineKind();
std::string CpuName();

}  // namespace tactus
