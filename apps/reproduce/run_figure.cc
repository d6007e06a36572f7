#include "reproduce/run_figure.h"

#include <fmt/format.h>

#include "experiment.h"
#include "reproduce/answers.h"
#include "reproduce/origin.h"
#include "reproduce/result_file.h"
#include "workload/csv.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

// What the points of a figure depend on, as the first line of its file.
Expected<std::string> Origin(const Paper& paper, const Figure& figure,
                             const ReproduceOptions& options) {
  std::uint64_t inputs = Hash(BuildCommit());
  if (figure.question == Question::kMinutes) {
    inputs = Hash(fmt::format("{} minutes", options.minutes), inputs);
  }
  std::string provenance;
  for (const FigureSeries& series : figure.series) {
    for (const FigurePoint& point : series.points) {
      for (const std::string& setting : point.settings) inputs = Hash(setting, inputs);
      if (point.scenario.empty()) continue;  // the settings say all
      const fs::path path = fs::path(options.scenarios) / (point.scenario + ".toml");
      const auto experiment = LoadPoint(point, options);
      if (!experiment) return std::unexpected(experiment.error());
      inputs = Hash(FileText(path) + FileText(experiment->scenario.profile), inputs);
      if (!experiment->scenario.schedule.empty()) {
        inputs = Hash(FileText(experiment->scenario.schedule), inputs);
      }
      for (const std::string& setting : point.learnt_settings) inputs = Hash(setting, inputs);
      if (!point.learnt_from.empty()) {
        inputs =
            Hash(FileText(fs::path(options.scenarios) / (point.learnt_from + ".toml")), inputs);
      }
      if (provenance.empty()) provenance = experiment->profile.provenance;
    }
  }
  if (figure.source) {
    const auto source = figure.source(options);
    if (!source) return std::unexpected(source.error());
    return fmt::format("{} {}; {}; inputs {:016x}", paper.title, figure.Heading(), *source, inputs);
  }
  return fmt::format("{} {}; simulated; mean of {} seeds; inputs {:016x}; {}", paper.title,
                     figure.Heading(), options.seeds, inputs, provenance);
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

const std::vector<std::string>& Columns(const Paper& paper, const Figure& figure) {
  return figure.columns.empty() ? paper.columns : figure.columns;
}

Status Keep(ResultFile& file, const std::vector<std::string>& columns, const FigureData& answer) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [series, points] : answer) {
    for (const auto& [x, row] : points) rows.push_back(Cells(columns, series, x, row));
  }
  return file.Append(rows);
}

FigureData Found(const std::vector<std::string>& columns, const ResultFile& file) {
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
  const bool one_row = figure.question == Question::kRun || figure.question == Question::kPeak ||
                       figure.question == Question::kLeastLanes;
  return !one_row || rows->second.contains(point.x);
}

}  // namespace

Expected<FigureData> RunFigure(const Paper& paper, const Figure& figure,
                               const ReproduceOptions& asked, Progress& progress,
                               std::size_t& done) {
  ReproduceOptions options = asked;
  options.seeds = figure.Seeds(asked);
  const auto origin = Origin(paper, figure, options);
  if (!origin) return std::unexpected(origin.error());
  // Not before its scenarios were read: a command that was called elsewhere leaves no empty folder.
  std::error_code failed;
  fs::create_directories(options.out, failed);
  if (failed) return InvalidArgument(options.out + ": " + failed.message());
  std::vector<std::string> header = {"series", "load"};
  const std::vector<std::string>& columns = Columns(paper, figure);
  header.insert(header.end(), columns.begin(), columns.end());
  auto file = ResultFile::Open(fs::path(options.out) / (figure.Stem() + ".csv"), *origin, header,
                               options.fresh || figure.run);
  if (!file) return std::unexpected(file.error());
  if (figure.run) {
    auto data = figure.run(options);
    if (!data) return data;
    if (auto kept = Keep(*file, columns, *data); !kept) return std::unexpected(kept.error());
    return data;
  }
  FigureData data = Found(columns, *file);
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
  return data;
}

}  // namespace tactus
