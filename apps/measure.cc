// tactus measure: one scenario in real time, on real engines, in one process.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error_line.h"
#include "base/written_file.h"
#include "check/doubts.h"
#include "commands.h"
#include "engines/registry.h"
#include "experiment/experiment.h"
#include "measurement/measurement.h"
#include "output_file.h"
#include "platform/cpu_affinity.h"
#include "policies/registry.h"
#include "profiling/machine.h"
#include "workload/profile_file.h"

namespace tactus {
namespace {

struct MeasureCommand {
  std::string scenario;
  std::string policy;
  std::vector<std::string> settings;
  std::optional<std::uint64_t> seed;
  std::string profile;
  std::string json;
  std::string overheads;
  std::string predictions;
  bool wide = false;
  bool no_pin = false;
  MeasureOptions options;
};

void PrintOverheads(const Measurement& measured) {
  const auto print = [](const char* what, const Spread& spread) {
    fmt::print("{:<16} mean {:.4f} ms, P50 {:.4f} ms, P95 {:.4f} ms, P99 {:.4f} ms\n", what,
               ToMillis(spread.mean), ToMillis(spread.p50), ToMillis(spread.p95),
               ToMillis(spread.p99));
  };
  fmt::print("\n");
  print("launch_overhead", measured.launch);
  print("finish_overhead", measured.finish);
  print("answer_overhead", measured.answer);
  print("late arrivals", measured.late);
  for (std::size_t m = 0; m < measured.service_ratio.size(); ++m) {
    fmt::print("A batch of {} takes {:.3f} of its profiled mean.\n", measured.result.models[m].name,
               measured.service_ratio[m]);
  }
}

// Both sides of a comparison would be wrong: the policy's predictions, and the simulation.
void WarnOfTheMachine(const Experiment& experiment, const Measurement& measured) {
  if (measured.emulated) return;
  const Scenario& scenario = experiment.scenario;
  const auto cores = static_cast<int>(AllowedCores().size());
  if (const auto doubt = CoresDoubt(scenario.lanes * scenario.slots, cores)) {
    PrintWarning(*doubt);
  }
  const std::string difference =
      MachineDifference(experiment.profile, ThisMachine(measured.engine));
  if (difference.empty()) return;
  PrintWarning(difference +
               ": the latencies that policies counted on may be wrong here. "
               "Measure with `tactus profile`");
}

// A row for each batch that had neighbours, in the order of their ends: how many times longer than
// alone its kernels were expected to take, and took.
Status WritePredictions(const Measurement& measured, const std::string& path) {
  std::string text = "predicted,measured\n";
  for (const auto& p : measured.predictions) {
    text += fmt::format("{:.4f},{:.4f}\n", p.predicted, p.actual);
  }
  const auto rows = static_cast<std::int64_t>(measured.predictions.size());
  if (const std::int64_t lost = measured.prediction->batches - rows; lost > 0) {
    PrintWarning(fmt::format("{}: the machine was too busy to write down {} of {} predictions",
                             path, lost, measured.prediction->batches));
  }
  return WriteFileText(text, path, "predictions");
}

// Before a run whose predictions are asked for.
Status CheckPredicts(const std::string& policy) {
  const auto made = MakePolicy(policy);
  if (!made) return std::unexpected(made.error());
  if (PredictionErrorsOf(**made) != nullptr) return {};
  return InvalidArgument(
      fmt::format("--predictions: policy '{}' predicts nothing; take --policy strait", policy));
}

int RunMeasure(const MeasureCommand& command) {
  std::vector<std::string> settings = command.settings;
  if (!command.policy.empty()) settings.push_back("policy=" + command.policy);
  if (!command.profile.empty()) settings.push_back("profile=" + command.profile);
  if (command.seed) settings.push_back(fmt::format("seed={}", *command.seed));
  const auto experiment = LoadExperiment(
      command.scenario, settings,
      {command.json, command.predictions, command.options.journal, command.options.save_predictor});
  if (!experiment) return ReportBadInput(experiment.error());
  if (!experiment->chosen_lanes.empty()) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           "[lanes] count = \"auto\" is for simulation, where a machine is "
                           "stated; state a number, or --set lanes.count=1"});
  }
  if (!command.predictions.empty()) {
    const Status predicts = CheckPredicts(experiment->scenario.policy);
    if (!predicts) return ReportBadInput(predicts.error());
  }
  MeasureOptions options = command.options;
  options.pin = !command.no_pin;
  const auto measured = Measure(*experiment, options);
  if (!measured) return ReportBadInput(measured.error());
  WarnOfTheMachine(*experiment, *measured);
  RunReport report = MakeReport(experiment->scenario, experiment->profile, measured->result);
  report.source = fmt::format("measured on {}{}", measured->engine,
                              measured->emulated ? ", which is emulated" : "");
  report.prediction = measured->prediction;
  const std::vector<RunReport> runs = {report};
  fmt::print("{}{}{}\n{}", Heading(report),
             ScenarioDoubts(experiment->scenario, experiment->profile),
             PolicyDoubts(*experiment, experiment->scenario.policy), ToTable(runs, command.wide));
  PrintOverheads(*measured);
  if (!measured->journal_complete) {
    PrintError("the disk was too slow for the journal: it holds a beginning only");
  }
  if (!command.overheads.empty()) {
    const auto written = SaveProfile(WithOverheads(*experiment, *measured), command.overheads);
    if (!written) return ReportBadInput(written.error());
  }
  if (!command.predictions.empty()) {
    const auto written = WritePredictions(*measured, command.predictions);
    if (!written) return ReportBadInput(written.error());
  }
  if (command.json.empty()) return 0;
  const auto written = WriteJson({runs, {}}, command.json);
  return written ? 0 : ReportBadInput(written.error());
}

}  // namespace

