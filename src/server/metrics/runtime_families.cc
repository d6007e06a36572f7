#include "server/metrics/runtime_families.h"

#include <algorithm>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

#include "platform/kept_memory.h"
#include "server/metrics/gauge_family.h"

namespace tactus {
namespace {

Labels ModelLabels(const std::string& name, std::int64_t version) {
  return {{"model", name}, {"version", std::to_string(version)}};
}

bool AnyEmulated(const RuntimeReading& reading) {
  return std::any_of(reading.statistics.begin(), reading.statistics.end(),
                     [](const ModelStatistics& model) { return model.emulated; });
}

std::uint64_t Of(const OutcomeCounts& counts, Outcome outcome) {
  return counts[static_cast<std::size_t>(outcome)];
}

// Of models of which something is unusual.
struct ModelFlags {
  MetricFamily emulated;
  MetricFamily unbatched;
};

ModelFlags FlagsOf(const RuntimeReading& reading) {
  MetricFamily emulated = Family("tactus_model_emulated",
                                 "1 where the model's times come from a profile and its answers "
                                 "are zeros; there is no device.",
                                 MetricType::Gauge);
  for (const ModelStatistics& model : reading.statistics) {
    if (model.emulated) Add(emulated, ModelLabels(model.name, model.version), 1);
  }
  MetricFamily unbatched =
      Family("tactus_model_batching_stopped",
             "1 where the model was assumed or declared to run in batches, and its calls showed "
             "that it does not: each runs alone.",
             MetricType::Gauge);
  for (const ModelStatistics& model : reading.statistics) {
    if (model.batching_stopped) Add(unbatched, ModelLabels(model.name, model.version), 1);
  }
  return {std::move(emulated), std::move(unbatched)};
}

}  // namespace

std::vector<double> BusyRatio::Update(Duration uptime, const std::vector<LaneLoad>& lanes) {
  while (!samples_.empty() && samples_.front().uptime + kWindow < uptime) samples_.pop_front();
  const Sample since = samples_.empty() ? Sample{{}, {}} : samples_.front();
  const double span = ToSeconds(uptime - since.uptime);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const Duration before = i < since.lanes.size() ? since.lanes[i].busy : Duration{};
    // A batch's time is booked when it ends, so a short window may hold more than its length.
    ratios.push_back(span > 0 ? std::clamp(ToSeconds(lanes[i].busy - before) / span, 0.0, 1.0) : 0);
  }
  if (samples_.size() < kMaxSamples) samples_.push_back({uptime, lanes});
  return ratios;
}

std::vector<MetricFamily> RuntimeFamilies(const RuntimeReading& reading,
                                          const std::vector<double>& lane_busy) {
  MetricFamily pending =
      Family("tactus_pending_requests", "Requests (rows) that wait or run.", MetricType::Gauge);
  Add(pending, {}, static_cast<double>(reading.pending));
  MetricFamily calls =
      Family("tactus_pending_calls", "Calls accepted and not yet answered.", MetricType::Gauge);
  Add(calls, {}, static_cast<double>(reading.calls));
  MetricFamily bytes = Family(
      "tactus_pending_bytes",
      "Bytes of tensors that --pending-mb bounds: inputs of pending calls, and answers until "
      "clients have taken them.",
      MetricType::Gauge);
  Add(bytes, {{"tensors", "inputs"}}, static_cast<double>(reading.input_bytes));
  Add(bytes, {{"tensors", "answers"}}, static_cast<double>(reading.answer_bytes));
  MetricFamily uptime =
      Family("tactus_uptime_seconds", "Time since the runtime started.", MetricType::Gauge);
  Add(uptime, {}, ToSeconds(reading.uptime));

  MetricFamily ratio =
      Family("tactus_lane_busy_ratio",
             "Share of the last 10 s in which the lane ran a batch; several at once add up, to 1 "
             "at most.",
             MetricType::Gauge);
  MetricFamily busy = Family("tactus_lane_busy_seconds_total",
                             "Time that the lane spent running batches.", MetricType::Counter);
  MetricFamily batches =
      Family("tactus_lane_batches_total", "Batches that the lane ran.", MetricType::Counter);
  MetricFamily stuck = Family("tactus_lane_stuck",
                              "1 where runs that take far longer than their profile hold the "
                              "lane: it serves nothing until one ends.",
                              MetricType::Gauge);
  MetricFamily stuck_runs =
      Family("tactus_lane_stuck_runs_total", "Runs that took far longer than their profile.",
             MetricType::Counter);
  for (std::size_t i = 0; i < reading.lanes.size(); ++i) {
    const Labels lane{{"lane", std::to_string(i)}};
    Add(ratio, lane, i < lane_busy.size() ? lane_busy[i] : 0);
    Add(busy, lane, ToSeconds(reading.lanes[i].busy));
    Add(batches, lane, static_cast<double>(reading.lanes[i].batches));
    Add(stuck, lane, reading.lanes[i].stuck ? 1 : 0);
    Add(stuck_runs, lane, static_cast<double>(reading.lanes[i].stuck_runs));
  }

  ModelFlags flags = FlagsOf(reading);
  MetricFamily ratios =
      Family("tactus_latency_ratio",
             "What the model's batches count as beside what was profiled, on lanes of the class.",
             MetricType::Gauge);
  for (const ModelStatistics& model : reading.statistics) {
    for (std::size_t c = 0; c < model.latency_ratios.size(); ++c) {
      Labels labels = ModelLabels(model.name, model.version);
      labels.push_back({"lane_class", std::to_string(c)});
      Add(ratios, std::move(labels), model.latency_ratios[c]);
    }
  }
  MetricFamily ready = Family(
      "tactus_model_ready", "1 where calls of the model version are answered.", MetricType::Gauge);
  for (const ModelState& model : reading.models) {
    Add(ready, ModelLabels(model.name, model.version), model.state == "READY" ? 1 : 0);
  }
  return {std::move(pending), std::move(calls),   std::move(uptime),     std::move(ratio),
          std::move(busy),    std::move(batches), std::move(ready),      std::move(flags.emulated),
          std::move(ratios),  std::move(stuck),   std::move(stuck_runs), std::move(flags.unbatched),
          std::move(bytes)};
}

