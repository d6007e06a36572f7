// What Prometheus scrapes: counters, histograms and gauges of a service.
//
//   ServingMetrics metrics({.triton_names = true});
//   Runtime runtime(options, {..., .observer = &metrics});
//   metrics.Watch([&] { return ReadingOf(runtime, service); });
//   ... GET /metrics answers metrics.Text() ...
//
// Times are in seconds. Every model's SLO is a bucket edge of its request durations, so the share
// of requests within it is a quotient of two counters and no interpolation.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "core/request.h"
#include "planners/autoscale/lane_adviser.h"
#include "service/inference_service.h"
#include "service/observer.h"
#include "service/readings.h"
#include "service/refusal.h"
#include "service/remote_step.h"

namespace tactus {

struct MetricsOptions {
  // Adds Triton's nv_inference_* families, which dashboards and clients made for it read. Their
  // names break Prometheus' own naming rules, so they are off by default.
  bool triton_names = false;
  // SLOs of the models that will be served, where known: every model's histogram gets all of these
  // edges, so that sums over models keep them.
  std::vector<Duration> slos;
  // The policy predicts how batches slow each other: what it predicted is shown beside what came.
  bool predicts_slowdowns = false;
  // Labels of tactus_build_info.
  std::string version;
  std::string commit;
  std::string policy;
};

// The state of a service at one instant, from which gauges are made.
// A process that runs a lane's models.
struct ProcessReading {
  std::string engine;
  int lane = 0;
  std::int64_t starts = 0;  // of such processes, ever
  std::uint64_t resident_bytes = 0;
};

struct RuntimeReading {
  std::size_t pending = 0;       // rows that wait or run
  std::size_t calls = 0;         // calls accepted and not yet answered
  std::size_t input_bytes = 0;   // of these calls
  std::size_t answer_bytes = 0;  // of batches, that are not all on their way to clients yet
  Duration uptime{};
  std::vector<LaneLoad> lanes;
  std::vector<ModelState> models;
  std::vector<ModelStatistics> statistics;
  std::optional<LaneAdvice> advice;         // where the server samples its load
  DeviceLayout layout;                      // where lanes are those of a plan
  std::optional<PlanningReading> planning;  // where the server plans by itself
  std::vector<StreamFrames> streams;
  std::vector<RemoteStep> remote;         // of pipelines whose steps run on other nodes
  std::optional<bool> journal_whole;      // where it keeps one
  std::vector<ProcessReading> processes;  // where engines have some of their own
  std::vector<ArenaUse> arenas;           // of engines in this process
  std::optional<Duration> http_lag;       // the longest of late that a loop of HTTP was late
};

using OutcomeCounts = std::array<std::uint64_t, kOutcomes>;
// Calls by outcome for each (model, version).
using CallsByModel = std::map<std::pair<std::string, std::int64_t>, OutcomeCounts>;

// Calls that ended since the start, but for those that their client took back, those that were
// refused for what they said, and the steps of pipelines. Good: by their deadline.
struct CallTotals {
  std::int64_t good = 0;
  std::int64_t bad = 0;
};

class ServingMetrics final : public Observer {
 public:
  explicit ServingMetrics(MetricsOptions options);
  ~ServingMetrics() override;

  // Called at each scrape, until replaced; an empty function stops the gauges.
  void Watch(std::function<RuntimeReading()> read);

  CallTotals calls() const;
  // Of the calls that came to models, how they ended. A pipeline's call counts once, as the
  // pipeline's ...
  CallsByModel of_clients() const;
  // ... and here are its steps.
  CallsByModel of_steps() const;
  // Calls for which there was no room before they came to a model.
  std::uint64_t no_room() const;
  // Calls that entered no queue, by RefusalReason.
  using Refusals = std::array<std::uint64_t, kRefusalReasons>;
  Refusals refusals() const;

  // The text exposition format, version 0.0.4. Thread-safe.
  std::string Text() const;
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  void OnAnswered(const ModelSpec& model, const RequestRecord& record, int rows) override;
  void OnStepAnswered(const ModelSpec& model, const RequestRecord& record, int rows) override;
  void OnRefused(std::string_view model, ErrorCode code) override;
  // A front end refused a call.
  void OnTurnedAway(RefusalReason why);
  // An answer that was in time when it was computed was late when it left for its client.
  void OnLateAnswer();
  // What --otlp's collector does not get.
  void OnSpansLost(std::uint64_t spans);
  void OnBatch(const ModelSpec& model, const BatchRecord& record) override;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
