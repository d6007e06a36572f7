// tactus reproduce: a paper's figures in virtual time, with what the paper claims beside ours.
//
// Resumable: every figure has a CSV file, whose first line says what it was made from; points that
// are in it are not run again. Each run takes milliseconds, so a figure is seconds.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "experiment.h"
#include "metrics/report.h"
#include "progress.h"
#include "reproduce_figures.h"
#include "reproduce_plot.h"
#include "workload/csv.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct ReproduceOptions {
  std::string paper = "edgeserving";
  std::vector<int> figures;
  std::string out = "build/reproduce/edgeserving";
  std::string scenarios = "scenarios/edgeserving";
  std::string json;
  int seeds = 3;
  bool fresh = false;
};

std::uint64_t Fnv1a(std::string_view text, std::uint64_t hash = 14695981039346656037ull) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

std::string Slurp(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What the points of a figure depend on, as the first line of its file.
Expected<std::string> Origin(const Figure& figure, const ReproduceOptions& options) {
  std::uint64_t inputs = Fnv1a(BuildCommit());
  std::string provenance;
  for (const FigureSeries& series : figure.series) {
    const fs::path path = fs::path(options.scenarios) / (series.scenario + ".toml");
    const auto experiment = LoadExperiment(path.string(), series.settings);
    if (!experiment) return std::unexpected(experiment.error());
    inputs = Fnv1a(Slurp(path) + Slurp(experiment->scenario.profile), inputs);
    for (const std::string& setting : series.settings) inputs = Fnv1a(setting, inputs);
    if (provenance.empty()) provenance = experiment->profile.provenance;
  }
  return fmt::format("EdgeServing figure {}; simulated; mean of {} seeds; inputs {:016x}; {}",
                     figure.number, options.seeds, inputs, provenance);
}

FigureData ReadFinished(const fs::path& csv, const std::string& origin) {
  FigureData data;
  const auto table = ReadCsv(csv);
  if (!table || Trim(table->comment) != origin) return data;
  for (const CsvTable::Row& row : table->rows) {
    FigureRow values;
    for (std::size_t i = 2; i < row.cells.size(); ++i) {
      values[table->header[i]] = ParseNumber(row.cells[i]).value_or(0);
    }
    if (values.size() != FigureColumns().size()) continue;  // cut off while it was written
    data[row.cells[0]][ParseNumber(row.cells[1]).value_or(0)] = values;
  }
  return data;
}

std::string CsvLine(const std::string& series, double load, const FigureRow& row) {
  std::string line = fmt::format("{},{:g}", series, load);
  for (const std::string& column : FigureColumns()) line += fmt::format(",{:.6g}", row.at(column));
  return line + "\n";
}

// Rewrites the file with what is known, so that it ends in a whole line.
Status Restart(const fs::path& csv, const std::string& origin, const FigureData& data) {
  std::ofstream file(csv, std::ios::trunc);
  file << "# " << origin << "\nseries,load";
  for (const std::string& column : FigureColumns()) file << "," << column;
  file << "\n";
  for (const auto& [series, rows] : data) {
    for (const auto& [load, row] : rows) file << CsvLine(series, load, row);
  }
  file.close();
  return file ? Status{} : InvalidArgument("cannot write " + csv.string());
}

Expected<FigureRow> RunPoint(const FigureSeries& series, double load,
                             const ReproduceOptions& options) {
  std::vector<std::string> settings = series.settings;
  settings.push_back(fmt::format("rate_rps={}", load * series.rps_per_load));
  const fs::path path = fs::path(options.scenarios) / (series.scenario + ".toml");
  auto experiment = LoadExperiment(path.string(), settings);
  if (!experiment) return std::unexpected(experiment.error());
  std::vector<RunReport> runs;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    experiment->scenario.seed = static_cast<std::uint64_t>(seed);
    auto run = RunSimulated(*experiment);
    if (!run) return std::unexpected(run.error());
    runs.push_back(std::move(*run));
  }
  return ToRow(Average(runs));
}

// All points of one figure, those of an earlier run included.
Expected<FigureData> RunFigure(const Figure& figure, const fs::path& csv, const std::string& origin,
                               const ReproduceOptions& options, Progress& progress,
                               std::size_t& done) {
  FigureData data = options.fresh ? FigureData{} : ReadFinished(csv, origin);
  const auto restarted = Restart(csv, origin, data);
  if (!restarted) return std::unexpected(restarted.error());
  std::ofstream file(csv, std::ios::app);
  for (const FigureSeries& series : figure.series) {
    for (const double load : series.loads) {
      progress.Show(done++,
                    fmt::format("figure {}: {} at {:g}", figure.number, series.label, load));
      if (data[series.label].contains(load)) continue;
      const auto row = RunPoint(series, load, options);
      if (!row) return std::unexpected(row.error());
      data[series.label][load] = *row;
      file << CsvLine(series.label, load, *row) << std::flush;
    }
  }
  return data;
}

