// The report as JSON: report.h.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/written_file.h"
#include "metrics/report.h"

namespace tactus {
namespace {

using Json = nlohmann::ordered_json;

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
          {"of_fluid_limit", of(peak.fluid_limit_rps)},
          {"rates_rps", peak.rates_rps}};
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

// Columns, as there are many rows.
Json TimelineJson(std::span<const Timeline> timelines) {
  Json json = Json::array();
  for (const Timeline& timeline : timelines) {
    Json& entry = json.emplace_back();
    entry["model"] = timeline.model.empty() ? Json(nullptr) : Json(timeline.model);
    for (const TimelineStep& step : timeline.steps) {
      entry["end_s"].push_back(step.end_s);
      entry["offered_rps"].push_back(step.offered_rps);
      entry["goodput_rps"].push_back(step.goodput_rps);
      entry["bad_ratio"].push_back(step.bad_ratio);
      entry["busy_lanes"].push_back(step.busy_lanes);
    }
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
  for (const PredictionPercentile& each : p.percentiles) {
    json["prediction"]["percentiles"].push_back({{"percent", each.percent},
                                                 {"error", each.error},
                                                 {"signed_error", each.signed_error},
                                                 {"latency_error", each.latency_error},
                                                 {"overhead", each.overhead}});
  }
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
  if (!run.timeline.empty()) json["timeline"] = TimelineJson(run.timeline);
  if (run.peak) json["peak"] = PeakJson(*run.peak);
  return json;
}

}  // namespace

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
  return WriteFileText(ToJson(report), path, "report");
}

}  // namespace tactus
