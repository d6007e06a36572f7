// What became of frames, in figures: report.h.
#include "metrics/report.h"

namespace tactus {

std::int64_t PipelineSummary::dropped() const {
  std::int64_t sum = 0;
  for (const StageLosses& stage : stages) sum += stage.dropped;
  return sum;
}

void Summarize(std::span<const FrameRecord> records, std::uint32_t pipeline, TimePoint begin,
               TimePoint end, PipelineSummary& summary) {
  std::vector<Duration> latencies;
  for (const FrameRecord& frame : records) {
    if (frame.pipeline != pipeline || frame.arrival < begin || frame.arrival >= end) continue;
    if (frame.outcome == FrameOutcome::kDropped) {
      ++summary.stages[frame.stage].dropped;
      continue;
    }
    ++(frame.outcome == FrameOutcome::kOnTime ? summary.on_time : summary.late);
    latencies.push_back(frame.ended - frame.arrival);
  }
  const auto frames = static_cast<double>(summary.frames());
  const auto on_time = static_cast<double>(summary.on_time);
  const double seconds = ToSeconds(end - begin);
  if (seconds > 0) {
    summary.offered_fps = frames / seconds;
    summary.goodput_fps = on_time / seconds;
  }
  if (frames > 0) summary.bad_ratio = (frames - on_time) / frames;
  summary.p50_ms = ToMillis(Percentile(latencies, 50));
  summary.p95_ms = ToMillis(Percentile(latencies, 95));
  summary.p99_ms = ToMillis(Percentile(latencies, 99));
}

PipelineSummary Average(std::span<const PipelineSummary> seeds) {
  PipelineSummary mean = seeds.front();
  for (const PipelineSummary& seed : seeds.subspan(1)) {
    mean.on_time += seed.on_time;
    mean.late += seed.late;
    for (std::size_t s = 0; s < mean.stages.size(); ++s) {
      mean.stages[s].dropped += seed.stages[s].dropped;
    }
  }
  for (double PipelineSummary::*figure :
       {&PipelineSummary::offered_fps, &PipelineSummary::goodput_fps, &PipelineSummary::bad_ratio,
        &PipelineSummary::p50_ms, &PipelineSummary::p95_ms, &PipelineSummary::p99_ms}) {
    mean.*figure = 0;
    for (const PipelineSummary& seed : seeds) {
      mean.*figure += seed.*figure / static_cast<double>(seeds.size());
    }
  }
  return mean;
}

}  // namespace tactus
