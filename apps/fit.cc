// tactus fit: models of what was measured.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/written_file.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "metrics/text_table.h"
#include "output_file.h"
#include "sim/devices/interference_pairs.h"
#include "sim/world/simulated_pairs.h"

namespace tactus {
namespace {

struct FitOptions {
  std::string pairs;                  // a table of them, or a scenario
  std::vector<std::string> settings;  // of the scenario
  bool by_side = false;
  std::string json;
  // Neither: what the file holds out, if it says so.
  std::optional<double> held_out;
  std::optional<std::uint64_t> seed;
};

struct HeldOut {
  SplitSamples samples;
  std::string how;
};

bool IsScenario(const FitOptions& options) { return options.pairs.ends_with(".toml"); }

Expected<InterferencePairs> LoadPairs(const FitOptions& options) {
  if (!IsScenario(options)) {
    if (options.settings.empty()) return LoadInterferencePairs(options.pairs);
    return InvalidArgument("--set is for scenarios, and " + options.pairs + " is none");
  }
  const auto experiment = LoadExperiment(options.pairs, options.settings, {options.json});
  if (!experiment) return std::unexpected(experiment.error());
  auto samples = SimulatedPairs(experiment->scenario, experiment->profile);
  if (!samples) return std::unexpected(samples.error());
  return InterferencePairs{.samples = *std::move(samples), .held_out = {}};
}

Expected<HeldOut> HoldOut(const InterferencePairs& pairs, const FitOptions& options) {
  constexpr double kPart = 0.3;  // as in the paper
  if (pairs.held_out.empty() || options.held_out || options.seed || options.by_side) {
    const std::uint64_t seed = options.seed.value_or(1);
    const double part = options.held_out.value_or(kPart);
    return HeldOut{
        options.by_side ? Split(pairs.samples, part, seed) : SplitByPair(pairs.samples, part, seed),
        fmt::format("drawn by {}, seed {}", options.by_side ? "sides" : "pairs", seed)};
  }
  HeldOut held_out{SplitAsTold(pairs), "as the file says"};
  if (!held_out.samples.held_out.empty()) return held_out;
  return InvalidArgument(fmt::format(
      "{}: held_out is 0 in every row, so nothing says how far the fit is off; --held-out {} draws "
      "that fraction of the pairs",
      options.pairs, kPart));
}

// Of ascending errors, the percentage that is at most `most`.
double PercentWithin(const std::vector<double>& errors, double most) {
  const auto within = std::ranges::upper_bound(errors, most) - errors.begin();
  return errors.empty() ? 0
                        : 100 * static_cast<double>(within) / static_cast<double>(errors.size());
}

std::string ErrorAt(const std::vector<double>& errors, double part) {
  return fmt::format("{:.2f}", 100 * QuantileOf(errors, part));
}

void PrintErrors(const std::vector<double>& fitted, const std::vector<double>& held_out,
                 const std::vector<double>& none) {
  TextTable table;
  table.AddColumns("error of|fitted [%]|held out [%]|no model [%]|paper [%]");
  for (const auto& [name, part, paper] : {std::tuple{"P50", 0.5, "-"},
                                          {"P90", 0.9, "10.26"},
                                          {"P95", 0.95, "13.98"},
                                          {"P99", 0.99, "-"},
                                          {"most", 1.0, "-"}}) {
    table.Add({name, ErrorAt(fitted, part), ErrorAt(held_out, part), ErrorAt(none, part), paper});
  }
  fmt::print("{}", table.Print());
  fmt::print(
      "held out: {:.1f} % are within 10.26 % (paper: 90; no model: {:.1f}), "
      "{:.1f} % within 13.98 % (95; {:.1f})\n",
      PercentWithin(held_out, 0.1026), PercentWithin(none, 0.1026), PercentWithin(held_out, 0.1398),
      PercentWithin(none, 0.1398));
}

Status WriteFit(const FitOptions& options, const InterferencePairs& pairs,
                const InterferenceModel& model, const SplitSamples& split) {
  if (options.json.empty()) return {};
  nlohmann::ordered_json json = {{"pairs", options.pairs}, {"coefficients", model.c}};
  for (const InterferenceSample& sample : pairs.samples) {
    json["slowdowns"].push_back(sample.factor);
  }
  json["errors"] = {{"fitted", RelativeErrors(model, split.fitted)},
                    {"held_out", RelativeErrors(model, split.held_out)},
                    {"no_model", RelativeErrors(InterferenceModel{}, split.held_out)}};
  const std::string text =
      json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return WriteFileText(text, options.json, "report");
}

int RunFit(const FitOptions& options) {
  const auto pairs = LoadPairs(options);
  if (!pairs) return ReportBadInput(pairs.error());
  const auto held_out = HoldOut(*pairs, options);
  if (!held_out) return ReportBadInput(held_out.error());
  const SplitSamples& split = held_out->samples;
  const auto model = FitInterference(split.fitted);
  if (!model) {
    return ReportBadInput({model.error().code, options.pairs + ": " + model.error().message});
  }
  const auto& c = model->c;
  fmt::print(
      "{}: {} measurements, {} of them held out, {}\n"
      "factor = {:.4f} l2 + {:.4f} l2' + {:.4f} dram + {:.4f} dram' + {:.4f}, ' being the "
      "neighbour's\n"
      "for tactus plan gpulet: --interference {:.4f},{:.4f},{:.4f},{:.4f},{:.4f}\n\n",
      options.pairs, pairs->samples.size(), split.held_out.size(), held_out->how, c[0], c[1], c[2],
      c[3], c[4], c[0], c[1], c[2], c[3], c[4]);
  PrintErrors(RelativeErrors(*model, split.fitted), RelativeErrors(*model, split.held_out),
              RelativeErrors(InterferenceModel{}, split.held_out));
  const auto written = WriteFit(options, *pairs, *model, split);
  return written ? 0 : ReportBadInput(written.error());
}

void AddFitInterference(CLI::App& fit, CommandContext& context) {
  auto options = std::make_shared<FitOptions>();
  CLI::App* command = fit.add_subcommand(
      "interference", "Fit gpu-lets' linear model of how two lanes of a device slow each other");
  AddOption(*command, "pairs", options->pairs, ReadFile(),
            "Measured pairs (CSV): slowdown,l2,dram,beside_l2,beside_dram and, if it is "
            "there, held_out, among others; ./run bench pairs --csv writes it. Or a "
            "scenario (.toml): pairs of its models on its simulated device")
      ->required();
  command->add_option("--set", options->settings, "Change a key of the scenario: plan.shares=20,80")
      ->option_text(kSettings)
      ->allow_extra_args(false);
  AddOption(*command, "--held-out", options->held_out, CLI::Range(0.01, 0.9),
            "Part of the pairs to hold out of the fit, drawn at random; overrides the file's "
            "held_out column (default: 0.3 where there is no such column)");
  AddOption(*command, "--seed", options->seed, SeedRange(),
            "Seed by which pairs are held out (default: 1)");
  command->add_flag("--by-side", options->by_side,
                    "Draw single measurements, so that one side of a pair may be fitted and the "
                    "other held out");
  AddOption(*command, "--json", options->json, WritableFile(),
            "Write the coefficients, the slowdowns and the errors to this file");
  command->callback([options, &context] { context.exit_code = RunFit(*options); });
}

}  // namespace

void AddFit(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("fit", "Fit a model to measurements");
  command->require_subcommand(1);
  AddFitInterference(*command, context);
}

}  // namespace tactus
