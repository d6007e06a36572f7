// A scenario: one experiment, in one TOML file. The same file runs in virtual time (`tactus
// simulate`) and in real time on real engines (`tactus measure`), and drives `tactus load`.
//
//   [scenario]
//   name = "three-resnets"
//   about = "EdgeServing, Section VI-B"
//   duration_s = 20
//   warmup_requests = 100          # or warmup_s
//   seed = 1
//   policy = "horizon"             # the default
//   expiry = "never"               # never | passed | unmeetable
//   queue_capacity = 4096
//   profile = "../profiles/x.json" # relative to this file
//   percentile = 95                # that policies count on: 50, 95, 99, 100 (the most) or 0 (mean)
//   jitter_ms = 0
//   decision_cost_us = 0           # charged by the simulator for each decision that launches
//   follow = "auto"                # yes: policies are told latencies as batches take them
//                                  # (docs/reference/following.md); auto: in service, simulated
//                                  # where there is a [drift]; stalls: yes, and with a reserve
//                                  # for stalls; no
//   candidate_cost_us = 0          # and for each candidate that the algorithm looks at; for one
//                                  # policy, its own: "clockwork:cost=5,look=0.1"
//
//   [lanes]
//   count = 1                      # of all kinds; or "auto", in simulation: as many, of as many
//                                  # threads, as planners/lane_choice.h says
//   slots = 1
//   processors = 16                # of the machine, for "auto"
//
//   [[lane_kinds]]                 # in simulation some of the lanes may differ; the others are
//   name = "fast"                  # called plain, and are as the profile says
//   count = 2
//   speed = 2                      # batches take 1/speed of what the profile says
//   models = ["ResNet50"]          # that may run there; default: all
//
//   [[lane_faults]]                # in simulation a lane may die: what it runs goes back to the
//   lane = 0                       # queues; lanes are counted from the quickest, in the order of
//   at_s = 5                       # their kinds
//   back_s = 8                     # from then on it takes batches again; 0 (the default): never
//
//   [contention]                   # how batches that share a lane slow each other in simulation
//   capacity = [1, 1, 1, 1, 1]     # of l1, l2, dram, tensor, fma, in the profile's shares of a
//                                  # device; not there (the default): they do not
//   crosstalk = 0.03               # what each neighbour costs where nothing is short
//   tail = 0.5                     # spread of a batch's luck, log-normal; 0: none
//   priority_weight = 1.5          # what a level gets of a short resource, over the next level
//   preemption_ms = 0.1            # to stop lower levels, for policies that suspend batches
//   drift = 0                      # policies are told throughputs that are off by up to this part
//
//   [drift]                        # how the simulated machine departs from its profile
//   from_s = 0                     # from then on
//   factor = 1                     # batches that start take this times what was profiled
//   stall_ms = 0                   # and all lanes stand still for so long ...
//   every_ms = 1000                # ... once in each of these
//
//   [front]                        # in simulation: what the server does beside running batches
//   call_us = 20                   # of its I/O threads for a call: half of it to answer ...
//   byte_ns = 0.1                  # ... and this for each byte of its body (models and pipelines:
//                                  # bytes); `tactus profile --front` measures both
//   unread_bytes = 0               # so many of a body come before it is refused unread (over
//                                  # gRPC 16384)
//   threads = 1
//   reads = "in-time"              # bodies that can be answered in time; or "all"
//   cores = "own"                  # or "shared": the lanes' cores do this work too
//
//   [autoscale]                    # lanes come and go in simulation; count is the most there are
//   interval_s = 5                 # how often the advice is taken; 0: never (the default)
//   window_s = 10                  # that the advice looks at
//   start_delay_s = 30             # from asking for a lane to its first batch
//   initial = 1                    # lanes at the start
//   least = 1
//   bad_threshold = 0.01           # these three: src/planners/autoscale/advice.h
//   idle_threshold = 0.2
//   idle_kept = 0.1
//
//   [plan]                         # in simulation: each lane is a device that may be split
//   shares = [20, 40, 50, 60, 80]  # percent of it that a lane may have, beside all of it
//   exponent = 1                   # how much a smaller share slows a batch, by what the batch ...
//   utilization_base = "largest-batch"  # ... uses; or "device": planners/gpulet/share_latency.h
//   memory_mb = 0                  # of each device; 0: enough for all models
//   planner = "none"               # who splits the devices, at the start and as rates change, for
//                                  # policies that read plans: gpulet, self-tuning, nexus or
//                                  # nexus-half
//   interference = [0,0,0,0,1]     # that the first two count on; not there: lanes do not disturb
//   period_s = 20                  # these four: src/placement/replanner.h
//   weight = 0.7
//   headroom = 0.25
//   bad_threshold = 0.01
//   make_least_s = 10              # that making a new lane takes
//   make_most_s = 15
//
//   [arrivals]
//   process = "poisson"            # poisson | gamma | uniform | trace | closed
//   rate_rps = 120                 # all models together; or per model below
//   cv = 2                         # gamma: standard deviation of a gap over its mean
//   trace = "trace.csv"            # relative to this file; instants in seconds, one a line, the
//                                  # first column; scaled to rate_rps, repeated when it ends
//   callers = 8                    # closed, in simulation: so many for each model and pipeline,
//   think_ms = 0                   # each of which calls again so long after its answer, or ...
//   retry_ms = 1                   # ... after it was refused: 0.5 to 1.5 times these, by chance
//   schedule = "rates.csv"         # how the rates change: workload/rate_schedule.h
//   popularity = "ratio"           # equal | ratio | zipf
//   zipf = 0.9
//
//   [[models]]
//   name = "ResNet50"
//   slo_ms = 50
//   max_batch = 10                 # default: the profile's
//   ratio = 3
//   priority = 1                   # 1 is the highest; up to 1000000, an order only
//   rate_rps = 40                  # default: its share of the total; 0: no requests
//   exits = ["1", "4"]             # default: all that the profile knows
//   accuracy = [0.076, 0.744]      # default: the profile's
//   profile_as = "ResNet50"        # default: name; lets one profile serve several models
//   bytes = 602112                 # of a call, for [front]
//
//   [[pipelines]]                  # in simulation: requests that go through several models, each
//   name = "traffic"               # which has its requests from these alone
//   slo_ms = 136                   # from the pipeline request's arrival to its last answer
//   ratio = 1                      # of arrivals' rate_rps, which counts requests to models
//   rate_rps = 10                  # pipeline requests per second; default: that share
//   deadlines = "latency"          # or equal, whole, ...: pipeline/declaration.h
//   answer = "all"                 # all | each: without the rows that are late
//   bytes = 90000                  # of a call, for [front]
//
//   [[pipelines.stages]]           # of the pipeline above
//   name = "cars"                  # default: the model's
//   model = "GoogLeNet"
//   after = ["detect"]             # starts when all of these are answered; none: at once
//   count = 1                      # runs at once
//   rows = [5, 3, 2]               # its answer has none, one, two rows so often: what is after it
//                                  # runs once for each; not there: its answer is one
//   gather = "detect"              # waits for all rows of that stage's answer
//   budget_ms = 66.5               # of all stages or of none: then as latencies are
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "core/model.h"
#include "workload/profile_file.h"

