// tactus plan gpulet: how devices are split into gpu-lets, and who is in which.
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "experiment.h"
#include "metrics/text_table.h"
#include "output_file.h"
#include "planners/gpulet/ideal.h"
#include "planners/registry.h"
#include "progress.h"
#include "sim/plan_question.h"
#include "workload/plan_file.h"
#include "workload/share_profiles.h"

namespace tactus {
namespace {

struct GpuletOptions {
  std::string scenario;
  std::string planner = "gpulet";
  std::vector<double> percent;        // none: the scenario's, or kUsualShares
  std::optional<double> exponent;     // none: the scenario's
  std::vector<std::string> measured;  // PERCENT=FILE; none: by `percent` and `exponent`
  std::vector<double> interference;   // c1 to c5, or none
  std::vector<std::string> settings;
  std::string out;
};

constexpr std::array kUsualShares = {20.0, 40.0, 50.0, 60.0, 80.0};  // percent, the paper's

struct Asked {
  Scenario scenario;
  std::string provenance;   // of the profile
  std::string shares_from;  // how it is known what batches take on a share
  PlanQuestion question;
  std::unique_ptr<ProfileTable> measured;  // what its input points to, where shares were measured
};

// Lane classes that were measured, each for itself.
Status ReadShares(const GpuletOptions& options, Asked& asked) {
  const Scenario& scenario = asked.scenario;
  PlanInput& input = asked.question.input;
  std::vector<ShareProfile> shares;
  input.shares.clear();
  for (const std::string& text : options.measured) {
    auto share = ReadShareProfile(text);
    if (!share) return std::unexpected(share.error());
    auto selected = SelectProfile(scenario, share->profile);
    if (!selected) return std::unexpected(selected.error());
    share->profile = std::move(*selected);
    input.shares.push_back(share->share);
    asked.provenance = share->profile.provenance;  // of the last, the whole device
    shares.push_back(std::move(*share));
  }
  auto table = MakeTable(shares, asked.question.deployment->models,
                         {.percentile = scenario.percentile, .jitter_ms = scenario.jitter_ms});
  if (!table) return std::unexpected(table.error());
  asked.measured = std::make_unique<ProfileTable>(std::move(*table));
  input.profile = asked.measured.get();
  asked.shares_from = "shares of the device measured one by one";
  return {};
}

Expected<Asked> Ask(const GpuletOptions& options) {
  auto experiment = LoadExperiment(options.scenario, options.settings);
  if (!experiment) return std::unexpected(experiment.error());
  Scenario& scenario = experiment->scenario;
  if (!options.percent.empty()) scenario.plan_shares = options.percent;
  if (!options.measured.empty()) {
    scenario.plan_shares.clear();
  } else if (scenario.plan_shares.empty()) {
    scenario.plan_shares.assign(kUsualShares.begin(), kUsualShares.end());
  }
  if (options.exponent) scenario.plan_exponent = *options.exponent;
  auto question = MakePlanQuestion(scenario, experiment->profile);
  if (!question) return std::unexpected(question.error());
  Asked asked{.scenario = std::move(scenario),
              .provenance = experiment->profile.provenance,
              .shares_from = fmt::format("on a share of the device by a stand-in, exponent {:g}",
                                         experiment->scenario.plan_exponent),
              .question = std::move(*question),
              .measured = nullptr};
  if (options.measured.empty()) return asked;
  if (auto read = ReadShares(options, asked); !read) return std::unexpected(read.error());
  return asked;
}

Expected<Plan> PlanIdeal(const PlanInput& input, const InterferenceModel* interference) {
  std::unique_ptr<Progress> progress;
  IdealOptions options{.interference = interference};
  options.on_progress = [&](std::size_t done, std::size_t all) {
    if (!progress) progress = std::make_unique<Progress>(all);
    progress->Show(done, "combinations of models in the two lanes of a device");
  };
  const auto planner = IdealPlanner::Make(input, std::move(options));
  if (!planner) return std::unexpected(planner.error());
  std::vector<double> rates;
  for (const PlannedModel& model : input.models) rates.push_back(model.rate_rps);
  return planner->Solve(rates);
}

Expected<Plan> Solve(const GpuletOptions& options, const Asked& asked) {
  const PlanInput& input = asked.question.input;
  if (!options.interference.empty() && options.planner.starts_with("nexus")) {
    return InvalidArgument("--interference: " + options.planner + " counts on none; leave it out");
  }
  const std::vector<double>& given =
      options.interference.empty() ? asked.scenario.plan_interference : options.interference;
  InterferenceModel model;
  std::copy(given.begin(), given.end(), model.c.begin());
  const InterferenceModel* interference = given.empty() ? nullptr : &model;
  if (options.planner == "ideal") return PlanIdeal(input, interference);
  auto planner =
      MakePlanner(options.planner, interference ? std::optional(*interference) : std::nullopt);
  if (!planner) return std::unexpected(planner.error());
  return (*planner)->Solve(input);
}

std::string NamesIn(const LanePlan& lane, const PlanInput& input) {
  std::string names;
  for (const PlanEntry& entry : lane.entries) {
    names += (names.empty() ? "" : ", ") + input.models[entry.model.value()].name;
  }
  return names;
}

// Each device as a bar, its lanes as wide as their shares.
std::string Drawing(const Plan& plan, const PlanInput& input) {
  constexpr int kWidth = 100;
  std::map<std::uint32_t, std::string> bars;
  std::map<std::uint32_t, double> used;
  for (const LanePlan& lane : plan.lanes) {
    const std::uint32_t device = lane.spec.device.value();
    const int width = static_cast<int>(std::lround(kWidth * lane.spec.fraction)) - 1;
    const std::string text =
        fmt::format("{:.0f} % {}", 100 * lane.spec.fraction, NamesIn(lane, input));
    bars[device] += fmt::format("{:<{}.{}}|", text, width, width);
    used[device] += lane.spec.fraction;
  }
  std::string drawing;
  for (int device = 0; device < input.devices; ++device) {
    const auto d = static_cast<std::uint32_t>(device);
    const int rest = static_cast<int>(std::lround(kWidth * (1 - used[d])));
    if (rest > 1) bars[d] += fmt::format("{:.<{}}|", "", rest - 1);
    drawing += fmt::format("{:>3} |{}\n", device, bars[d]);
  }
  return drawing;
}

std::string ToTable(const Plan& plan, const PlanInput& input) {
  TextTable table;
  table.AddColumn("model", "");
  table.AddColumn("device", "");
  table.AddColumn("share", "%");
  table.AddColumn("batch", "");
  table.AddColumn("runs for", "ms");
  table.AddColumn("of a cycle of", "ms");
  table.AddColumn("SLO", "ms");
  table.AddColumn("carries", "r/s");
  for (const LanePlan& lane : plan.lanes) {
    for (const PlanEntry& entry : lane.entries) {
      const PlannedModel& model = input.models[entry.model.value()];
      table.Add({model.name, std::to_string(lane.spec.device.value()),
                 fmt::format("{:.0f}", 100 * lane.spec.fraction), std::to_string(entry.batch),
                 fmt::format("{:.2f}", ToMillis(entry.length)),
                 fmt::format("{:.2f}", ToMillis(lane.cycle)),
                 fmt::format("{:.4g}", ToMillis(model.slo)),
                 fmt::format("{:.1f}", entry.batch / ToSeconds(lane.cycle))});
    }
  }
  return table.Print();
}

Status Write(const GpuletOptions& options, const Asked& asked, const Plan& plan) {
  if (options.out.empty()) return {};
  PlanFile file = MakePlanFile(plan, asked.question.input);
  file.planner = options.planner;
  file.scenario = asked.scenario.name;
  file.profile = asked.provenance;
  return SavePlan(file, options.out);
}

int RunGpulet(const GpuletOptions& options) {
  const auto asked = Ask(options);
  if (!asked) return ReportBadInput(asked.error());
  const PlanInput& input = asked->question.input;
  const auto plan = Solve(options, *asked);
  if (!plan) {
    return ReportBadInput({plan.error().code, options.scenario + ": " + plan.error().message});
  }
  if (auto valid = Validate(*plan, input); !valid) return ReportBadInput(valid.error());
  if (auto out = Write(options, *asked, *plan); !out) return ReportBadInput(out.error());
  double used = 0;
  double rate_rps = 0;
  for (const LanePlan& lane : plan->lanes) used += lane.spec.fraction;
  for (const PlannedModel& model : input.models) rate_rps += model.rate_rps;
  fmt::print(
      "{}: {:.4g} requests/s of {} models on {} devices, planned by {}\nprofile: {}; "
      "{}\n\n{}\n{}\n{:.2f} of {} devices are in use\n",
      asked->scenario.name, rate_rps, input.models.size(), input.devices, options.planner,
      asked->provenance, asked->shares_from, Drawing(*plan, input), ToTable(*plan, input), used,
      input.devices);
  return 0;
}

// Ascending percentages below 100.
std::string WhyNoShare(const std::string& text) {
  const double percent = std::strtod(text.c_str(), nullptr);
  return percent > 0 && percent < 100 ? "" : text + ": a share is between 0 and 100 %";
}

}  // namespace

void AddPlanGpulet(CLI::App& plan, CommandContext& context) {
  auto options = std::make_shared<GpuletOptions>();
  CLI::App* command = plan.add_subcommand(
      "gpulet", "How devices are split into shares (gpu-lets), and which models are in which");
  command->add_option("scenario", options->scenario, "Scenario file (TOML); its lanes are devices")
      ->required();
  command->add_option("--planner", options->planner, "Who plans")
      ->check(
          CLI::IsMember({"gpulet", "gpulet-retry", "self-tuning", "nexus", "nexus-half", "ideal"}))
      ->capture_default_str();
  command
      ->add_option("--shares", options->percent,
                   "Percent of a device that a lane may have, beside all of it; ascending, and "
                   "instead of the scenario's [plan] shares")
      ->delimiter(',')
      ->check(CLI::Validator(WhyNoShare, "PERCENT"));
  command
      ->add_option("--exponent", options->exponent,
                   "How much of a lost percent of the device a batch feels that could use it, "
                   "instead of the scenario's")
      ->check(CLI::Range(0.0, 4.0));
  command
      ->add_option("--on-share", options->measured,
                   "Instead of both: what `tactus profile` measured on each share, 50=half.json, "
                   "ascending to 100=whole.json")
      ->option_text("PERCENT=FILE ...")
      ->excludes("--shares")
      ->excludes("--exponent");
  command
      ->add_option(
          "--interference", options->interference,
          "c1,c2,c3,c4,c5 of Section 4.4; default: the scenario's [plan] interference, else "
          "lanes are taken not to disturb each other")
      ->delimiter(',')
      ->check(CLI::Range(-100.0, 100.0))
      ->expected(5);
  command->add_option("--out", options->out, "Write the plan to this file, for simulate --plan")
      ->check(WritableFile());
  command->add_option("--set", options->settings, "Change a key: rate_rps=200, models.*.slo_ms=20")
      ->option_text(kSettings)
      ->allow_extra_args(false);
  command->callback([options, &context] { context.exit_code = RunGpulet(*options); });
}

}  // namespace tactus
