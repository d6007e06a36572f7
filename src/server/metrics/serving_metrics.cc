#include "server/metrics/serving_metrics.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "server/metrics/runtime_families.h"

namespace tactus {
namespace {

using prometheus::Counter;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;
using LabelSet = std::map<std::string, std::string>;

// Seconds: 0.5 ms to 10 s in steps of 1, 2 and 5.
const Buckets kTimes{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};
// Seconds before (positive) or after (negative) the deadline; 0 is an edge, so lateness is exact.
const Buckets kSlacks{-5,    -1,    -0.5, -0.2, -0.1, -0.05, -0.02, -0.01, -0.005, -0.001, 0,
                      0.001, 0.005, 0.01, 0.02, 0.05, 0.1,   0.2,   0.5,   1,      5};
const Buckets kSizes{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128};
// (actual - predicted) / predicted: below 0 the batch was quicker than its profile.
const Buckets kErrors{-0.5, -0.2, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5};
// Kernel time beside neighbours over that alone; below 1 a batch was quicker than its profile.
const Buckets kSlowdowns{0.5, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10};
// Seconds between the dispatcher and a lane.
const Buckets kOverheads{1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 2e-2};
// How far such a prediction was off, as a share of what came.
const Buckets kSlowdownErrors{0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2};

Buckets WithEdges(Buckets buckets, const std::vector<Duration>& slos) {
  for (Duration slo : slos) {
    if (slo > Duration{}) buckets.push_back(ToSeconds(slo));
  }
  std::sort(buckets.begin(), buckets.end());
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  return buckets;
}

// The series of one model version; the registry owns them.
struct ModelSeries {
  LabelSet labels;
  Buckets times;  // with the edges of the SLOs
  std::array<Counter*, kOutcomes> requests{};
  // The same: calls of clients, and steps of pipelines.
  std::array<std::atomic<std::uint64_t>, kOutcomes> of_clients{}, of_steps{};
  // Made at the first call that ends so; the family gives those who ask at once the same one.
  std::array<std::atomic<Histogram*>, kOutcomes> duration{};
  Counter* rows = nullptr;
  Histogram* queue = nullptr;
  Histogram* slack = nullptr;
  Histogram* batch_size = nullptr;
  Histogram* execution = nullptr;
  Histogram* prediction_error = nullptr;
  // Null where the policy predicts no slowdowns.
  Histogram* predicted_slowdown = nullptr;
  Histogram* measured_slowdown = nullptr;
  Histogram* slowdown_error = nullptr;
  std::vector<Counter*> exits;
  Counter* apart_answered = nullptr;
  Counter* apart_failed = nullptr;
  Counter* apart_given_up = nullptr;
};

prometheus::Family<Counter>& CounterOf(prometheus::Registry& registry, const char* name,
                                       const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

}  // namespace

struct ServingMetrics::Body {
  explicit Body(MetricsOptions given);

  ModelSeries& SeriesOf(const ModelSpec& model);
  CallsByModel Calls(bool of_clients, bool of_steps) const;
  // In the series of its model.
  void Count(ModelSeries& s, const RequestRecord& record, int rows_of_call);

  MetricsOptions options;
  prometheus::Registry registry;
  prometheus::Family<Counter>& requests;
  prometheus::Family<Histogram>& duration;
  prometheus::Family<Histogram>& queue;
  prometheus::Family<Histogram>& slack;
  prometheus::Family<Counter>& rows;
  prometheus::Family<Histogram>& batch_size;
  prometheus::Family<Histogram>& execution;
  prometheus::Family<Histogram>& prediction_error;
  prometheus::Family<Histogram>& predicted_slowdown;
  prometheus::Family<Histogram>& measured_slowdown;
  prometheus::Family<Histogram>& slowdown_error;
  prometheus::Family<Counter>& exits;
  prometheus::Family<Counter>& apart;
  prometheus::Family<Counter>& cut_jpegs;
  prometheus::Family<Histogram>& launch;
  prometheus::Family<Histogram>& finish;
  prometheus::Family<Counter>& refused;
  Counter& late_answers;
  Counter& spans_lost;
  Histogram& launch_seconds = launch.Add({}, kOverheads);
  Histogram& finish_seconds = finish.Add({}, kOverheads);

  std::atomic<std::int64_t> good{0};
  std::atomic<std::int64_t> bad{0};
  std::atomic<std::uint64_t> no_room{0};  // of the bad, those that came to no model
  std::array<std::atomic<std::uint64_t>, kRefusalReasons> refusals{};

