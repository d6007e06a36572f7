// tactus plan gpulet: how devices are split into gpu-lets, and who is in which.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "experiment.h"
#include "metrics/text_table.h"
#include "planners/gpulet/elastic.h"
#include "planners/gpulet/ideal.h"
#include "planners/gpulet/share_latency.h"
#include "planners/nexus/squishy.h"
#include "progress.h"
#include "workload/share_profiles.h"

namespace tactus {
namespace {

struct GpuletOptions {
  std::string scenario;
  std::string planner = "gpulet";
  std::vector<double> percent = {20, 40, 50, 60, 80};
  double exponent = 1;
  std::vector<std::string> measured;  // PERCENT=FILE; none: by `percent` and `exponent`
  std::vector<double> interference;   // c1 to c5, or none
  std::vector<std::string> settings;
};

// What is planned for; `profile` is what `input` points to.
struct Question {
  Scenario scenario;
  std::string provenance;
  std::string shares_from;  // how it is known what batches take on a share
  ProfileTable profile;
  PlanInput input;
};

// Lane classes from what was measured of the whole device.
Status AssumeShares(const GpuletOptions& options, const ProfileFile& profile,
                    const std::vector<Model>& models, Question& question) {
  const Scenario& scenario = question.scenario;
  const auto whole = MakeTable(
      profile, models, {.percentile = scenario.percentile, .jitter_ms = scenario.jitter_ms});
  if (!whole) return std::unexpected(whole.error());
  for (const double percent : options.percent) question.input.shares.push_back(percent / 100);
  question.input.shares.push_back(1);
  auto on_shares =
      OnShares(*whole, {.shares = question.input.shares, .exponent = options.exponent});
  if (!on_shares) return std::unexpected(on_shares.error());
  question.profile = std::move(*on_shares);
  question.shares_from =
      fmt::format("on a share of the device by a stand-in, exponent {:g}", options.exponent);
  return {};
}

// Lane classes that were measured, each for itself.
Status ReadShares(const GpuletOptions& options, const std::vector<Model>& models,
                  Question& question) {
  const Scenario& scenario = question.scenario;
  std::vector<ShareProfile> shares;
  for (const std::string& text : options.measured) {
    auto share = ReadShareProfile(text);
    if (!share) return std::unexpected(share.error());
    auto selected = SelectProfile(scenario, share->profile);
    if (!selected) return std::unexpected(selected.error());
    share->profile = std::move(*selected);
    question.input.shares.push_back(share->share);
    question.provenance = share->profile.provenance;  // of the last, the whole device
    shares.push_back(std::move(*share));
  }
  auto table = MakeTable(shares, models,
                         {.percentile = scenario.percentile, .jitter_ms = scenario.jitter_ms});
  if (!table) return std::unexpected(table.error());
  question.profile = std::move(*table);
  question.shares_from = "shares of the device measured one by one";
  return {};
}

Expected<std::unique_ptr<Question>> Ask(const GpuletOptions& options) {
  auto experiment = LoadExperiment(options.scenario, options.settings);
  if (!experiment) return std::unexpected(experiment.error());
  auto question = std::make_unique<Question>();
  question->scenario = experiment->scenario;
  question->provenance = experiment->profile.provenance;
  const Scenario& scenario = question->scenario;
  const auto models = MakeModels(scenario, experiment->profile);
  if (!models) return std::unexpected(models.error());
  const auto selected = SelectProfile(scenario, experiment->profile);
  if (!selected) return std::unexpected(selected.error());
  const auto shares = options.measured.empty()
                          ? AssumeShares(options, *selected, *models, *question)
                          : ReadShares(options, *models, *question);
  if (!shares) return std::unexpected(shares.error());
  question->input.profile = &question->profile;
  question->input.devices = scenario.lanes;
  const std::vector<double> rates = Rates(scenario);
  for (std::size_t m = 0; m < models->size(); ++m) {
    question->input.models.push_back(
        {.name = (*models)[m].name, .rate_rps = rates[m], .slo = (*models)[m].slo});
  }
  return question;
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

Expected<Plan> Solve(const GpuletOptions& options, const PlanInput& input) {
  InterferenceModel model;
  std::copy(options.interference.begin(), options.interference.end(), model.c.begin());
  const InterferenceModel* interference = options.interference.empty() ? nullptr : &model;
  if (options.planner == "nexus") return PlanSquishy(input, input.whole());
  if (options.planner == "nexus-half") {
    for (LaneClass::rep c = 0; c < input.shares.size(); ++c) {
      if (input.shares[c] == 0.5) return PlanSquishy(input, LaneClass{c});
    }
    return InvalidArgument("--planner nexus-half: needs 50 among --shares");
  }
  if (options.planner == "gpulet-retry") {
    return PlanElasticRetrying(input, {.interference = interference});
  }
  if (options.planner == "ideal") return PlanIdeal(input, interference);
  return PlanElastic(
      input, {.interference = interference, .self_tuning = options.planner == "self-tuning"});
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

int RunGpulet(const GpuletOptions& options) {
  const auto question = Ask(options);
  if (!question) return ReportBadInput(question.error());
  const PlanInput& input = (*question)->input;
  const auto plan = Solve(options, input);
  if (!plan) {
    return ReportBadInput({plan.error().code, options.scenario + ": " + plan.error().message});
  }
  if (auto valid = Validate(*plan, input); !valid) return ReportBadInput(valid.error());
  double used = 0;
  double rate_rps = 0;
  for (const LanePlan& lane : plan->lanes) used += lane.spec.fraction;
  for (const PlannedModel& model : input.models) rate_rps += model.rate_rps;
  fmt::print(
      "{}: {:.4g} requests/s of {} models on {} devices, planned by {}\nprofile: {}; "
      "{}\n\n{}\n{}\n{:.2f} of {} devices are in use\n",
      (*question)->scenario.name, rate_rps, input.models.size(), input.devices, options.planner,
      (*question)->provenance, (*question)->shares_from, Drawing(*plan, input),
      ToTable(*plan, input), used, input.devices);
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
                   "Percent of a device that a lane may have, beside all of it; ascending")
      ->delimiter(',')
      ->check(CLI::Validator(WhyNoShare, "PERCENT"))
      ->capture_default_str();
  command
      ->add_option("--exponent", options->exponent,
                   "How much of a lost percent of the device a batch feels that could use it")
      ->check(CLI::Range(0.0, 4.0))
      ->capture_default_str();
  command
      ->add_option("--on-share", options->measured,
                   "Instead of both: what `tactus profile` measured on each share, 50=half.json, "
                   "ascending to 100=whole.json")
      ->option_text("PERCENT=FILE ...")
      ->excludes("--shares")
      ->excludes("--exponent");
  command
      ->add_option("--interference", options->interference,
                   "c1,c2,c3,c4,c5 of Section 4.4; none: lanes are taken not to disturb each other")
      ->delimiter(',')
      ->expected(5);
  command->add_option("--set", options->settings, "Change a key: rate_rps=200, models.*.slo_ms=20")
      ->option_text(kSettings)
      ->allow_extra_args(false);
  command->callback([options, &context] { context.exit_code = RunGpulet(*options); });
}

}  // namespace tactus
