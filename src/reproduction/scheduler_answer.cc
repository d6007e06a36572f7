#include "reproduction/scheduler_answer.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "workload/csv.h"
#include "workload/json_reader.h"

namespace tactus {
namespace {

struct SchedulerRuns {
  std::vector<FigureRow> at_line_rate;
  std::string commit;
  std::string machine;
};

double Setting(const JsonReader& settings, const char* key) {
  const std::string text = settings.Text(key);
  const auto value = ParseNumber(text);
  if (!value) settings.Complain(key, "must be a number in quotes");
  return value.value_or(0);
}

Expected<SchedulerRuns> Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return InvalidArgument(path + ": cannot read this file");
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded()) return InvalidArgument(path + ": is no JSON");
  SchedulerRuns runs;
  std::string problem;
  JsonReader(json, problem).Each("runs", [&](const JsonReader& of) {
    runs.commit = of.Text("commit");
    runs.machine = of.Text("machine");
    const bool published = of.Text("policy").ends_with("gather=prefix");
    if (!published || !of.Text("scenario").ends_with(", line rate")) return;
    of.Object("settings", [&](const JsonReader& settings) {
      const double dispatched = Setting(settings, "dispatched_per_second") / 1e6;
      const double dropped = Setting(settings, "dropped_per_second") / 1e6;
      const double per_cpu_second = Setting(settings, "requests_per_cpu_second") / 1e6;
      const double taken = std::max(dispatched + dropped, 1e-9);
      runs.at_line_rate.push_back(
          {{"models", Setting(settings, "models")},
           {"lanes", Setting(settings, "lanes")},
           {"shards", Setting(settings, "shards")},
           {"dispatched_m", dispatched},
           {"dropped_m", dropped},
           {"dispatched_per_cpu_second_m", per_cpu_second * dispatched / taken},
           {"taken_per_cpu_second_m", per_cpu_second},
           {"lateness_p50_us", Setting(settings, "lateness_p50_us")},
           {"lateness_p99_us", Setting(settings, "lateness_p99_us")}});
    });
  });
  if (problem.empty() && runs.at_line_rate.empty()) problem = "holds no run at line rate";
  if (!problem.empty()) {
    return InvalidArgument(
        fmt::format("{}: {}; ./run bench scheduler --json FILE writes such a file", path, problem));
  }
  return runs;
}

// Column by column the median over the runs of one size.
FigureRow Medians(const std::vector<FigureRow>& rows) {
  FigureRow medians;
  for (const auto& [column, first] : rows.front()) {
    std::vector<double> values;
    for (const FigureRow& row : rows) values.push_back(row.at(column));
    std::sort(values.begin(), values.end());
    medians[column] = values[values.size() / 2];
  }
  medians["runs"] = static_cast<double>(rows.size());
  return medians;
}

}  // namespace

Expected<FigureRow> SchedulerAnswer(const FigurePoint& point, const ReproduceOptions& options) {
  const auto runs = Load(options.scheduler);
  if (!runs) return std::unexpected(runs.error());
  std::vector<FigureRow> rows;
  for (const FigureRow& run : runs->at_line_rate) {
    const bool asked = std::ranges::all_of(point.with, [&](const auto& size) {
      return run.at(size.first) == std::atof(size.second.c_str());
    });
    if (asked) rows.push_back(run);
  }
  return rows.empty() ? FigureRow{} : Medians(rows);
}

Expected<std::string> SchedulerSource(const ReproduceOptions& options) {
  const auto runs = Load(options.scheduler);
  if (!runs) return std::unexpected(runs.error());
  return fmt::format(
      "measured by ./run bench scheduler at commit {}; {}; load in process at line rate; emulated "
      "lanes",
      runs->commit, runs->machine);
}

}  // namespace tactus
