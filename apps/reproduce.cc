// tactus reproduce: a paper's figures in virtual time, with what the paper claims beside ours.
//
// figures/PAPER says what is run, drawn and claimed: this runs it, figures/figures.py draws it.
// Resumable: every figure has a CSV file, whose first line says what it was made from; points that
// are in it are not run again.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error_line.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "experiment/progress.h"
#include "output_file.h"
#include "reproduction/figure_file.h"
#include "reproduction/run_figure.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct Command {
  std::string paper = "edgeserving";
  std::string folder = "figures";
  std::vector<std::string> figures;
  ReproduceOptions options;
  std::string json;
};

// What must be given before the figure can be made, with the remedy; empty: all is there.
std::string Lacking(const Figure& figure, const ReproduceOptions& options) {
  if (figure.question != Question::kScheduler || !options.scheduler.empty()) return "";
  return "it is measured, not simulated; run ./run bench scheduler --json FILE and give "
         "--scheduler FILE";
}

// What figures.py needs to know of a figure that was made, beside its file.
nlohmann::json Made(const Figure& figure, const std::string& source) {
  nlohmann::json series = nlohmann::json::array();
  for (const FigureSeries& each : figure.series) {
    nlohmann::json points = nlohmann::json::array();
    for (const FigurePoint& point : each.points) points.push_back({point.x, point.name});
    series.push_back({{"label", each.label}, {"points", points}});
  }
  return {{"id", figure.id},
          {"heading", figure.Heading()},
          {"stem", figure.Stem()},
          {"source", source},
          {"series", series}};
}

// Every figure's file; and what they are, for figures.py.
Expected<nlohmann::json> RunFigures(const Paper& paper, const ReproduceOptions& options) {
  std::size_t points = 0;
  for (const Figure& figure : paper.figures) {
    for (const FigureSeries& series : figure.series) points += series.points.size();
  }
  nlohmann::json made = nlohmann::json::array();
  Progress progress(std::max<std::size_t>(1, points));
  std::size_t done = 0;
  for (const Figure& figure : paper.figures) {
    if (const std::string lacking = Lacking(figure, options); !lacking.empty()) {
      if (paper.figures.size() == 1) return InvalidArgument(figure.Heading() + ": " + lacking);
      PrintError(fmt::format("{} is left out: {}", figure.Heading(), lacking));
      continue;
    }
    const auto run = RunFigure(paper, figure, options, progress, done);
    if (!run) return std::unexpected(run.error());
    const auto source = SourceOf(paper, figure, options);
    if (!source) return std::unexpected(source.error());
    made.push_back(Made(figure, *source));
  }
  return made;
}

// Runs a program of the PATH and waits for it; its exit status, or -1.
int RunProgram(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(stdout);
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
    return -1;
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Pictures and claims of the figures in `out`.
Status DrawAndClaim(const Command& command, const ReproduceOptions& options) {
  const fs::path folder = command.folder;
  std::vector<std::string> words = {"python3", "-B", (folder / "figures.py").string(),
                                    (folder / command.paper).string(), options.out};
  if (!command.json.empty()) words.push_back(command.json);
  if (RunProgram(std::move(words)) == 0) return {};
  return Fail(ErrorCode::kUnavailable, "python3 " + (folder / "figures.py").string() +
                                           " did not draw the figures; its message is above. "
                                           "The CSV files in " +
                                           options.out + " are complete");
}

int RunReproduce(const Command& command) {
  ReproduceOptions options = command.options;
  if (options.out.empty()) options.out = "build/reproduce/" + command.paper;
  if (options.scenarios.empty()) options.scenarios = "scenarios/" + command.paper;
  const auto paper = LoadPaper(fs::path(command.folder) / command.paper, command.figures);
  if (!paper) return ReportBadInput(paper.error());
  const auto made = RunFigures(*paper, options);
  if (!made) return ReportBadInput(made.error());
  const fs::path list = fs::path(options.out) / "made.json";
  std::ofstream file(list, std::ios::trunc);
  file << made->dump(1) << "\n";
  file.close();
  if (!file) return ReportBadInput({ErrorCode::kInvalidArgument, "cannot write " + list.string()});
  const auto drawn = DrawAndClaim(command, options);
  return drawn ? 0 : ReportBadInput(drawn.error());
}

}  // namespace

void AddReproduce(CLI::App& app, CommandContext& context) {
  auto made = std::make_shared<Command>();
  ReproduceOptions& options = made->options;
  options.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App* command = app.add_subcommand(
      "reproduce", "Make a paper's figures, and compare its claims with our results");
  command->add_option("paper", made->paper, "Which paper: a folder of --figures")
      ->capture_default_str();
  command
      ->add_option("--figure", made->figures,
                   "Figures and tables to make: 4,7 or table2 (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option(
          "--figures", made->folder,
          "Directory with a folder for each paper, which says what its figures run and draw")
      ->capture_default_str();
  command->add_option("--out", options.out,
                      "Directory for CSV, SVG and PNG (default: build/reproduce/PAPER)");
  command->add_option("--scenarios", options.scenarios,
                      "Directory of the scenario files (default: scenarios/PAPER)");
  command->add_option("--seeds", options.seeds, "How many seeds to average over, from seed 1")
      ->check(SeedCount())
      ->capture_default_str();
  command->add_option("--jobs", options.jobs, "Threads for Symphony's Figure 7")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option(
          "--cells", options.cells,
          "How many of the 7,602 workloads of Symphony's Figure 7 to run, evenly spread; 0: all")
      ->capture_default_str();
  command->add_option("--minutes", options.minutes, "Minutes of Strait's five-hour trace")
      ->check(CLI::Range(1, 300))
      ->capture_default_str();
  command
      ->add_option("--scheduler", options.scheduler,
                   "File of `./run bench scheduler --json`, for Symphony's Figure 13-left")
      ->check(ReadFile());
  command->add_flag("--fresh", options.fresh,
                    "Run every point again, also those that are in the CSV files already");
  command->add_option("--json", made->json, "Write the claims as checks to this file")
      ->check(WritableFile());
  command->callback([made, &context] { context.exit_code = RunReproduce(*made); });
}

}  // namespace tactus
