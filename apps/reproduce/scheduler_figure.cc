#include "reproduce/scheduler_figure.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "workload/csv.h"
#include "workload/json_reader.h"

namespace tactus {
namespace {

constexpr std::array kModels = {1, 35, 2048};
constexpr std::array kLanes = {8, 512, 4096};
constexpr std::array kThreads = {1, 2};

// What the benchmark's file says of a run at line rate: of a size of which it has several, of each.
struct SchedulerRun {
  double models = 0;
  double lanes = 0;
  double shards = 0;
  FigureRow row;
};

struct SchedulerRuns {
  std::vector<SchedulerRun> at_line_rate;
  std::string commit;
  std::string machine;
};

std::string Series(int threads) {
  return threads == 1 ? "1 model thread" : fmt::format("{} model threads", threads);
}

// The place of a size in the figure.
double PlaceOf(std::size_t models, std::size_t lanes) {
  return static_cast<double>(1 + models * kLanes.size() + lanes);
}

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
      SchedulerRun& run = runs.at_line_rate.emplace_back();
      run.models = Setting(settings, "models");
      run.lanes = Setting(settings, "lanes");
      run.shards = Setting(settings, "shards");
      const double dispatched = Setting(settings, "dispatched_per_second") / 1e6;
      const double dropped = Setting(settings, "dropped_per_second") / 1e6;
      const double per_cpu_second = Setting(settings, "requests_per_cpu_second") / 1e6;
      const double taken = std::max(dispatched + dropped, 1e-9);
      run.row = {{"models", run.models},
                 {"lanes", run.lanes},
                 {"dispatched_m", dispatched},
                 {"dropped_m", dropped},
                 {"dispatched_per_cpu_second_m", per_cpu_second * dispatched / taken},
                 {"taken_per_cpu_second_m", per_cpu_second},
                 {"lateness_p50_us", Setting(settings, "lateness_p50_us")},
                 {"lateness_p99_us", Setting(settings, "lateness_p99_us")}};
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

Expected<FigureData> Read(const ReproduceOptions& options) {
  const auto runs = Load(options.scheduler);
  if (!runs) return std::unexpected(runs.error());
  FigureData data;
  for (const int threads : kThreads) {
    auto& of_series = data[Series(threads)];
    for (std::size_t m = 0; m < kModels.size(); ++m) {
      for (std::size_t l = 0; l < kLanes.size(); ++l) {
        std::vector<FigureRow> rows;
        for (const SchedulerRun& run : runs->at_line_rate) {
          if (run.models == kModels[m] && run.lanes == kLanes[l] && run.shards == threads) {
            rows.push_back(run.row);
          }
        }
        if (!rows.empty()) of_series[PlaceOf(m, l)] = Medians(rows);
      }
    }
  }
  return data;
}

std::vector<Claim> SchedulerClaims(const FigureData& data) {
  const auto at = [&](int threads, std::size_t models, std::size_t lanes, const char* column) {
    const auto& rows = data.at(Series(threads));
    const auto row = rows.find(PlaceOf(models, lanes));
    return row == rows.end() ? 0 : row->second.at(column);
  };
  constexpr std::size_t kZoo = 1;   // 35 models
  constexpr std::size_t kMid = 1;   // 512 lanes
  constexpr std::size_t kMany = 2;  // 4096
  const auto times = [](double over, double under) { return under > 0 ? over / under : 0; };
  const double per_cpu = at(1, kZoo, kMid, "dispatched_per_cpu_second_m");
  const double lanes = times(at(1, kZoo, kMany, "dispatched_per_cpu_second_m"), per_cpu);
  const double threads =
      times(at(2, kZoo, kMid, "dispatched_m"), at(1, kZoo, kMid, "dispatched_m"));
  const double work = times(at(2, kZoo, kMid, "dispatched_per_cpu_second_m"),
                            at(1, kZoo, kMid, "dispatched_per_cpu_second_m"));
  return {{"35 models, 512 lanes: M dispatched a second of processor time", "not stated",
           fmt::format("{:.1f}", per_cpu), per_cpu >= 5, per_cpu, ">= 5"},
          {"4096 lanes over 512, dispatched a second of processor time",
           "adding more GPUs does not affect it", fmt::format("{:.2f} x", lanes), lanes >= 0.8},
          {"two model threads over one, dispatched a second of processor time",
           "no information exchange", fmt::format("{:.2f} x", work), work >= 0.8},
          {"two model threads over one, dispatched a second", "linear in the threads",
           fmt::format("{:.2f} x", threads), threads >= 1.8}};
}

FigurePanel Bars(const char* column, const char* label) {
  FigurePanel panel;
  panel.y = column;
  panel.y_label = label;
  panel.x_label = "models x lanes (one model has one thread)";
  panel.bars = true;
  return panel;
}

}  // namespace

Figure SchedulerFigure() {
  Figure figure;
  figure.id = "13-left";
  figure.title = "what the scheduler takes, by model threads and lanes";
  for (const int threads : kThreads) {
    FigureSeries& series = figure.series.emplace_back();
    series.label = Series(threads);
    for (std::size_t m = 0; m < kModels.size(); ++m) {
      for (std::size_t l = 0; l < kLanes.size(); ++l) {
        FigurePoint& point = series.points.emplace_back();
        point.x = PlaceOf(m, l);
        point.name = fmt::format("{} x {}", kModels[m], kLanes[l]);
      }
    }
  }
  figure.panels = {Bars("dispatched_m", "dispatched (M requests/s)"),
                   Bars("dispatched_per_cpu_second_m", "dispatched (M a CPU-second)"),
                   Bars("lateness_p99_us", "lateness of dispatch, P99 (us)")};
  figure.panels_in_row = 1;
  figure.claims = SchedulerClaims;
  figure.run = Read;
  figure.lacks = [](const ReproduceOptions& options) {
    return options.scheduler.empty()
               ? "it is measured, not simulated; run ./run bench scheduler --json FILE and give "
                 "--scheduler FILE"
               : "";
  };
  figure.source = [](const ReproduceOptions& options) -> Expected<std::string> {
    const auto runs = Load(options.scheduler);
    if (!runs) return std::unexpected(runs.error());
    return fmt::format(
        "measured by ./run bench scheduler at commit {}; {}; load in process at line "
        "rate; emulated lanes",
        runs->commit, runs->machine);
  };
  figure.columns = {"models",
                    "lanes",
                    "dispatched_m",
                    "dropped_m",
                    "dispatched_per_cpu_second_m",
                    "taken_per_cpu_second_m",
                    "lateness_p50_us",
                    "lateness_p99_us",
                    "runs"};
  return figure;
}

}  // namespace tactus