// What the process around the runtime says of itself.
std::vector<MetricFamily> ServerFamilies(const RuntimeReading& reading) {
  MetricFamily journal =
      Family("tactus_journal_whole",
             "1 while --journal has all that happened; 0 once writing it failed or fell behind.",
             MetricType::Gauge);
  if (reading.journal_whole) Add(journal, {}, *reading.journal_whole ? 1 : 0);
  MetricFamily lag =
      Family("tactus_http_loop_lag_seconds",
             "The most by which a thread that reads and writes HTTP was late for a timer in the "
             "last 10 to 20 s.",
             MetricType::Gauge);
  if (reading.http_lag) Add(lag, {}, ToSeconds(*reading.http_lag));
  MetricFamily starts =
      Family("tactus_engine_process_starts_total",
             "Processes that were started for the lane's models; one more than died.",
             MetricType::Counter);
  MetricFamily resident =
      Family("tactus_engine_process_resident_memory_bytes",
             "Resident memory of the process that runs the lane's models.", MetricType::Gauge);
  for (const ProcessReading& process : reading.processes) {
    const Labels labels{{"engine", process.engine}, {"lane", std::to_string(process.lane)}};
    Add(starts, labels, static_cast<double>(process.starts));
    Add(resident, labels, static_cast<double>(process.resident_bytes));
  }
  MetricFamily arena =
      Family("tactus_engine_arena_bytes",
             "Memory that the engine's arenas took for the model's weights and runs, in all of "
             "its processes. They keep for the next runs what is not in use.",
             MetricType::Gauge);
  MetricFamily in_use =
      Family("tactus_engine_arena_in_use_bytes",
             "The part of tactus_engine_arena_bytes that weights, runs and answers use now.",
             MetricType::Gauge);
  for (const ArenaUse& use : reading.arenas) {
    Add(arena, ModelLabels(use.model, use.version), static_cast<double>(use.bytes));
    Add(in_use, ModelLabels(use.model, use.version), static_cast<double>(use.in_use_bytes));
  }
  return {std::move(journal),  std::move(lag),   std::move(starts),
          std::move(resident), std::move(arena), std::move(in_use)};
}

std::vector<MetricFamily> AutoscaleFamilies(const RuntimeReading& reading) {
  const LaneAdvice& advice = *reading.advice;
  const Labels labels = AnyEmulated(reading) ? Labels{{"emulated", "true"}} : Labels{};
  const auto gauge = [&](const char* name, const char* help, double value) {
    MetricFamily family = Family(name, help, MetricType::Gauge);
    Add(family, labels, value);
    return family;
  };
  return {
      gauge("tactus_autoscale_advice_lanes",
            "Lanes that this server should have in all for the load of the window.",
            advice.advised),
      gauge("tactus_autoscale_lanes", "Lanes that this server has.", advice.reading.lanes),
      gauge("tactus_autoscale_bad_ratio",
            "Violation ratio of the window's calls: those without an answer in time.",
            advice.reading.bad_ratio),
      gauge("tactus_autoscale_idle_ratio",
            "Fraction of the lanes' time in the window in which they ran nothing.",
            advice.reading.idle_ratio),
      gauge("tactus_autoscale_window_calls", "Calls that ended within the window.",
            static_cast<double>(advice.reading.requests)),
  };
}