std::string Quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return '"' + text + '"';
}

// The claims of all figures that were run: a table for people, and claims.csv.
Status WriteClaims(const std::vector<std::pair<int, Claim>>& claims, const fs::path& path) {
  std::ofstream file(path, std::ios::trunc);
  file << "figure,claim,paper,ours,holds\n";
  for (const auto& [figure, claim] : claims) {
    file << figure << "," << Quoted(claim.what) << "," << Quoted(claim.paper) << ","
         << Quoted(claim.ours) << "," << (claim.holds ? "yes" : "no") << "\n";
    fmt::print("{:>3}  {:<3}  {}\n          paper: {}; ours: {}\n", figure,
               claim.holds ? "yes" : "NO", claim.what, claim.paper, claim.ours);
  }
  file.close();
  return file ? Status{} : InvalidArgument("cannot write " + path.string());
}

std::size_t Points(const std::vector<Figure>& figures) {
  std::size_t points = 0;
  for (const Figure& figure : figures) {
    for (const FigureSeries& series : figure.series) points += series.loads.size();
  }
  return points;
}

Expected<std::vector<Figure>> Chosen(const ReproduceOptions& options) {
  std::vector<Figure> chosen;
  for (Figure& figure : EdgeServingFigures()) {
    const auto& wanted = options.figures;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), figure.number) == wanted.end()) {
      continue;
    }
    chosen.push_back(std::move(figure));
  }
  if (chosen.empty()) return InvalidArgument("--figure: there are figures 4 to 11");
  return chosen;
}

// Every figure's file, picture and claims.
Expected<std::vector<std::pair<int, Claim>>> RunFigures(const std::vector<Figure>& figures,
                                                        const ReproduceOptions& options) {
  std::vector<std::pair<int, Claim>> claims;
  Progress progress(Points(figures));
  std::size_t done = 0;
  for (const Figure& figure : figures) {
    const auto origin = Origin(figure, options);
    if (!origin) return std::unexpected(origin.error());
    const fs::path stem = fs::path(options.out) / fmt::format("fig{:02}", figure.number);
    const auto data = RunFigure(figure, stem.string() + ".csv", *origin, options, progress, done);
    if (!data) return std::unexpected(data.error());
    const std::string note = fmt::format(
        "simulated with a STAND-IN profile (the paper's table is unpublished); mean of {} seeds",
        options.seeds);
    const auto drawn = Draw(PlotScript(figure, *data, stem, note), stem);
    if (!drawn) fmt::print(stderr, "tactus: {}\n", drawn.error().message);
    for (Claim& claim : figure.claims(*data)) claims.emplace_back(figure.number, std::move(claim));
  }
  return claims;
}

int RunReproduce(const ReproduceOptions& options) {
  const auto figures = Chosen(options);
  if (!figures) return ReportBadInput(figures.error());
  std::error_code failed;
  fs::create_directories(options.out, failed);
  if (failed)
    return ReportBadInput({ErrorCode::kInvalidArgument, options.out + ": " + failed.message()});
  const auto claims = RunFigures(*figures, options);
  if (!claims) return ReportBadInput(claims.error());
  fmt::print(
      "EdgeServing's claims; ours are simulated with a STAND-IN profile, as the paper's table "
      "is unpublished.\nfig  holds\n");
  const auto written = WriteClaims(*claims, fs::path(options.out) / "claims.csv");
  if (!written) return ReportBadInput(written.error());
  fmt::print("CSV, SVG and PNG of each figure: {}\n", options.out);
  if (options.json.empty()) return 0;
  Report report;
  for (const auto& [figure, claim] : *claims) {
    report.checks.push_back({fmt::format("figure {}: {}: {}", figure, claim.what, claim.ours),
                             claim.holds ? 1.0 : 0.0, "paper: " + claim.paper, claim.holds});
  }
  const auto json = WriteJson(report, options.json);
  return json ? 0 : ReportBadInput(json.error());
}

}  // namespace

void AddReproduce(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ReproduceOptions>();
  CLI::App* command =
      app.add_subcommand("reproduce", "Run a paper's figures, with its claims beside ours");
  command->add_option("paper", options->paper, "Which paper")
      ->check(CLI::IsMember({"edgeserving"}))
      ->capture_default_str();
  command->add_option("--figure", options->figures, "Figures to make: 4,7 (default: 4 to 11)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--out", options->out, "Directory for CSV, SVG and PNG")
      ->capture_default_str();
  command->add_option("--scenarios", options->scenarios, "Directory of the scenario files")
      ->capture_default_str();
  command->add_option("--seeds", options->seeds, "Seeds to average over, 1 to N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--fresh", options->fresh, "Run every point again");
  command->add_option("--json", options->json, "Write the claims as checks to this file");
  command->callback([options, &context] { context.exit_code = RunReproduce(*options); });
}

}  // namespace tactus
