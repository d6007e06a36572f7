// tactus check: what is doubtful about a scenario, or about what a server would serve; nothing
// runs.
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "check/doubts.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "experiment/progress.h"
#include "output_file.h"
#include "policies/registry.h"
#include "sim/simulation.h"
#include "workload/arrivals.h"
#include "workload/pipelines.h"
#ifdef TACTUS_SERVER
#include "serve_options.h"
#include "serving/check_serving.h"
#include "serving/runtime_options.h"
#endif

namespace tactus {
namespace {

struct CheckOptions {
  std::string scenario;
  std::vector<std::string> settings;
#ifdef TACTUS_SERVER
  ServeOptions serve;
#endif
};

int Conclude(bool doubtful) {
  if (!doubtful) fmt::print("nothing is doubtful\n");
  return doubtful ? 1 : 0;
}

// What a run would refuse before its first event.
Status CheckInputs(const Experiment& experiment) {
  const Scenario& scenario = experiment.scenario;
  if (const auto policy = MakePolicy(scenario.policy); !policy) {
    return std::unexpected(policy.error());
  }
  const auto served_models = MakeServedModels(scenario, experiment.profile, experiment.on_share);
  if (!served_models) return std::unexpected(served_models.error());
  const auto arrivals = MakeArrivals(scenario, kStart + FromSeconds(scenario.duration_s));
  if (!arrivals) return std::unexpected(arrivals.error());
  const auto selected = SelectProfile(scenario, experiment.profile);
  if (!selected) return std::unexpected(selected.error());
  const auto pipelines = MakePipelines(scenario, *selected);
  if (!pipelines) return std::unexpected(pipelines.error());
  return {};
}

int RunCheckScenario(const std::string& path, const std::vector<std::string>& settings) {
  const auto experiment = LoadExperiment(path, settings);
  if (!experiment) return ReportBadInput(experiment.error());
  if (const Status read = CheckInputs(*experiment); !read) return ReportBadInput(read.error());
  const Scenario& scenario = experiment->scenario;
  std::string text =
      ScenarioDoubts(scenario, experiment->profile) + PolicyDoubts(*experiment, scenario.policy);
  if (const auto doubt = MemoryDoubt(scenario, experiment->profile)) text += *doubt + "\n";
  fmt::print("{}", text);
  return Conclude(!text.empty());
}

#ifdef TACTUS_SERVER
// An option of the server says nothing about a scenario: it must not look as if it were judged.
Status RefuseServerOptions(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "scenario" || name == "--set") continue;
    return InvalidArgument(
        name +
        ": belongs to a server, and a scenario is checked here; change the scenario with "
        "--set (--set policy=symphony, --set lanes.count=2), or check a server with "
        "--models");
  }
  return {};
}

Status RefuseFolder(const std::string& scenario) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(scenario, ignored)) return {};
  return InvalidArgument(fmt::format(
      "{}: is a folder, and a scenario is a file, such as scenarios/three-resnets.toml; to check "
      "the models in a repository, write `tactus check --models {}`",
      scenario, scenario));
}

int RunCheckModels(const ServeOptions& options) {
  if (const Status fit = CheckModels(options); !fit) return ReportBadInput(fit.error());
  std::optional<Progress> progress;
  const auto found = CheckServing(
      options, [&progress](std::size_t done, std::size_t all, const std::string& model) {
        if (!progress) progress.emplace(all, std::chrono::seconds(5));
        progress->Show(done, model);
      });
  progress.reset();
  if (!found) return ReportBadInput(found.error());
  for (const std::string& line : found->doubts) fmt::print("doubtful: {}\n", line);
  for (const std::string& line : found->refused) fmt::print("refused: {}\n", line);
  for (const std::string& line : found->notes) fmt::print("note: {}\n", line);
  return Conclude(!found->doubts.empty() || !found->refused.empty());
}
#endif

}  // namespace

void AddCheck(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      app.add_subcommand("check", "Warn about doubtful settings of a scenario, or of a server");
  command->footer(
      "`check SCENARIO` takes --set and no other option. `check --models` takes the options of "
      "`tactus serve` and judges what a server started with them would serve; it opens the graphs "
      "and tries them for a second each (with --device on the processor), listens on no port and "
      "writes no file.\n"
      "Exit code: 0 no warning (a note, as of a model without a profile, is none), 1 warnings, 2 "
      "it would not start.");
  CLI::Option* scenario =
      command->add_option("scenario", options->scenario, "Scenario file (TOML)")->check(ReadFile());
  command
      ->add_option("--set", options->settings,
                   "Change a key of the scenario: policy=symphony, models.*.slo_ms=20")
      ->option_text(kSettings)
      ->allow_extra_args(false)
      ->needs(scenario);
#ifdef TACTUS_SERVER
  Declare(options->serve, *command);
  CLI::Option* models = command->get_option("--models")->required(false)->excludes(scenario);
  command->callback([options, command, scenario, models, &context] {
    if (models->count() > 0) {
      context.exit_code = RunCheckModels(options->serve);
    } else if (scenario->count() > 0) {
      Status fit = RefuseFolder(options->scenario);
      if (fit) fit = RefuseServerOptions(*command);
      if (!fit) {
        context.exit_code = ReportBadInput(fit.error());
        return;
      }
      context.exit_code = RunCheckScenario(options->scenario, options->settings);
    } else {
      throw CLI::RequiredError("scenario or --models");
    }
  });
#else
  scenario->required();
  command->callback([options, &context] {
    context.exit_code = RunCheckScenario(options->scenario, options->settings);
  });
#endif
}

}  // namespace tactus
