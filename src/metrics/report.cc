#include "metrics/report.h"

#include <algorithm>
#include <map>

namespace tactus {
namespace {

// Adds up records of one model, or of all.
class Totals {
 public:
  // Models whose exits bear the same names share them; the order stays shallow to deep.
  explicit Totals(std::span<const Model> models) {
    for (const Model& model : models) {
      for (const ModelExit& exit : model.exits) CountOf(exit.name);
    }
  }

  void Add(const RequestRecord& record, const ModelExit& exit) {
    ++summary_.requests;
    ++summary_.outcomes[static_cast<int>(record.outcome)];
    if (record.outcome != Outcome::kMet && record.outcome != Outcome::kLate) return;
    latencies_.push_back(record.ended - record.arrival);
    if (record.started != kNever) waits_.push_back(record.started - record.arrival);
    batches_ += record.batch;
    if (record.batch >= served_in_.size()) served_in_.resize(record.batch + 1);
    ++served_in_[record.batch];
    accuracy_ += exit.accuracy;
    ++CountOf(exit.name);
    if (record.correct < 0) return;
    ++checked_;
    correct_ += record.correct;
  }

  Summary Finish(double seconds) {
    const auto count = [&](Outcome o) { return summary_.outcomes[static_cast<int>(o)]; };
    const std::int64_t wanted = summary_.requests - count(Outcome::kCancelled);
    if (seconds > 0) {
      summary_.offered_rps = static_cast<double>(summary_.requests) / seconds;
      summary_.goodput_rps = static_cast<double>(count(Outcome::kMet)) / seconds;
    }
    if (wanted > 0) {
      summary_.bad_ratio =
          static_cast<double>(wanted - count(Outcome::kMet)) / static_cast<double>(wanted);
    }
    if (checked_ > 0) {
      summary_.measured_accuracy = static_cast<double>(correct_) / static_cast<double>(checked_);
    }
    if (latencies_.empty()) return summary_;
    const auto answered = static_cast<double>(latencies_.size());
    summary_.p50_ms = ToMillis(Percentile(latencies_, 50));
    summary_.p95_ms = ToMillis(Percentile(latencies_, 95));
    summary_.p99_ms = ToMillis(Percentile(latencies_, 99));
    summary_.mean_batch = static_cast<double>(batches_) / answered;
    summary_.accuracy = accuracy_ / answered;
    for (const auto& [name, n] : exits_) {
      summary_.exits.push_back({name, static_cast<double>(n) / answered});
    }
    FinishBatchSizes();
    if (waits_.empty()) return summary_;
    summary_.queue_p50_ms = ToMillis(Percentile(waits_, 50));
    summary_.queue_p99_ms = ToMillis(Percentile(waits_, 99));
    return summary_;
  }

 private:
  // A batch of b shows in b records.
  void FinishBatchSizes() {
    double batches = 0;
    for (std::size_t b = 1; b < served_in_.size(); ++b) {
      batches += static_cast<double>(served_in_[b]) / static_cast<double>(b);
    }
    for (std::size_t b = 1; b < served_in_.size(); ++b) {
      if (served_in_[b] == 0) continue;
      const double share = static_cast<double>(served_in_[b]) / static_cast<double>(b) / batches;
      summary_.batch_sizes.push_back({static_cast<int>(b), share});
    }
  }

  std::int64_t& CountOf(const std::string& exit) {
    for (auto& [name, n] : exits_) {
      if (name == exit) return n;
    }
    return exits_.emplace_back(exit, 0).second;
  }

