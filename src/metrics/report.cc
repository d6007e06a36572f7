#include "metrics/report.h"

#include <algorithm>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using Json = nlohmann::ordered_json;

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

// Where counting begins: the instant, and how many of the requests that arrived at it are skipped.
struct Cut {
  TimePoint at;
  std::int64_t skip_at = 0;
};

Cut FindCut(std::span<const RequestRecord> records, TimePoint begin, TimePoint end,
            std::int64_t skip) {
  if (skip <= 0) return {begin, 0};
  std::vector<TimePoint> arrivals;
  for (const RequestRecord& record : records) {
    if (record.arrival >= begin && record.arrival < end) arrivals.push_back(record.arrival);
  }
  if (skip >= static_cast<std::int64_t>(arrivals.size())) return {end, 0};
  std::nth_element(arrivals.begin(), arrivals.begin() + skip, arrivals.end());
  const TimePoint at = arrivals[skip];
  const auto before =
      std::count_if(arrivals.begin(), arrivals.end(), [&](TimePoint t) { return t < at; });
  return {at, skip - before};
}

Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json FiguresJson(const Summary& s) {
  Json json;
  json["requests"] = s.requests;
  json["offered_rps"] = s.offered_rps;
  json["goodput_rps"] = s.goodput_rps;
  json["bad_ratio"] = s.bad_ratio;
  json["p50_ms"] = s.p50_ms;
  json["p95_ms"] = s.p95_ms;
  json["p99_ms"] = s.p99_ms;
  json["mean_batch"] = s.mean_batch;
  json["batch_sizes"] = Json::object();
  for (const auto& [size, share] : s.batch_sizes) json["batch_sizes"][std::to_string(size)] = share;
  json["queue_p50_ms"] = Optional(s.queue_p50_ms);
  json["queue_p99_ms"] = Optional(s.queue_p99_ms);
  json["accuracy"] = s.accuracy;
  json["measured_accuracy"] = Optional(s.measured_accuracy);
  json["exits"] = Json::object();
  for (const auto& [name, share] : s.exits) json["exits"][name] = share;
  for (int i = 0; i < kOutcomes; ++i) {
    json["outcomes"][Name(static_cast<Outcome>(i))] = s.outcomes[i];
  }
  return json;
}

Json PeakJson(const PeakGoodput& peak) {
  const auto of = [&](double bound) {
    return bound > 0 ? Json(peak.rate_rps / bound) : Json(nullptr);
  };
  return {{"rate_rps", peak.rate_rps},
          {"half_width_rps", peak.half_width_rps},
          {"seeds", peak.seeds},
          {"bad_limit", peak.bad_limit},
          {"limiting_model", peak.limiting_model},
          {"staggered_bound_rps", Optional(peak.staggered_bound_rps)},
          {"of_staggered_bound", of(peak.staggered_bound_rps.value_or(0))},
          {"fluid_limit_rps", peak.fluid_limit_rps},
          {"of_fluid_limit", of(peak.fluid_limit_rps)}};
}

Json ScalingJson(std::span<const ScalingPoint> points) {
  Json json = Json::array();
  for (const ScalingPoint& point : points) {
    json.push_back({{"at_s", point.at_s},
                    {"open", point.open},
                    {"starting", point.starting},
                    {"advised", point.advised},
                    {"requests", point.requests},
                    {"bad_ratio", point.bad_ratio},
                    {"idle_ratio", point.idle_ratio}});
  }
  return json;
}

Json LayoutJson(std::span<const LayoutPoint> points) {
  Json json = Json::array();
  for (const LayoutPoint& point : points) {
    json.push_back({{"at_s", point.at_s},
                    {"lanes", point.lanes},
                    {"devices_used", point.devices_used},
                    {"offered_rps", point.offered_rps},
                    {"bad_ratio", point.bad_ratio},
                    {"plans", point.plans},
                    {"given_up", point.given_up}});
  }
  return json;
}

Json PipelineJson(const PipelineSummary& p) {
  Json json = {{"name", p.name},
               {"slo_ms", p.slo_ms},
               {"requests", p.requests()},
               {"offered_rps", p.offered_rps},
               {"goodput_rps", p.goodput_rps},
               {"bad_ratio", p.bad_ratio},
               {"p50_ms", p.p50_ms},
               {"p95_ms", p.p95_ms},
               {"p99_ms", p.p99_ms},
               {"outcomes", {{"on_time", p.on_time}, {"late", p.late}, {"dropped", p.dropped()}}}};
  json["dropped_at"] = Json::object();
  for (const StageLosses& stage : p.stages) json["dropped_at"][stage.name] = stage.dropped;
  if (p.items > 0) json.update({{"items", p.items}, {"items_lost", p.items_lost}});
  return json;
}

