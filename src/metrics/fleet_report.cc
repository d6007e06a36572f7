#include "metrics/fleet_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "metrics/text_table.h"

namespace tactus {
namespace {

std::int64_t SumOf(const FleetReport& report, std::int64_t FleetPipelineReport::*of) {
  std::int64_t sum = 0;
  for (const FleetPipelineReport& each : report.pipelines) sum += each.*of;
  return sum;
}

std::string PerSecond(std::int64_t count, double seconds) {
  return fmt::format("{:.1f}", seconds > 0 ? static_cast<double>(count) / seconds : 0);
}

std::string InPercent(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string FleetPipelines(const FleetReport& report) {
  TextTable table;
  table.AddColumns(
      "pipeline|SLO [ms]~2|offered [results/s]~3|effective [on time/s]|late [/s]~1|"
      "on time [%]|P50 [ms]~5|P95 [ms]~4|P99 [ms]");
  const double seconds = report.duration_s;
  for (const FleetPipelineReport& each : report.pipelines) {
    const double share = each.offered > 0
                             ? static_cast<double>(each.on_time) / static_cast<double>(each.offered)
                             : 1;
    const std::string on_time = each.offered > 0 ? InPercent(share) : "-";
    table.Add({each.name, fmt::format("{:g}", each.slo_ms), PerSecond(each.offered, seconds),
               PerSecond(each.on_time, seconds), PerSecond(each.late, seconds), on_time,
               fmt::format("{:g}", each.p50_ms), fmt::format("{:g}", each.p95_ms),
               fmt::format("{:g}", each.p99_ms)});
  }
  table.Add({"all", "", PerSecond(report.offered(), seconds), PerSecond(report.on_time(), seconds),
             PerSecond(report.late(), seconds),
             report.offered() > 0 ? InPercent(report.on_time_share()) : "-"});
  return table.Print();
}

std::string FleetStages(const FleetReport& report) {
  TextTable table;
  table.AddColumns("stage|runs|answered|expired|shed|link late~1|link full~2|cancelled~3");
  for (const FleetStageReport& each : report.stages) {
    table.Add({fmt::format("{}/{} on {}", each.pipeline, each.stage,
                           each.device.empty() ? "none" : each.device),
               fmt::format("{}", each.runs), fmt::format("{}", each.answered),
               fmt::format("{}", each.expired), fmt::format("{}", each.shed),
               fmt::format("{}", each.link_dead), fmt::format("{}", each.link_full),
               fmt::format("{}", each.cancelled)});
  }
  return table.Print();
}

std::string FleetDevices(const FleetReport& report) {
  TextTable table;
  table.AddColumns(
      "device or link|busy [%]|memory [MB]|sent [MB]|sent [messages]~2|"
      "dropped [messages]~1");
  for (const FleetDeviceReport& each : report.devices) {
    table.Add({each.name, InPercent(each.busy), fmt::format("{:.0f}", each.memory_mb)});
  }
  for (const FleetLinkReport& each : report.links) {
    if (each.delivered + each.dropped == 0) continue;
    table.Add({each.name, InPercent(each.busy), "", fmt::format("{:.1f}", each.megabytes),
               fmt::format("{}", each.delivered), fmt::format("{}", each.dropped)});
  }
  return table.Print();
}

}  // namespace

std::int64_t FleetReport::offered() const { return SumOf(*this, &FleetPipelineReport::offered); }
std::int64_t FleetReport::on_time() const { return SumOf(*this, &FleetPipelineReport::on_time); }
std::int64_t FleetReport::late() const { return SumOf(*this, &FleetPipelineReport::late); }
double FleetReport::value() const {
  double sum = 0;
  for (const FleetPipelineReport& each : pipelines) sum += each.value;
  return sum;
}

std::string FleetTable(const FleetReport& report) {
  const std::string value =
      report.exits
          ? fmt::format("; {:.1f} results a second on time by their accuracy", report.value_rps())
          : "";
  return fmt::format(
      "{}: planner {}, policy {}, seed {}, {:g} s simulated\n"
      "{} frames, {} items; {} plans served, {} steps of the AutoScaler; servers keep {:.0f} "
      "MB{}\n\n"
      "{}\n{}\n{}",
      report.fleet, report.planner, report.policy, report.seed, report.duration_s, report.frames,
      report.items, report.plans, report.scalings, report.memory_mb, value, FleetPipelines(report),
      FleetStages(report), FleetDevices(report));
}

std::string FleetComparison(std::span<const FleetReport> reports) {
  TextTable table;
  table.AddColumns(
      "planner, policy|seeds~6|offered [results/s]~4|effective [on time/s]|"
      "least [on time/s]~7|most [on time/s]~8|late [/s]~3|on time [%]|of first [%]~2|"
      "servers [MB]~5");
  const bool exits = std::ranges::any_of(reports, &FleetReport::exits);
  if (exits) table.AddColumn("value", "/s");
  double first = 0;
  for (std::size_t i = 0; i < reports.size();) {
    std::size_t end = i;
    double effective = 0, offered = 0, late = 0, memory = 0, value = 0;
    double least = reports[i].effective_rps(), most = least;
    while (end < reports.size() && reports[end].planner == reports[i].planner &&
           reports[end].policy == reports[i].policy) {
      const FleetReport& each = reports[end++];
      effective += each.effective_rps();
      offered += static_cast<double>(each.offered()) / each.duration_s;
      late += static_cast<double>(each.late()) / each.duration_s;
      memory += each.memory_mb;
      value += each.value_rps();
      least = std::min(least, each.effective_rps());
      most = std::max(most, each.effective_rps());
    }
    const auto seeds = static_cast<double>(end - i);
    if (first == 0) first = effective / seeds;
    std::vector<std::string> row = {reports[i].planner + ", " + reports[i].policy,
                                    fmt::format("{}", end - i),
                                    fmt::format("{:.1f}", offered / seeds),
                                    fmt::format("{:.1f}", effective / seeds),
                                    fmt::format("{:.1f}", least),
                                    fmt::format("{:.1f}", most),
                                    fmt::format("{:.1f}", late / seeds),
                                    InPercent(offered > 0 ? effective / offered : 1),
                                    InPercent(first > 0 ? effective / seeds / first : 1),
                                    fmt::format("{:.0f}", memory / seeds)};
    if (exits) row.push_back(fmt::format("{:.1f}", value / seeds));
    table.Add(row);
    i = end;
  }
  return table.Print();
}

std::string FleetReportsJson(std::span<const FleetReport> reports) {
  using nlohmann::json;
  json document = {{"tactus_fleet_runs", 1}, {"runs", json::array()}};
  for (const FleetReport& report : reports) {
    json run = {{"fleet", report.fleet},
                {"planner", report.planner},
                {"policy", report.policy},
                {"seed", report.seed},
                {"duration_s", report.duration_s},
                {"frames", report.frames},
                {"frames_ended", report.ended},
                {"items", report.items},
                {"plans", report.plans},
                {"scalings", report.scalings},
                {"server_memory_mb", report.memory_mb},
                {"offered_rps", report.duration_s > 0 ? report.offered() / report.duration_s : 0},
                {"effective_rps", report.effective_rps()},
                {"value_rps", report.value_rps()},
                {"on_time_share", report.on_time_share()}};
    for (const FleetPipelineReport& each : report.pipelines) {
      run["pipelines"].push_back({{"name", each.name},
                                  {"slo_ms", each.slo_ms},
                                  {"frames", each.frames},
                                  {"offered", each.offered},
                                  {"on_time", each.on_time},
                                  {"late", each.late},
                                  {"p50_ms", each.p50_ms},
                                  {"p95_ms", each.p95_ms},
                                  {"p99_ms", each.p99_ms},
                                  {"offered_by_minute", each.offered_by_minute},
                                  {"on_time_by_minute", each.on_time_by_minute}});
    }
    for (const FleetStageReport& each : report.stages) {
      run["stages"].push_back({{"pipeline", each.pipeline},
                               {"stage", each.stage},
                               {"device", each.device},
                               {"runs", each.runs},
                               {"answered", each.answered},
                               {"expired", each.expired},
                               {"shed", each.shed},
                               {"link_dead", each.link_dead},
                               {"link_full", each.link_full},
                               {"cancelled", each.cancelled}});
    }
    for (const FleetDeviceReport& each : report.devices) {
      run["devices"].push_back(
          {{"name", each.name}, {"busy", each.busy}, {"memory_mb", each.memory_mb}});
    }
    for (const FleetLinkReport& each : report.links) {
      run["links"].push_back({{"name", each.name},
                              {"busy", each.busy},
                              {"megabytes", each.megabytes},
                              {"delivered", each.delivered},
                              {"dropped", each.dropped}});
    }
    document["runs"].push_back(std::move(run));
  }
  return document.dump(1) + "\n";
}

}  // namespace tactus
