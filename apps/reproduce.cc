// tactus reproduce: a paper's figures in virtual time, with what the paper claims beside ours.
//
// Resumable: every figure has a CSV file, whose first line says what it was made from; points that
// are in it are not run again.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "experiment.h"
#include "metrics/report.h"
#include "output_file.h"
#include "progress.h"
#include "reproduce/figure.h"
#include "reproduce/plot.h"
#include "reproduce/run_figure.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct Command {
  std::string paper = "edgeserving";
  std::vector<std::string> figures;
  ReproduceOptions options;
  std::string json;
};

struct FigureClaim {
  std::string id;
  std::string heading;
  Claim claim;
};

std::vector<Paper> Papers() {
  return {EdgeServingPaper(), SymphonyPaper(), StraitPaper(), GpuletsPaper()};
}

std::string Quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return '"' + text + '"';
}

void PrintClaims(const std::vector<FigureClaim>& claims) {
  for (const auto& [id, heading, claim] : claims) {
    fmt::print("{:>3}  {:<3}  {}\n          {}; ours: {}\n", id, claim.holds ? "yes" : "NO",
               claim.what, claim.bar.empty() ? "paper: " + claim.paper : "bar: " + claim.bar,
               claim.ours);
  }
}

// Into claims.csv, in place of what it held of the figures `made`.
Status WriteClaims(const std::vector<FigureClaim>& claims, const std::vector<std::string>& made,
                   const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream earlier(path);
  std::string line;
  std::getline(earlier, line);  // the header
  while (std::getline(earlier, line)) {
    const bool again = std::ranges::any_of(
        made, [&](const std::string& id) { return line.starts_with(id + ","); });
    if (!again) lines.push_back(line);
  }
  for (const auto& [id, heading, claim] : claims) {
    lines.push_back(id + "," + Quoted(claim.what) + "," + Quoted(claim.paper) + "," +
                    Quoted(claim.ours) + "," + (claim.holds ? "yes" : "no"));
  }
  std::ofstream file(path, std::ios::trunc);
  file << "figure,claim,paper,ours,holds\n";
  for (const std::string& each : lines) file << each << "\n";
  file.close();
  return file ? Status{} : InvalidArgument("cannot write " + path.string());
}

std::size_t Points(const std::vector<Figure>& figures) {
  std::size_t points = 0;
  for (const Figure& figure : figures) {
    for (const FigureSeries& series : figure.series) points += series.points.size();
  }
  return points;
}

Status Choose(Paper& paper, const std::vector<std::string>& wanted) {
  std::string known;
  for (const Figure& figure : paper.figures) known += (known.empty() ? "" : ", ") + figure.id;
  for (const std::string& id : wanted) {
    const bool found = std::any_of(paper.figures.begin(), paper.figures.end(),
                                   [&](const Figure& figure) { return figure.id == id; });
    if (!found) {
      return InvalidArgument(fmt::format("--figure {}: {} has {} here", id, paper.title, known));
    }
  }
  std::erase_if(paper.figures, [&](const Figure& figure) {
    return !wanted.empty() && std::find(wanted.begin(), wanted.end(), figure.id) == wanted.end();
  });
  return {};
}

// Under a figure's title: what its data was made from.
Expected<std::string> SourceOf(const Paper& paper, const Figure& figure,
                               const ReproduceOptions& options) {
  if (figure.source) return figure.source(options);
  const int seeds = figure.Seeds(options);
  return fmt::format("simulated with {}; {}", paper.basis,
                     seeds == 1 ? "one seed" : fmt::format("mean of {} seeds", seeds));
}

std::string Lacking(const Figure& figure, const ReproduceOptions& options) {
  return figure.lacks ? figure.lacks(options) : "";
}