void AddMeasure(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<MeasureCommand>();
  CLI::App* sub = app.add_subcommand("measure", "Run a scenario in real time on real engines");
  AddOption(*sub, "scenario", command->scenario, ReadFile(), "Scenario file (TOML)")->required();
  sub->add_option("--models", command->options.models, "Folder of the models");
  sub->add_option("--engine", command->options.engine,
                  "Engine instead of the models' own: " + EngineNames());
  sub->add_option("--onnxruntime", command->options.onnxruntime_library,
                  "libonnxruntime.so or its folder");
  AddOption(*sub, "--profile", command->profile, ReadFile(), "Profile instead of the scenario's");
  sub->add_option("--policy", command->policy, "Policy instead of the scenario's");
  sub->add_option("--set", command->settings, "Change a key: rate_rps=200, models.*.slo_ms=20")
      ->option_text(kSettings)
      ->allow_extra_args(false);
  AddOption(*sub, "--seed", command->seed, SeedRange(), "Seed instead of the scenario's");
  AddOption(*sub, "--json", command->json, WritableFile(), "Write the report to this file");
  AddOption(*sub, "--journal", command->options.journal, WritableFile(),
            "Write every event and decision to this file, for `tactus replay`");
  AddOption(*sub, "--predictor", command->options.predictor, ReadFile(),
            "Start from what the policy learnt in an earlier run (strait)");
  AddOption(*sub, "--save-predictor", command->options.save_predictor, WritableFile(),
            "Write what the policy has learnt by the end to this file (strait)");
  AddOption(*sub, "--write-overheads", command->overheads, WritableFile(),
            "Write the profile with the measured overheads and service ratios to this file");
  AddOption(*sub, "--predictions", command->predictions, WritableFile(),
            "Write the predicted and the measured slowdown of each batch that had neighbours "
            "to this file (CSV); for policies that predict it");
  sub->add_flag("--no-pin", command->no_pin, "Do not pin lanes to cores");
  sub->add_flag("--wide", command->wide, "Show every model, and how requests ended");
  sub->callback([command, &context] { context.exit_code = RunMeasure(*command); });
}

}  // namespace tactus
