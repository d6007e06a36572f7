// Drives a server at a given rate, whether it keeps up or not (open loop), and says how it did.
// Latency counts from the instant a request was meant to leave, so a stalled generator or a full
// connection pool shows up as latency instead of as a lower rate.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "base/expected.h"
#include "load/transport.h"
#include "metrics/report.h"
#include "workload/scenario.h"

namespace tactus {

struct LoadOptions {
  // Duration, warm-up, seed, arrivals and models; its policy and lanes are the server's business.
  Scenario scenario;
  // The models' SLOs come from the server's configuration, not from the scenario.
  bool slo_from_server = false;
  // As given to the transport: an answer after it is late even where the SLO is longer.
  std::chrono::microseconds timeout{0};
  // How long answers may be outstanding after the last request was sent; then they are errors.
  std::chrono::milliseconds drain{10'000};
  InputChoice inputs;  // without images accuracy is not measured
};

struct LoadProgress {
  double elapsed_s = 0;
  double total_s = 0;
  std::int64_t sent = 0;
  std::int64_t in_flight = 0;
  double rate_rps = 0;   // sent, over the time since the last report
  double bad_ratio = 0;  // of what was closed so far
  bool draining = false;
};
// "12.3/20.0 s  sent 1480  in flight 5  120 req/s  violations 0.21 %"
std::string ToText(const LoadProgress& progress);

struct LoadResult {
  RunReport report;
  // The records behind it; times count from the start of the run.
  std::vector<RequestRecord> records;
  std::int64_t sent = 0;
  std::int64_t unanswered = 0;  // no answer until the drain ended
  std::int64_t unexpected = 0;  // answers to nothing: must be 0
  // How much later than meant requests left. Large values mean that this machine, not the server,
  // was short of time; they are part of the latencies.
  double lag_p50_ms = 0;
  double lag_p99_ms = 0;
  double lag_max_ms = 0;
  // Calls that were not sent: all connections were busy until their time was over.
  std::int64_t unsent = 0;
  bool accuracy_measured = false;
  bool emulated = false;  // some model is: the report's source says so, and so should who prints it
  std::string first_error;
};

// Called on the thread of RunLoad, a few times a second.
using OnProgress = std::function<void(const LoadProgress&)>;

// `stop` ends the sending early; the report covers what was sent.
Expected<LoadResult> RunLoad(Transport& transport, const LoadOptions& options,
                             const OnProgress& progress, std::stop_token stop = {});

struct ClosedLoopModel {
  std::string name;
  double weight = 1;  // of the callers
};
struct ClosedLoopOptions {
  std::vector<ClosedLoopModel> models;
  int concurrency = 1;     // callers, each of which calls again when it has its answer ...
  Duration retry_after{};  // ... or so long after it was refused
  std::chrono::milliseconds warmup{500};  // not counted
  std::chrono::milliseconds duration{3000};
  std::chrono::milliseconds drain{10'000};  // how long answers may be outstanding then
  InputChoice inputs;
};
struct ClosedLoopResult {
  struct OfModel {  // all in the counted time
    std::string name;
    std::int64_t answered = 0;
    std::int64_t in_time = 0;  // of those; all where the server states no SLO
    std::int64_t refused = 0;
    std::int64_t expired = 0;
    std::int64_t failed = 0;  // neither answered nor refused
    double per_second = 0;    // answered
    double in_time_per_second = 0;
    double p50_us = 0;
    double p99_us = 0;
  };
  std::vector<OfModel> models;
  std::int64_t unanswered = 0;  // when the drain ended
  bool emulated = false;        // see LoadResult
  std::string first_error;

  std::int64_t failed() const;  // of all models
};
// For overhead, saturation and callers that insist: the next call leaves when one is answered.
// InvalidArgument where there are fewer callers than models.
Expected<ClosedLoopResult> RunClosedLoop(Transport& transport, const ClosedLoopOptions& options);

}  // namespace tactus