namespace tactus {

enum class ArrivalProcess { kPoisson, kGamma, kUniform, kTrace, kClosed };
enum class Popularity { kEqual, kRatio, kZipf };

struct ScenarioModel {
  std::string name;
  std::string profile_as;
  double slo_ms = 50;
  int max_batch = 0;  // 0: the profile's
  double ratio = 1;
  int priority = 1;
  std::optional<double> rate_rps;  // none: its share of the total rate
  std::vector<std::string> exits;  // empty: all
  std::vector<double> accuracy;    // empty: the profile's
  std::int64_t bytes = 0;          // of a call
};

struct LaneKind {
  std::string name;
  int count = 1;
  double speed = 1;                 // batches take 1/speed of what the profile says
  std::vector<std::string> models;  // empty: all
};

struct LaneFault {
  int lane = 0;
  double at_s = 0;
  double back_s = 0;  // 0: the lane stays dead
};

struct ScenarioStage {
  std::string name;  // the model's where the file has none
  std::string model;
  std::vector<std::string> after;
  int count = 1;
  double budget_ms = 0;           // 0: in proportion to latency
  std::vector<double> rows = {};  // weights of 0, 1, 2, ... rows; empty: it does not demultiply
  std::string gather = {};
};

struct ScenarioPipeline {
  std::string name;
  double slo_ms = 0;
  double ratio = 1;
  std::optional<double> rate_rps = {};  // none: its share of the total rate
  std::string deadlines = "latency";
  std::string answer = "all";
  std::int64_t bytes = 0;  // of a call
  std::vector<ScenarioStage> stages;
};

// [lanes] count = "auto".
inline constexpr int kAutoLanes = 0;

// The policy of scenarios and servers that name none.
inline constexpr std::string_view kDefaultPolicy = "horizon";

struct Scenario {
  std::string name;
  std::string about;
  double duration_s = 20;
  double warmup_s = 0;
  std::int64_t warmup_requests = 0;  // the first of all models together, not counted
  std::uint64_t seed = 1;
  std::string policy{kDefaultPolicy};
  std::string expiry = "never";
  std::int64_t queue_capacity = 4096;
  std::filesystem::path profile;  // absolute after loading
  double percentile = 95;
  double jitter_ms = 0;
  double decision_cost_us = 0;
  double candidate_cost_us = 0;
  std::string follow = "auto";
  int lanes = 1;  // kAutoLanes until they are chosen (experiment/auto_lanes.h)
  int slots = 1;
  int processors = 0;                // 0: not stated
  std::vector<LaneKind> lane_kinds;  // of some of the lanes; LaneKinds() has them all
  std::vector<LaneFault> lane_faults;
  // [contention]
  std::vector<double> capacity;  // by Resource; empty: batches do not slow each other
  double crosstalk = 0.03;
  double tail = 0.5;
  double priority_weight = 1.5;
  double preemption_ms = 0.1;
  double drift = 0;
  // [drift]
  double drift_from_s = 0;
  double drift_factor = 1;
  double drift_stall_ms = 0;
  double drift_every_ms = 1000;
  // [front]
  double front_call_us = 0;
  double front_byte_ns = 0;
  double front_unread_bytes = 0;
  int front_threads = 1;
  std::string front_reads = "in-time";
  std::string front_cores = "own";
  // [autoscale]
  double scale_interval_s = 0;
  double scale_window_s = 10;
  double scale_start_delay_s = 30;
  int scale_initial = 1;
  int scale_least = 1;
  double bad_threshold = 0.01;
  double idle_threshold = 0.2;
  double idle_kept = 0.1;
  // [plan]
  std::vector<double> plan_shares;  // percent, ascending; empty: devices are not split
  double plan_exponent = 1;
  std::string plan_utilization_base = "largest-batch";
  double plan_memory_mb = 0;
  std::string plan_planner = "none";
  std::vector<double> plan_interference;
  double plan_period_s = 20;
  double plan_weight = 0.7;
  double plan_headroom = 0.25;
  double plan_bad_threshold = 0.01;
  double plan_make_least_s = 10;
  double plan_make_most_s = 15;
  double plan_make_fails = 0;  // of the lanes, that cannot be made
  ArrivalProcess process = ArrivalProcess::kPoisson;
  double rate_rps = 100;
  double cv = 1;
  std::filesystem::path trace;
  int callers = 8;  // of each model and pipeline with a rate, where the process is kClosed
  double think_ms = 0;
  double retry_ms = 1;
  std::filesystem::path schedule;  // empty: rates stay
  Popularity popularity = Popularity::kEqual;
  double zipf = 0.9;
  std::vector<ScenarioModel> models;
  std::vector<ScenarioPipeline> pipelines;
};

// Errors name file:line:column, the key and what is allowed. Unknown keys are errors.
Expected<Scenario> LoadScenario(const std::filesystem::path& path);
Expected<Scenario> ParseScenario(std::string_view toml, const std::filesystem::path& where);

// "rate_rps=200", "policy=all-final", "models.ResNet50.slo_ms=20", "models.*.slo_ms=20",
// "lane_kinds.fast.speed=3", "pipelines.game.rate_rps=5": as the command line's --set and --sweep
// say it. Without a value, "models.*.rate_rps=", a rate is the share of the total again. A total
// rate is refused where everything states its own, since it would change nothing.
Status Override(Scenario& scenario, std::string_view key, std::string_view value);
// Several, of which each may need another: a shorter run and a shorter warm-up, in either order.
// All or none are taken; what is wrong is blamed on the key since which it is.
using Setting = std::pair<std::string, std::string>;  // key and value
Status Override(Scenario& scenario, std::span<const Setting> settings);

// The parts of a device that a lane may have, by lane class, ascending; the last is all of it, 1.
std::vector<double> Shares(const Scenario& scenario);

// What all lanes are, quickest first, which is also their order: a policy that takes the first
// free lane takes the quickest. Lanes of which the scenario says nothing are "plain", of speed 1;
// kinds without a lane are left out.
std::vector<LaneKind> LaneKinds(const Scenario& scenario);

bool MayRun(const LaneKind& kind, std::string_view model);
bool HasModel(const Scenario& scenario, std::string_view name);

// What arrives per second: requests of each model, none of one whose requests are pipelines';
// then requests of each pipeline. By the popularity rule among those, where a pipeline's share
// counts the requests to models that its own bring.
std::vector<double> ArrivalRates(const Scenario& scenario);
// Requests per second of each model, those of pipelines among them; means, where rows are drawn.
std::vector<double> Rates(const Scenario& scenario);
// The model or pipeline whose arrivals entry `i` of ArrivalRates is, by name.
const std::string& ArrivalName(const Scenario& scenario, std::size_t i);

// The models with the exits and accuracies that the profile gives them. The SLO of one whose
// requests are pipelines' is the least budget of its stages.
Expected<std::vector<Model>> MakeModels(const Scenario& scenario, const ProfileFile& profile);

// The profile's models that the scenario's models are served by (`profile_as`), cut down to their
// exits and batches, under the scenario's names: what MakeTable and the simulator read.
Expected<ProfileFile> SelectProfile(const Scenario& scenario, const ProfileFile& profile);

}  // namespace tactus