// Every figure's file, picture and claims.
Expected<std::vector<FigureClaim>> RunFigures(const Paper& paper, const ReproduceOptions& options) {
  std::vector<FigureClaim> claims;
  Progress progress(std::max<std::size_t>(1, Points(paper.figures)));
  std::size_t done = 0;
  for (const Figure& figure : paper.figures) {
    if (const std::string lacking = Lacking(figure, options); !lacking.empty()) {
      if (paper.figures.size() == 1) return InvalidArgument(figure.Heading() + ": " + lacking);
      fmt::print(stderr, "tactus: {} is left out: {}\n", figure.Heading(), lacking);
      continue;
    }
    const auto data = RunFigure(paper, figure, options, progress, done);
    if (!data) return std::unexpected(data.error());
    const fs::path stem = fs::path(options.out) / figure.Stem();
    const auto source = SourceOf(paper, figure, options);
    if (!source) return std::unexpected(source.error());
    const auto drawn = Draw(PlotScript(paper, figure, *data, stem, *source), stem);
    if (!drawn) fmt::print(stderr, "tactus: {}\n", drawn.error().message);
    if (!figure.claims) continue;
    for (Claim& claim : figure.claims(*data)) {
      claims.push_back({figure.id, figure.Heading(), std::move(claim)});
    }
  }
  return claims;
}

Check ToCheck(const FigureClaim& of) {
  const auto& [id, heading, claim] = of;
  if (claim.value) return {heading + ": " + claim.what, *claim.value, claim.bar, claim.holds};
  return {fmt::format("{}: {}: {}", heading, claim.what, claim.ours), claim.holds ? 1.0 : 0.0,
          "paper: " + claim.paper, claim.holds};
}

int RunReproduce(const Command& command) {
  ReproduceOptions options = command.options;
  if (options.out.empty()) options.out = "build/reproduce/" + command.paper;
  if (options.scenarios.empty()) options.scenarios = "scenarios/" + command.paper;
  std::vector<Paper> papers = Papers();
  Paper& paper = *std::find_if(papers.begin(), papers.end(),
                               [&](const Paper& p) { return p.key == command.paper; });
  if (auto chosen = Choose(paper, command.figures); !chosen) return ReportBadInput(chosen.error());
  const auto claims = RunFigures(paper, options);
  if (!claims) return ReportBadInput(claims.error());
  fmt::print(
      "{}'s claims; ours are simulated with {}, unless the figure says otherwise.\n"
      "yes: the paper's effect shows here too, in its direction; how large stands beside it\n"
      "fig  holds\n",
      paper.title, paper.basis);
  PrintClaims(*claims);
  std::vector<std::string> made;
  for (const Figure& figure : paper.figures) {
    if (Lacking(figure, options).empty()) made.push_back(figure.id);
  }
  const auto written = WriteClaims(*claims, made, fs::path(options.out) / "claims.csv");
  if (!written) return ReportBadInput(written.error());
  fmt::print("CSV, SVG and PNG of each figure: {}\n", options.out);
  if (command.json.empty()) return 0;
  Report report;
  for (const FigureClaim& claim : *claims) report.checks.push_back(ToCheck(claim));
  const auto json = WriteJson(report, command.json);
  return json ? 0 : ReportBadInput(json.error());
}

}  // namespace

void AddReproduce(CLI::App& app, CommandContext& context) {
  auto made = std::make_shared<Command>();
  ReproduceOptions& options = made->options;
  options.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::string> keys;
  for (const Paper& paper : Papers()) keys.push_back(paper.key);
  CLI::App* command =
      app.add_subcommand("reproduce", "Run a paper's figures, with its claims beside ours");
  command->add_option("paper", made->paper, "Which paper")
      ->check(CLI::IsMember(keys))
      ->capture_default_str();
  command
      ->add_option("--figure", made->figures,
                   "Figures and tables to make: 4,7 or table2 (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--out", options.out,
                      "Directory for CSV, SVG and PNG (default: build/reproduce/PAPER)");
  command->add_option("--scenarios", options.scenarios,
                      "Directory of the scenario files (default: scenarios/PAPER)");
  command->add_option("--seeds", options.seeds, "Seeds to average over, 1 to N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--jobs", options.jobs, "Threads for Symphony's Figure 7")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--cells", options.cells,
                   "Workloads of Figure 7, spread over all 7,602; 0 for all")
      ->capture_default_str();
  command->add_option("--minutes", options.minutes, "Minutes of Strait's five-hour trace")
      ->check(CLI::Range(1, 300))
      ->capture_default_str();
  command
      ->add_option("--scheduler", options.scheduler,
                   "What ./run bench scheduler --json wrote: for Symphony's Figure 13-left")
      ->check(ReadFile());
  command->add_flag("--fresh", options.fresh, "Run every point again");
  command->add_option("--json", made->json, "Write the claims as checks to this file")
      ->check(WritableFile());
  command->callback([made, &context] { context.exit_code = RunReproduce(*made); });
}

}  // namespace tactus