  Summary summary_;
  std::vector<Duration> latencies_;
  std::vector<Duration> waits_;
  std::vector<std::int64_t> served_in_;  // answered requests by the size of their batch
  std::int64_t batches_ = 0;
  double accuracy_ = 0;
  std::vector<std::pair<std::string, std::int64_t>> exits_;
  std::int64_t checked_ = 0;
  std::int64_t correct_ = 0;
};

void AddMean(double& mean, double value, std::size_t n) { mean += value / static_cast<double>(n); }

// Shares of what has a name or a size, joined over runs.
template <class Share, class Key>
void AddMeanShares(std::vector<Share>& mean, const std::vector<Share>& shares, Key Share::*key,
                   std::size_t n) {
  for (const Share& share : shares) {
    auto at = std::find_if(mean.begin(), mean.end(),
                           [&](const Share& s) { return s.*key == share.*key; });
    if (at == mean.end()) {
      at = mean.insert(at, share);
      at->share = 0;
    }
    AddMean(at->share, share.share, n);
  }
}

// Null unless every run knows it.
std::optional<double> MeanOf(std::span<const RunReport> runs, auto figures,
                             std::optional<double> Summary::*member) {
  double mean = 0;
  for (const RunReport& run : runs) {
    const std::optional<double>& value = figures(run).*member;
    if (!value) return {};
    AddMean(mean, *value, runs.size());
  }
  return mean;
}

Summary AverageOf(std::span<const RunReport> runs, auto figures) {
  Summary mean;
  std::size_t checked = 0;
  for (const RunReport& run : runs) checked += figures(run).measured_accuracy.has_value();
  for (const RunReport& run : runs) {
    const Summary& s = figures(run);
    mean.requests += s.requests;
    for (int i = 0; i < kOutcomes; ++i) mean.outcomes[i] += s.outcomes[i];
    AddMean(mean.offered_rps, s.offered_rps, runs.size());
    AddMean(mean.goodput_rps, s.goodput_rps, runs.size());
    AddMean(mean.bad_ratio, s.bad_ratio, runs.size());
    AddMean(mean.p50_ms, s.p50_ms, runs.size());
    AddMean(mean.p95_ms, s.p95_ms, runs.size());
    AddMean(mean.p99_ms, s.p99_ms, runs.size());
    AddMean(mean.mean_batch, s.mean_batch, runs.size());
    AddMean(mean.accuracy, s.accuracy, runs.size());
    AddMeanShares(mean.exits, s.exits, &ExitShare::name, runs.size());
    AddMeanShares(mean.batch_sizes, s.batch_sizes, &BatchShare::size, runs.size());
    if (!s.measured_accuracy) continue;
    mean.measured_accuracy = mean.measured_accuracy.value_or(0);
    AddMean(*mean.measured_accuracy, *s.measured_accuracy, checked);
  }
  std::sort(mean.batch_sizes.begin(), mean.batch_sizes.end(),
            [](const BatchShare& a, const BatchShare& b) { return a.size < b.size; });
  mean.queue_p50_ms = MeanOf(runs, figures, &Summary::queue_p50_ms);
  mean.queue_p99_ms = MeanOf(runs, figures, &Summary::queue_p99_ms);
  return mean;
}

// One for each priority among the models, of all of its models.
class PriorityTotals {
 public:
  explicit PriorityTotals(std::span<const Model> models) {
    for (const Model& model : models) totals_.try_emplace(model.priority, models);
  }
  void Add(int priority, const RequestRecord& record, const ModelExit& exit) {
    totals_.at(priority).Add(record, exit);
  }
  std::vector<PrioritySummary> Finish(double seconds) {
    std::vector<PrioritySummary> summaries;
    if (totals_.size() < 2) return summaries;
    for (auto& [priority, totals] : totals_) {
      summaries.push_back({priority, totals.Finish(seconds)});
    }
    return summaries;
  }

