#include "reproduction/fleet_answers.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/fnv.h"
#include "policies/registry.h"
#include "reproduction/origin.h"
#include "sim/fleet/fleet_simulation.h"
#include "workload/fleet_scenario.h"

namespace tactus {
namespace {

std::filesystem::path FleetPath(const FigurePoint& point, const ReproduceOptions& options) {
  return std::filesystem::path(options.scenarios) / (point.scenario + ".toml");
}

Expected<FleetScenario> LoadFleetPoint(const FigurePoint& point, const ReproduceOptions& options,
                                       int seed) {
  std::vector<std::string> settings = point.settings;
  settings.push_back(fmt::format("seed={}", seed));
  return LoadFleetScenario(FleetPath(point, options), settings);
}

Expected<FleetReport> RunFleetPoint(const FleetScenario& scenario) {
  return SimulateFleet(scenario,
                       {.policies = [](const std::string& name) { return MakePolicy(name); }});
}

double FleetRate(std::int64_t count, double seconds) {
  return static_cast<double>(count) / seconds;
}

FigureRow FleetRow(const FleetReport& report) {
  FigureRow row = {{"effective_rps", report.effective_rps()},
                   {"value_rps", report.value_rps()},
                   {"total_rps", report.total_rps()},
                   {"offered_rps", FleetRate(report.offered(), report.duration_s)},
                   {"on_time_percent", 100 * report.on_time_share()},
                   {"memory_mb", report.memory_mb}};
  double results = 0;
  for (const FleetPipelineReport& each : report.pipelines) {
    const auto weight = static_cast<double>(each.on_time + each.late);
    results += weight;
    row["p50_ms"] += weight * each.p50_ms;
    row["p95_ms"] += weight * each.p95_ms;
    row["p99_ms"] += weight * each.p99_ms;
  }
  for (const char* column : {"p50_ms", "p95_ms", "p99_ms"}) row[column] /= std::max(1.0, results);
  return row;
}

// The source's link, of the pipeline; its mean rate over [from, to) seconds.
double MeanRate(const FleetScenario& scenario, std::size_t pipeline, double from, double to) {
  const FleetInput& input = scenario.input;
  const SiteId site = input.devices[input.pipelines[pipeline].source.value()].site;
  const auto link = std::ranges::find_if(
      input.links, [&](const FleetLink& each) { return each.a == site || each.b == site; });
  if (link == input.links.end()) return 0;
  const auto index = static_cast<std::size_t>(link - input.links.begin());
  const auto& samples = scenario.link_rates[index];
  if (samples.empty()) return link->mbps;
  double sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double begin = std::max(from, samples[i].t_s);
    const double end = std::min(to, i + 1 < samples.size() ? samples[i + 1].t_s : to);
    if (end > begin) sum += (end - begin) * samples[i].mbps;
  }
  return sum / (to - from);
}

FigureData FleetMinutes(const std::string& label, const FleetScenario& scenario,
                        const FleetReport& report, int every) {
  FigureData data;
  const double seconds = 60.0 * every;
  for (std::size_t p = 0; p < report.pipelines.size(); ++p) {
    const FleetPipelineReport& pipeline = report.pipelines[p];
    auto& own = data[label + ": " + pipeline.name];
    for (std::size_t m = 0; m < pipeline.offered_by_minute.size(); ++m) {
      const double x = static_cast<double>(m) - static_cast<double>(m % every);
      for (FigureRow* row : {&own[x], &data[label][x]}) {
        (*row)["offered_rps"] += FleetRate(pipeline.offered_by_minute[m], seconds);
        (*row)["effective_rps"] += FleetRate(pipeline.on_time_by_minute[m], seconds);
      }
      own[x]["link_mbps"] = MeanRate(scenario, p, 60 * x, 60 * x + seconds);
    }
  }
  return data;
}

}  // namespace

Expected<FigureData> FleetAnswer(const std::string& label, const FigurePoint& point,
                                 const ReproduceOptions& options) {
  const auto of = point.with.find("of");
  if (of != point.with.end() && of->second == "minutes") {
    const auto every = point.with.find("every");
    const auto scenario = LoadFleetPoint(point, options, 1);
    if (!scenario) return std::unexpected(scenario.error());
    const auto report = RunFleetPoint(*scenario);
    if (!report) return std::unexpected(report.error());
    const int minutes = every == point.with.end() ? 1 : std::atoi(every->second.c_str());
    return FleetMinutes(label, *scenario, *report, std::max(1, minutes));
  }
  FigureRow mean;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    const auto scenario = LoadFleetPoint(point, options, seed);
    if (!scenario) return std::unexpected(scenario.error());
    const auto report = RunFleetPoint(*scenario);
    if (!report) return std::unexpected(report.error());
    for (const auto& [column, value] : FleetRow(*report)) mean[column] += value / options.seeds;
    const double effective = report->effective_rps();
    mean["least_rps"] = seed == 1 ? effective : std::min(mean["least_rps"], effective);
    mean["most_rps"] = std::max(mean["most_rps"], effective);
  }
  return FigureData{{label, {{point.x, mean}}}};
}

Expected<std::uint64_t> HashOfFleet(const FigurePoint& point, const ReproduceOptions& options,
                                    std::uint64_t hash) {
  const auto scenario = LoadFleetPoint(point, options, 1);
  if (!scenario) return std::unexpected(scenario.error());
  const std::filesystem::path path = FleetPath(point, options);
  hash = Fnv1a(FileText(path), hash);
  for (const std::string& file :
       {scenario->run.traces, scenario->run.counts, scenario->run.curve, scenario->run.exits}) {
    if (!file.empty()) hash = Fnv1a(FileText(path.parent_path() / file), hash);
  }
  return hash;
}

}  // namespace tactus
