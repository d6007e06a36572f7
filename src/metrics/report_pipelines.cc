// What became of pipeline requests, in figures: report.h.
#include "metrics/report.h"

namespace tactus {

std::int64_t PipelineSummary::dropped() const {
  std::int64_t sum = 0;
  for (const StageLosses& stage : stages) sum += stage.dropped;
  return sum;
}

void Summarize(std::span<const PipelineRecord> records, std::uint32_t pipeline, TimePoint begin,
               TimePoint end, PipelineSummary& summary) {
  std::vector<Duration> latencies;
  for (const PipelineRecord& record : records) {
    if (record.pipeline != pipeline || record.arrival < begin || record.arrival >= end) continue;
    if (record.outcome == PipelineOutcome::kCancelled) continue;  // nobody was let down
    if (record.outcome == PipelineOutcome::kDropped) {
      ++summary.stages[record.stage].dropped;
      continue;
    }
    ++(record.outcome == PipelineOutcome::kOnTime ? summary.on_time : summary.late);
    summary.items += record.items;
    summary.items_lost += record.items_lost;
    latencies.push_back(record.ended - record.arrival);
  }
  const auto requests = static_cast<double>(summary.requests());
  const auto on_time = static_cast<double>(summary.on_time);
  const double seconds = ToSeconds(end - begin);
  if (seconds > 0) {
    summary.offered_rps = requests / seconds;
    summary.goodput_rps = on_time / seconds;
  }
  if (requests > 0) summary.bad_ratio = (requests - on_time) / requests;
  summary.p50_ms = ToMillis(Percentile(latencies, 50));
  summary.p95_ms = ToMillis(Percentile(latencies, 95));
  summary.p99_ms = ToMillis(Percentile(latencies, 99));
}

PipelineSummary Average(std::span<const PipelineSummary> seeds) {
  PipelineSummary mean = seeds.front();
  for (const PipelineSummary& seed : seeds.subspan(1)) {
    mean.on_time += seed.on_time;
    mean.late += seed.late;
    mean.items += seed.items;
    mean.items_lost += seed.items_lost;
    for (std::size_t s = 0; s < mean.stages.size(); ++s) {
      mean.stages[s].dropped += seed.stages[s].dropped;
    }
  }
  for (double PipelineSummary::*figure :
       {&PipelineSummary::offered_rps, &PipelineSummary::goodput_rps, &PipelineSummary::bad_ratio,
        &PipelineSummary::p50_ms, &PipelineSummary::p95_ms, &PipelineSummary::p99_ms}) {
    mean.*figure = 0;
    for (const PipelineSummary& seed : seeds) {
      mean.*figure += seed.*figure / static_cast<double>(seeds.size());
    }
  }
  return mean;
}

}  // namespace tactus