 private:
  std::map<int, Totals> totals_;
};

// Null unless every run predicts.
std::optional<PredictionSummary> AveragePrediction(std::span<const RunReport> runs) {
  PredictionSummary mean;
  for (const RunReport& run : runs) {
    if (!run.prediction) return {};
    mean.batches += run.prediction->batches;
    AddMean(mean.p50, run.prediction->p50, runs.size());
    AddMean(mean.p95, run.prediction->p95, runs.size());
    AddMean(mean.p99, run.prediction->p99, runs.size());
    AddMean(mean.overhead_p50, run.prediction->overhead_p50, runs.size());
    AddMean(mean.overhead_p99, run.prediction->overhead_p99, runs.size());
  }
  return mean;
}

}  // namespace

Counting::Counting(std::span<const RequestRecord> records, TimePoint begin, TimePoint end,
                   std::int64_t skip)
    : from_(begin), end_(end) {
  if (skip <= 0) return;
  std::vector<TimePoint> arrivals;
  for (const RequestRecord& record : records) {
    if (record.arrival >= begin && record.arrival < end) arrivals.push_back(record.arrival);
  }
  if (skip >= static_cast<std::int64_t>(arrivals.size())) {
    from_ = end;
    return;
  }
  std::nth_element(arrivals.begin(), arrivals.begin() + skip, arrivals.end());
  from_ = arrivals[static_cast<std::size_t>(skip)];
  to_skip_ = skip - std::count_if(arrivals.begin(), arrivals.end(),
                                  [&](TimePoint at) { return at < from_; });
}

bool Counting::Counts(const RequestRecord& record) {
  if (record.arrival < from_ || record.arrival >= end_) return false;
  return record.arrival > from_ || to_skip_-- <= 0;
}

RunReport Summarize(std::span<const RequestRecord> records, std::span<const Model> models,
                    TimePoint begin, TimePoint end, std::int64_t skip) {
  Counting counting(records, begin, end, skip);
  Totals all(models);
  std::vector<Totals> by_model;
  for (const Model& model : models) by_model.emplace_back(std::span(&model, 1));
  PriorityTotals by_priority(models);
  for (const RequestRecord& record : records) {
    if (!counting.Counts(record)) continue;
    const ModelExit& exit = models[record.model].exits[record.exit];
    all.Add(record, exit);
    by_model[record.model].Add(record, exit);
    by_priority.Add(models[record.model].priority, record, exit);
  }
  RunReport report;
  report.duration_s = std::max(0.0, ToSeconds(end - counting.from()));
  report.all = all.Finish(report.duration_s);
  report.priorities = by_priority.Finish(report.duration_s);
  for (std::size_t i = 0; i < models.size(); ++i) {
    report.models.push_back(
        {models[i].name, ToMillis(models[i].slo), by_model[i].Finish(report.duration_s)});
  }
  return report;
}

double MeanOpenLanes(const RunReport& run) {
  double open = 0;
  for (const LaneSummary& lane : run.lanes) open += lane.open_ratio;
  return open;
}

double BusyRatio(const RunReport& run) {
  double busy = 0;
  for (const LaneSummary& lane : run.lanes) busy += lane.busy_ratio;
  const double open = MeanOpenLanes(run);
  return open > 0 ? busy / open : 0;
}

double IdleRatio(const RunReport& run) {
  double idle = 0;
  for (const LaneSummary& lane : run.lanes) {
    idle += std::max(0.0, lane.open_ratio - lane.busy_ratio);
  }
  const double open = MeanOpenLanes(run);
  return open > 0 ? idle / open : 0;
}

int BatchPercentile(const Summary& figures, double p) {
  double sum = 0;
  for (const BatchShare& batch : figures.batch_sizes) {
    sum += batch.share;
    // The shares add up to 1 only to rounding.
    if (sum >= p / 100 - 1e-9) return batch.size;
  }
  return 0;
}

RunReport Average(std::span<const RunReport> runs) {
  RunReport mean = runs.front();
  mean.all = AverageOf(runs, [](const RunReport& run) -> const Summary& { return run.all; });
  for (std::size_t i = 0; i < mean.models.size(); ++i) {
    mean.models[i].figures = AverageOf(
        runs, [i](const RunReport& run) -> const Summary& { return run.models[i].figures; });
  }
  for (std::size_t i = 0; i < mean.priorities.size(); ++i) {
    mean.priorities[i].figures = AverageOf(
        runs, [i](const RunReport& run) -> const Summary& { return run.priorities[i].figures; });
  }
  for (std::size_t p = 0; p < mean.pipelines.size(); ++p) {
    std::vector<PipelineSummary> seeds;
    for (const RunReport& run : runs) seeds.push_back(run.pipelines[p]);
    mean.pipelines[p] = Average(seeds);
  }
  mean.prediction = AveragePrediction(runs);
  if (runs.size() > 1) {  // each seed's lanes change at instants of their own
    mean.scaling.clear();
    mean.layout.clear();
    mean.timeline.clear();
  }
  mean.duration_s = 0;
  mean.lanes_touched = 0;
  for (const RunReport& run : runs) {
    AddMean(mean.duration_s, run.duration_s, runs.size());
    AddMean(mean.lanes_touched, run.lanes_touched, runs.size());
  }
  for (std::size_t i = 0; i < mean.lanes.size(); ++i) {
    mean.lanes[i] = {.open_ratio = 0, .kind = mean.lanes[i].kind};
    for (const RunReport& run : runs) {
      AddMean(mean.lanes[i].open_ratio, run.lanes[i].open_ratio, runs.size());
      AddMean(mean.lanes[i].busy_ratio, run.lanes[i].busy_ratio, runs.size());
      mean.lanes[i].batches += run.lanes[i].batches;
    }
  }
  for (const auto limit : {&RunReport::accuracy_limit, &RunReport::accuracy_limit_by_rate}) {
    if (!(mean.*limit)) continue;
    mean.*limit = 0;
    for (const RunReport& run : runs) {
      AddMean(*(mean.*limit), (run.*limit).value_or(0), runs.size());
    }
  }
  return mean;
}

}  // namespace tactus