std::vector<MetricFamily> ProcessFamilies() {
  std::vector<MetricFamily> families;
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0, resident = 0;
  if (statm >> pages >> resident) {
    families.push_back(Family("process_resident_memory_bytes", "Resident memory size in bytes.",
                              MetricType::Gauge));
    Add(families.back(), {}, static_cast<double>(resident) * sysconf(_SC_PAGESIZE));
  }
  families.push_back(
      Family("tactus_heap_in_use_bytes",
             "Bytes that the allocator has given out: the server's own, models, "
             "tactus_pending_bytes and tactus_engine_arena_bytes, whose part that is "
             "not in use is no leak. Freed memory is kept for the next request, so "
             "more is resident.",
             MetricType::Gauge));
  Add(families.back(), {}, static_cast<double>(RecentHeap().in_use));
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    families.push_back(Family("process_cpu_seconds_total",
                              "User and system processor time in seconds.", MetricType::Counter));
    Add(families.back(), {}, seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  return families;
}

std::vector<MetricFamily> TritonFamilies(const RuntimeReading& reading, const CallsByModel& calls) {
  const auto counter = [](const char* name, const char* help) {
    return Family(name, help, MetricType::Counter);
  };
  MetricFamily success =
      counter("nv_inference_request_success", "Number of successful inference requests.");
  MetricFamily failure =
      counter("nv_inference_request_failure", "Number of failed inference requests, by reason.");
  MetricFamily count = counter("nv_inference_count", "Number of inferences (rows).");
  MetricFamily executions = counter("nv_inference_exec_count", "Number of batches executed.");
  MetricFamily request =
      counter("nv_inference_request_duration_us", "Cumulative request duration in microseconds.");
  MetricFamily queue =
      counter("nv_inference_queue_duration_us", "Cumulative time in the queue in microseconds.");
  MetricFamily input = counter("nv_inference_compute_input_duration_us",
                               "Cumulative time to gather inputs in microseconds.");
  MetricFamily infer = counter("nv_inference_compute_infer_duration_us",
                               "Cumulative time of execution in microseconds.");
  MetricFamily output = counter("nv_inference_compute_output_duration_us",
                                "Cumulative time to make outputs in microseconds.");
  MetricFamily pending =
      Family("nv_inference_pending_request_count",
             "Inference requests that came and were not answered yet.", MetricType::Gauge);
  const auto micros = [](const DurationCount& d) { return static_cast<double>(d.ns / 1000); };
  for (const ModelStatistics& model : reading.statistics) {
    Labels labels = ModelLabels(model.name, model.version);
    if (model.emulated) labels.push_back({"emulated", "true"});
    Add(success, labels, static_cast<double>(model.success.count));
    Add(count, labels, static_cast<double>(model.inference_count));
    Add(executions, labels, static_cast<double>(model.execution_count));
    Add(pending, labels, static_cast<double>(model.pending));
    Add(request, labels, micros(model.success));
    Add(queue, labels, micros(model.queue));
    Add(input, labels, micros(model.compute_input));
    Add(infer, labels, micros(model.compute_infer));
    Add(output, labels, micros(model.compute_output));

    const auto found = calls.find({model.name, model.version});
    const OutcomeCounts ended = found == calls.end() ? OutcomeCounts{} : found->second;
    const auto fail = [&](const char* reason, std::uint64_t n) {
      Labels with_reason = labels;
      with_reason.push_back({"reason", reason});
      Add(failure, std::move(with_reason), static_cast<double>(n));
    };
    fail("REJECTED", Of(ended, Outcome::kShed) + Of(ended, Outcome::kExpired));
    fail("CANCELED", Of(ended, Outcome::kCancelled));
    fail("BACKEND", Of(ended, Outcome::kError));
    fail("OTHER", 0);
  }
  return {std::move(success), std::move(failure), std::move(count), std::move(executions),
          std::move(request), std::move(queue),   std::move(input), std::move(infer),
          std::move(output),  std::move(pending)};
}

}  // namespace tactus
