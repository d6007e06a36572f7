#include "reproduction/run_figure.h"

#include <fmt/format.h>

#include "base/fnv.h"
#include "experiment/experiment.h"
#include "reproduction/answers.h"
#include "reproduction/fleet_answers.h"
#include "reproduction/grid_figure.h"
#include "reproduction/origin.h"
#include "reproduction/result_file.h"
#include "reproduction/scheduler_answer.h"
#include "workload/csv.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

// What the points of a figure depend on, as the first line of its file.
Expected<std::string> Origin(const Paper& paper, const Figure& figure,
                             const ReproduceOptions& options) {
  std::uint64_t inputs = Fnv1a(BuildCommit());
  if (figure.question == Question::kMinutes) {
    inputs = Fnv1a(fmt::format("{} minutes", options.minutes), inputs);
  }
  if (figure.question == Question::kScheduler) inputs = Fnv1a(FileText(options.scheduler), inputs);
  std::string provenance;
  for (const FigureSeries& series : figure.series) {
    for (const FigurePoint& point : series.points) {
      for (const std::string& setting : point.settings) inputs = Fnv1a(setting, inputs);
      for (const auto& [key, value] : point.with) inputs = Fnv1a(key + "=" + value, inputs);
      if (point.scenario.empty()) continue;  // the settings say all
      if (figure.question == Question::kFleet) {
        const auto hash = HashOfFleet(point, options, inputs);
        if (!hash) return std::unexpected(hash.error());
        inputs = *hash;
        continue;
      }
      const fs::path path = fs::path(options.scenarios) / (point.scenario + ".toml");
      const auto experiment = LoadPoint(point, options);
      if (!experiment) return std::unexpected(experiment.error());
      inputs = Fnv1a(FileText(path) + FileText(experiment->scenario.profile), inputs);
      if (!experiment->scenario.schedule.empty()) {
        inputs = Fnv1a(FileText(experiment->scenario.schedule), inputs);
      }
      if (!point.learnt_from.empty()) {
        inputs =
            Fnv1a(FileText(fs::path(options.scenarios) / (point.learnt_from + ".toml")), inputs);
      }
      if (provenance.empty()) provenance = experiment->profile.provenance;
    }
  }
  if (provenance.empty()) provenance = paper.basis;
  const auto source = SourceOf(paper, figure, options);
  if (!source) return std::unexpected(source.error());
  const bool in_virtual_time = figure.source.empty() && figure.question != Question::kScheduler;
  return in_virtual_time
             ? fmt::format("{} {}; simulated; mean of {} seeds; inputs {:016x}; {}", paper.title,
                           figure.Heading(), options.seeds, inputs, provenance)
             : fmt::format("{} {}; {}; inputs {:016x}", paper.title, figure.Heading(), *source,
                           inputs);
}

std::vector<std::string> Cells(const std::vector<std::string>& columns, const std::string& series,
                               double x, const FigureRow& row) {
  std::vector<std::string> cells = {series, fmt::format("{:g}", x)};
  for (const std::string& column : columns) {
    const auto value = row.find(column);
    cells.push_back(value == row.end() ? "" : fmt::format("{:.6g}", value->second));
  }
  return cells;
}

Status Keep(ResultFile& file, const std::vector<std::string>& columns, const FigureData& answer) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [series, points] : answer) {
    for (const auto& [x, row] : points) rows.push_back(Cells(columns, series, x, row));
  }
  return file.Append(rows);
}

FigureData FoundRows(const std::vector<std::string>& columns, const ResultFile& file) {
  FigureData data;
  for (const auto& cells : file.found()) {
    FigureRow& row = data[cells[0]][ParseNumber(cells[1]).value_or(0)];
    for (std::size_t i = 2; i < cells.size(); ++i) {
      if (const auto value = ParseNumber(cells[i])) row[columns[i - 2]] = *value;
    }
  }
  return data;
}

// Some questions have many rows for one point, whose x is none of them.
bool IsAnswered(const Figure& figure, const FigureData& data, const FigureSeries& series,
                const FigurePoint& point) {
  const auto rows = data.find(series.label);
  if (rows == data.end()) return false;
  switch (figure.question) {
    case Question::kBatchSizes:
    case Question::kQueueingDelay:
    case Question::kTimeline:
    case Question::kDistributions:
    case Question::kMinutes:
      return true;
    case Question::kFleet:
      return point.with.contains("of") || rows->second.contains(point.x);
    default:
      return rows->second.contains(point.x);
  }
}

}  // namespace

Expected<std::string> SourceOf(const Paper& paper, const Figure& figure,
                               const ReproduceOptions& options) {
  if (figure.question == Question::kScheduler) return SchedulerSource(options);
  const int seeds = figure.Seeds(options);
  const std::string many = seeds == 1 ? "one seed" : fmt::format("{} seeds", seeds);
  if (figure.source.empty()) {
    return fmt::format("simulated with {}; {}{}", paper.basis, seeds == 1 ? "" : "mean of ", many);
  }
  constexpr std::string_view kSeeds = "{seeds}";
  std::string source = figure.source;
  if (const std::size_t at = source.find(kSeeds); at != std::string::npos) {
    source.replace(at, kSeeds.size(), many);
  }
  return source;
}

Status RunFigure(const Paper& paper, const Figure& figure, const ReproduceOptions& asked,
                 Progress& progress, std::size_t& done) {
  ReproduceOptions options = asked;
  options.seeds = figure.Seeds(asked);
  const auto origin = Origin(paper, figure, options);
  if (!origin) return std::unexpected(origin.error());
  // Not before its scenarios were read: a command that was called elsewhere leaves no empty folder.
  std::error_code failed;
  fs::create_directories(options.out, failed);
  if (failed) return InvalidArgument(options.out + ": " + failed.message());
  std::vector<std::string> header = {"series", "load"};
  const std::vector<std::string>& columns = figure.columns;
  header.insert(header.end(), columns.begin(), columns.end());
  auto file = ResultFile::Open(fs::path(options.out) / (figure.Stem() + ".csv"), *origin, header,
                               options.fresh || figure.question == Question::kGrid);
  if (!file) return std::unexpected(file.error());
  if (figure.question == Question::kGrid) {
    const auto data = GridAnswer(options);
    return data ? Keep(*file, columns, *data) : std::unexpected(data.error());
  }
  FigureData data = FoundRows(columns, *file);
  for (const FigureSeries& series : figure.series) {
    for (const FigurePoint& point : series.points) {
      progress.Show(done++,
                    fmt::format("{}: {} at {}", figure.Heading(), series.label,
                                point.name.empty() ? fmt::format("{:g}", point.x) : point.name));
      if (IsAnswered(figure, data, series, point)) continue;
      const auto answer = Answer(figure.question, series.label, point, options);
      if (!answer) return std::unexpected(answer.error());
      if (auto kept = Keep(*file, columns, *answer); !kept) return std::unexpected(kept.error());
      for (const auto& [name, rows] : *answer) data[name].insert(rows.begin(), rows.end());
    }
  }
  return {};
}

}  // namespace tactus