void AddPriorities(const RunReport& run, Json& json) {
  for (const PrioritySummary& level : run.priorities) {
    Json entry = {{"priority", level.priority}};
    entry.update(FiguresJson(level.figures));
    json["priorities"].push_back(std::move(entry));
  }
  if (!run.prediction) return;
  const PredictionSummary& p = *run.prediction;
  json["prediction"] = {{"batches", p.batches},
                        {"p50", p.p50},
                        {"p95", p.p95},
                        {"p99", p.p99},
                        {"overhead_p50", p.overhead_p50},
                        {"overhead_p99", p.overhead_p99}};
}

Json RunJson(const RunReport& run) {
  Json json = {{"policy", run.policy},
               {"scenario", run.scenario},
               {"seed", run.seed},
               {"commit", run.commit},
               {"machine", run.machine},
               {"source", run.source},
               {"profile", run.profile_provenance},
               {"duration_s", run.duration_s}};
  json["settings"] = Json::object();
  for (const auto& [key, value] : run.settings) json["settings"][key] = value;
  json.update(FiguresJson(run.all));
  json["accuracy_limit"] = Optional(run.accuracy_limit);
  json["accuracy_limit_by_rate"] = Optional(run.accuracy_limit_by_rate);
  json["models"] = Json::array();
  for (const ModelSummary& model : run.models) {
    Json entry = {{"name", model.name}, {"slo_ms", model.slo_ms}};
    entry.update(FiguresJson(model.figures));
    json["models"].push_back(std::move(entry));
  }
  for (const PipelineSummary& pipeline : run.pipelines) {
    json["pipelines"].push_back(PipelineJson(pipeline));
  }
  AddPriorities(run, json);
  json["lanes_touched"] = run.lanes_touched;
  json["busy_ratio"] = BusyRatio(run);
  json["idle_ratio"] = IdleRatio(run);
  json["lanes"] = Json::array();
  for (const LaneSummary& lane : run.lanes) {
    json["lanes"].push_back({{"busy_ratio", lane.busy_ratio},
                             {"open_ratio", lane.open_ratio},
                             {"batches", lane.batches}});
    if (!lane.kind.empty()) json["lanes"].back()["kind"] = lane.kind;
  }
  json["mean_open_lanes"] = MeanOpenLanes(run);
  if (!run.scaling.empty()) json["lanes_over_time"] = ScalingJson(run.scaling);
  if (!run.layout.empty()) json["layout_over_time"] = LayoutJson(run.layout);
  if (run.peak) json["peak"] = PeakJson(*run.peak);
  return json;
}

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

TimePoint CountedFrom(std::span<const RequestRecord> records, TimePoint begin, TimePoint end,
                      std::int64_t skip) {
  return FindCut(records, begin, end, skip).at;
}

RunReport Summarize(std::span<const RequestRecord> records, std::span<const Model> models,
                    TimePoint begin, TimePoint end, std::int64_t skip) {
  const Cut cut = FindCut(records, begin, end, skip);
  std::int64_t to_skip = cut.skip_at;
  Totals all(models);
  std::vector<Totals> by_model;
  for (const Model& model : models) by_model.emplace_back(std::span(&model, 1));
  PriorityTotals by_priority(models);
  for (const RequestRecord& record : records) {
    if (record.arrival < cut.at || record.arrival >= end) continue;
    if (record.arrival == cut.at && to_skip-- > 0) continue;
    const ModelExit& exit = models[record.model].exits[record.exit];
    all.Add(record, exit);
    by_model[record.model].Add(record, exit);
    by_priority.Add(models[record.model].priority, record, exit);
  }
  RunReport report;
  report.duration_s = std::max(0.0, ToSeconds(end - cut.at));
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

std::string ToJson(const Report& report) {
  Json json = {{"runs", Json::array()}, {"checks", Json::array()}};
  for (const RunReport& run : report.runs) json["runs"].push_back(RunJson(run));
  for (const FailedPolicy& failed : report.failed) {
    json["failed"].push_back({{"policy", failed.policy}, {"why", failed.why}});
  }
  for (const Check& check : report.checks) {
    json["checks"].push_back(
        {{"what", check.what}, {"value", check.value}, {"bar", check.bar}, {"ok", check.ok}});
  }
  // Names come from users; bytes that are not UTF-8 must not make the report fail.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status WriteJson(const Report& report, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << ToJson(report);
  file.close();
  if (!file) {
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("{}: cannot write the report; is the folder there, and writable?", path));
  }
  return {};
}

}  // namespace tactus