  // Guards what follows; held for a look-up by the threads that report, never while text is made.
  mutable std::mutex mutex;
  std::map<std::pair<std::string, std::int64_t>, ModelSeries, std::less<>> models;
  std::function<RuntimeReading()> read;
  BusyRatio busy;
};

ServingMetrics::Body::Body(MetricsOptions given)
    : options(std::move(given)),
      requests(CounterOf(registry, "tactus_requests_total",
                         "Calls by how they ended: met, late, shed, expired, cancelled or error.")),
      duration(prometheus::BuildHistogram()
                   .Name("tactus_request_duration_seconds")
                   .Help("From the arrival of a call to its answer; every SLO is an edge.")
                   .Register(registry)),
      queue(prometheus::BuildHistogram()
                .Name("tactus_queue_seconds")
                .Help("From the arrival of a call to the start of its batch.")
                .Register(registry)),
      slack(prometheus::BuildHistogram()
                .Name("tactus_deadline_slack_seconds")
                .Help("From the answer to the deadline; negative when the answer was late.")
                .Register(registry)),
      rows(CounterOf(registry, "tactus_rows_total", "Rows of the calls that were answered.")),
      batch_size(prometheus::BuildHistogram()
                     .Name("tactus_batch_size")
                     .Help("Rows in a batch that ran.")
                     .Register(registry)),
      execution(prometheus::BuildHistogram()
                    .Name("tactus_execution_seconds")
                    .Help("Time that a batch ran in its engine.")
                    .Register(registry)),
      prediction_error(prometheus::BuildHistogram()
                           .Name("tactus_prediction_error_ratio")
                           .Help("Time of a batch beyond its profiled latency, as a share of it.")
                           .Register(registry)),
      predicted_slowdown(prometheus::BuildHistogram()
                             .Name("tactus_slowdown_predicted_ratio")
                             .Help("Time of a batch beside others over that alone, as the policy "
                                   "predicted it; of batches that had neighbours.")
                             .Register(registry)),
      measured_slowdown(prometheus::BuildHistogram()
                            .Name("tactus_slowdown_measured_ratio")
                            .Help("The same of the same batches, as it came.")
                            .Register(registry)),
      slowdown_error(prometheus::BuildHistogram()
                         .Name("tactus_slowdown_error_ratio")
                         .Help("Absolute difference of the two, as a share of the measured one.")
                         .Register(registry)),
      exits(
          CounterOf(registry, "tactus_exit_total", "Answered calls by the exit that served them.")),
      apart(
          CounterOf(registry, "tactus_rows_apart_total",
                    "Rows of failed batches that were run again, each alone, by result: answered, "
                    "failed, given_up (late by then, or nobody waited).")),
      cut_jpegs(CounterOf(
          registry, "tactus_cut_jpegs_total",
          "JPEGs that lacked the two bytes that end them, and were decoded all the same.")),
      launch(prometheus::BuildHistogram()
                 .Name("tactus_launch_overhead_seconds")
                 .Help("From the decision to run a batch to the start of its execution.")
                 .Register(registry)),
      finish(prometheus::BuildHistogram()
                 .Name("tactus_finish_overhead_seconds")
                 .Help("From the end of a batch to the dispatcher's knowledge of it.")
                 .Register(registry)),
      refused(CounterOf(registry, "tactus_refused_total",
                        "Calls refused before they entered a queue, by reason.")),
      late_answers(
          CounterOf(registry, "tactus_late_answers_total",
                    "Answers that were in time when they were computed, and late when they left "
                    "for their clients. They count among outcome=\"met\".")
              .Add({})),
      spans_lost(CounterOf(registry, "tactus_spans_lost_total",
                           "Spans that the collector of --otlp did not get.")
                     .Add({})) {
  prometheus::BuildGauge()
      .Name("tactus_build_info")
      .Help("1, with what is running as labels.")
      .Register(registry)
      .Add({{"version", options.version}, {"commit", options.commit}, {"policy", options.policy}})
      .Set(1);
}

ModelSeries& ServingMetrics::Body::SeriesOf(const ModelSpec& model) {
  // Series live as long as the registry, so the reference outlasts the lock.
  std::scoped_lock lock(mutex);
  auto key = std::make_pair(model.name, model.version);
  if (const auto found = models.find(key); found != models.end()) return found->second;
  ModelSeries& s = models[std::move(key)];
  s.labels = {{"model", model.name}, {"version", std::to_string(model.version)}};
  if (model.platform == "emulated") s.labels.emplace("emulated", "true");
  std::vector<Duration> slos = options.slos;
  slos.push_back(model.slo);
  s.times = WithEdges(kTimes, slos);
  for (int i = 0; i < kOutcomes; ++i) {
    LabelSet labels = s.labels;
    labels.emplace("outcome", Name(static_cast<Outcome>(i)));
    s.requests[i] = &requests.Add(labels);
  }
  s.rows = &rows.Add(s.labels);
  s.queue = &queue.Add(s.labels, s.times);
  s.slack = &slack.Add(s.labels, kSlacks);
  s.batch_size = &batch_size.Add(s.labels, kSizes);
  s.execution = &execution.Add(s.labels, kTimes);
  s.prediction_error = &prediction_error.Add(s.labels, kErrors);
  if (options.predicts_slowdowns) {
    s.predicted_slowdown = &predicted_slowdown.Add(s.labels, kSlowdowns);
    s.measured_slowdown = &measured_slowdown.Add(s.labels, kSlowdowns);
    s.slowdown_error = &slowdown_error.Add(s.labels, kSlowdownErrors);
  }
  const auto apart_of = [&](const char* result) {
    LabelSet labels = s.labels;
    labels.emplace("result", result);
    return &apart.Add(labels);
  };
  s.apart_answered = apart_of("answered");
  s.apart_failed = apart_of("failed");
  s.apart_given_up = apart_of("given_up");
  for (const ExitSpec& exit : model.exits) {
    LabelSet labels = s.labels;
    labels.emplace("exit", exit.name);
    s.exits.push_back(&exits.Add(labels));
  }
  return s;
}

CallsByModel ServingMetrics::Body::Calls(bool of_clients, bool of_steps) const {
  std::scoped_lock lock(mutex);
  CallsByModel calls;
  for (const auto& [key, series] : models) {
    OutcomeCounts& counts = calls[key];
    for (int i = 0; i < kOutcomes; ++i) {
      if (of_clients) counts[i] += series.of_clients[i].load(std::memory_order_relaxed);
      if (of_steps) counts[i] += series.of_steps[i].load(std::memory_order_relaxed);
    }
  }
  return calls;
}

void ServingMetrics::Body::Count(ModelSeries& s, const RequestRecord& record, int rows_of_call) {
  const auto outcome = static_cast<std::size_t>(record.outcome);
  s.requests[outcome]->Increment();
  Histogram* ended = s.duration[outcome].load(std::memory_order_acquire);
  if (ended == nullptr) {
    LabelSet labels = s.labels;
    labels.emplace("outcome", Name(record.outcome));
    ended = &duration.Add(labels, s.times);
    s.duration[outcome].store(ended, std::memory_order_release);
  }
  ended->Observe(ToSeconds(record.ended - record.arrival));
  if (record.outcome != Outcome::kMet && record.outcome != Outcome::kLate) return;
  s.rows->Increment(rows_of_call);
  s.queue->Observe(ToSeconds(record.started - record.arrival));
  s.slack->Observe(ToSeconds(record.deadline - record.ended));
  if (record.exit < s.exits.size()) s.exits[record.exit]->Increment();
}

ServingMetrics::ServingMetrics(MetricsOptions options)
    : body_(std::make_unique<Body>(std::move(options))) {}
ServingMetrics::~ServingMetrics() = default;

void ServingMetrics::Watch(std::function<RuntimeReading()> read) {
  std::scoped_lock lock(body_->mutex);
  body_->read = std::move(read);
}

void ServingMetrics::OnAnswered(const ModelSpec& model, const RequestRecord& record, int rows) {
  ModelSeries& series = body_->SeriesOf(model);
  body_->Count(series, record, rows);
  series.of_clients[static_cast<std::size_t>(record.outcome)].fetch_add(1,
                                                                        std::memory_order_relaxed);
  if (record.outcome == Outcome::kCancelled) return;
  (record.outcome == Outcome::kMet ? body_->good : body_->bad)
      .fetch_add(1, std::memory_order_relaxed);
}

void ServingMetrics::OnStepAnswered(const ModelSpec& model, const RequestRecord& record, int rows) {
  ModelSeries& series = body_->SeriesOf(model);
  body_->Count(series, record, rows);
  series.of_steps[static_cast<std::size_t>(record.outcome)].fetch_add(1, std::memory_order_relaxed);
}

void ServingMetrics::OnRefused(std::string_view, ErrorCode code) { OnTurnedAway(ReasonOf(code)); }

void ServingMetrics::OnTurnedAway(RefusalReason why) {
  // No label for the model: clients choose that name, and every new name would be a new series.
  body_->refused.Add({{"reason", std::string(Name(why))}}).Increment();
  body_->refusals[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  // A call that makes no sense is no load, nor is what a client may not have; one for which there
  // was no room is.
  const bool no_room = why == RefusalReason::kResourceExhausted ||
                       why == RefusalReason::kDeadlineExceeded || why == RefusalReason::kUnread;
  if (!no_room) return;
  body_->bad.fetch_add(1, std::memory_order_relaxed);
  body_->no_room.fetch_add(1, std::memory_order_relaxed);
}

void ServingMetrics::OnLateAnswer() { body_->late_answers.Increment(); }

void ServingMetrics::OnSpansLost(std::uint64_t spans) {
  body_->spans_lost.Increment(static_cast<double>(spans));
}

void ServingMetrics::OnBatch(const ModelSpec& model, const BatchRecord& record) {
  ModelSeries& s = body_->SeriesOf(model);
  s.batch_size->Observe(record.batch);
  body_->launch_seconds.Observe(ToSeconds(record.started - record.decided));
  body_->finish_seconds.Observe(ToSeconds(record.learnt - record.ended));
  if (record.apart.answered > 0) s.apart_answered->Increment(record.apart.answered);
  if (record.apart.failed > 0) s.apart_failed->Increment(record.apart.failed);
  if (record.apart.given_up > 0) s.apart_given_up->Increment(record.apart.given_up);
  if (record.cut_jpegs > 0) body_->cut_jpegs.Add(s.labels).Increment(record.cut_jpegs);
  if (record.status != BatchStatus::kOk) return;
  s.execution->Observe(ToSeconds(record.actual()));
  if (record.predicted() > Duration{}) {
    s.prediction_error->Observe(ToSeconds(record.actual() - record.predicted()) /
                                ToSeconds(record.predicted()));
  }
  if (s.slowdown_error == nullptr || !(record.measured_slowdown > 0)) return;
  s.predicted_slowdown->Observe(record.predicted_slowdown);
  s.measured_slowdown->Observe(record.measured_slowdown);
  s.slowdown_error->Observe(std::abs(record.predicted_slowdown - record.measured_slowdown) /
                            record.measured_slowdown);
}

CallsByModel ServingMetrics::of_clients() const { return body_->Calls(true, false); }
CallsByModel ServingMetrics::of_steps() const { return body_->Calls(false, true); }

std::uint64_t ServingMetrics::no_room() const {
  return body_->no_room.load(std::memory_order_relaxed);
}

ServingMetrics::Refusals ServingMetrics::refusals() const {
  Refusals counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = body_->refusals[i].load(std::memory_order_relaxed);
  }
  return counts;
}

CallTotals ServingMetrics::calls() const {
  return {body_->good.load(std::memory_order_relaxed), body_->bad.load(std::memory_order_relaxed)};
}

std::string ServingMetrics::Text() const {
  std::function<RuntimeReading()> read;
  {
    std::scoped_lock lock(body_->mutex);
    read = body_->read;
  }
  std::vector<prometheus::MetricFamily> families = body_->registry.Collect();
  const auto append = [&](std::vector<prometheus::MetricFamily> more) {
    std::move(more.begin(), more.end(), std::back_inserter(families));
  };
  append(ProcessFamilies());
  if (read) {
    const RuntimeReading reading = read();
    std::vector<double> busy;
    {
      std::scoped_lock lock(body_->mutex);
      busy = body_->busy.Update(reading.uptime, reading.lanes);
    }
    append(RuntimeFamilies(reading, busy));
    append(ServerFamilies(reading));
    if (reading.advice) append(AutoscaleFamilies(reading));
    if (reading.layout.plan != nullptr) append(LayoutFamilies(reading.layout));
    if (reading.planning) append(PlanningFamilies(*reading.planning));
    if (!reading.streams.empty()) append(StreamFamilies(reading.streams));
    if (!reading.remote.empty()) append(RemoteFamilies(reading.remote));
    if (body_->options.triton_names) append(TritonFamilies(reading, body_->Calls(true, true)));
  }
  // A family without series yet would be a help text without a value.
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tactus
