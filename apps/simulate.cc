// tactus simulate: one scenario in virtual time.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/error_line.h"
#include "check/doubts.h"
#include "commands.h"
#include "dispatch/journal_file.h"
#include "experiment/device_split.h"
#include "experiment/experiment.h"
#include "experiment/progress.h"
#include "experiment/recorded.h"
#include "output_file.h"
#include "policies/registry.h"
#include "simulate_fleet.h"

namespace tactus {
namespace {

struct SimulateOptions {
  std::string scenario;
  std::string from_journal;  // instead of a scenario
  double last_s = 0;         // of the journal; 0: all of it
  std::string policy;
  std::vector<std::string> settings;
  std::string json;
  std::string plan;
  RunFiles files;
  std::optional<std::uint64_t> seed;
  bool wide = false;
  std::vector<std::string> planners;  // of a fleet
  std::vector<std::string> policies;  // of a fleet, instead of `policy`
  int seeds = 0;                      // of a fleet
};

// Of a fleet's scenario; the command is one.
int SimulateAFleet(const SimulateOptions& options) {
  SimulateFleetOptions fleet{.scenario = options.scenario,
                             .planners = options.planners,
                             .policies = options.policies,
                             .settings = options.settings,
                             .seeds = options.seeds,
                             .first_seed = options.seed.value_or(1),
                             .plan = options.plan,
                             .json = options.json};
  if (!options.policy.empty()) fleet.policies.push_back(options.policy);
  if (options.seed && options.seeds == 0) {
    fleet.settings.push_back(fmt::format("seed={}", *options.seed));
  }
  const RunFiles& files = options.files;
  if (!files.journal.empty() || !files.predictor.empty() || !files.save_predictor.empty() ||
      !files.requests.empty() || files.timeline_parts > 0) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           options.scenario +
                               " is a fleet: leave out --journal, --requests, --timeline, "
                               "--predictor and --save-predictor, which are of one machine"});
  }
  return RunSimulateFleet(fleet);
}

// An error where the scenario asks for plans that nobody would read.
Status CheckPlanner(const Scenario& scenario) {
  const auto policy = MakePolicy(scenario.policy);
  if (!policy || !(*policy)->traits().planner.empty() || scenario.plan_planner == "none") return {};
  return InvalidArgument(fmt::format(
      "policy '{}' reads no plan, so [plan] planner = \"{}\" would have no effect; choose one that "
      "does (--policy planned), or leave the planner out (--set plan.planner=none)",
      scenario.policy, scenario.plan_planner));
}

// How far the simulator is from what was measured, where nothing is changed.
std::string HowTrue(const RunReport& was, const RunReport& simulated) {
  const auto off = [](double is, double should) { return 100 * (is / should - 1); };
  std::string text =
      fmt::format("the same setting simulated: {:.2f} % in time where {:.2f} % were",
                  100 * (1 - simulated.all.bad_ratio), 100 * (1 - was.all.bad_ratio));
  for (const auto& [name, is, should] : {std::tuple("P50", simulated.all.p50_ms, was.all.p50_ms),
                                         std::tuple("P95", simulated.all.p95_ms, was.all.p95_ms)}) {
    if (should > 0) text += fmt::format(", {} off by {:+.1f} %", name, off(is, should));
  }
  return text + "\n";
}

int RunRecorded(const SimulateOptions& options) {
  const RunFiles& files = options.files;
  if (!files.journal.empty() || !files.requests.empty() || !files.predictor.empty() ||
      !files.save_predictor.empty() || files.timeline_parts > 0 || !options.plan.empty() ||
      !options.planners.empty() || !options.policies.empty() || options.seeds > 0 || options.seed) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           "--from-journal goes with --last, --policy, --set, --json and --wide "
                           "alone"});
  }
  const auto refuse = [&](const Error& error) {
    return ReportBadInput({error.code, options.from_journal + ": " + error.message});
  };
  const auto journal = LoadJournal(options.from_journal);
  if (!journal) return ReportBadInput(journal.error());
  std::optional<Duration> last;
  if (options.last_s > 0) last = FromSeconds(options.last_s);
  auto run = ReadRecorded(*journal, options.from_journal, last);
  if (!run) return refuse(run.error());
  std::vector<std::string> settings = options.settings;
  if (!options.policy.empty()) settings.push_back("policy=" + options.policy);
  auto tried = TryOther(*std::move(run), settings);
  if (!tried) return refuse(tried.error());
  std::vector<RunReport> runs;
  const auto add = [&](RunReport report, const char* label) {
    report.settings["run"] = label;
    runs.push_back(std::move(report));
  };
  add(std::move(tried->was), "as it was");
  add(std::move(tried->same), "simulated");
  if (tried->other) add(*std::move(tried->other), "what if");
  fmt::print("{}{}: {} requests in {:.1f} s\n{}{}",
             journal->complete ? "" : "only the beginning of ", options.from_journal,
             runs[0].all.requests, runs[0].duration_s, ToTable(runs, options.wide),
             HowTrue(runs[0], runs[1]));
  if (options.json.empty()) return 0;
  const auto written = WriteJson({runs, {}}, options.json);
  return written ? 0 : ReportBadInput(written.error());
}

int RunSimulate(const SimulateOptions& options) {
  if (!options.from_journal.empty()) return RunRecorded(options);
  if (options.scenario.empty()) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           "scenario is required: Scenario file (TOML); or --from-journal FILE"});
  }
  if (IsFleetFile(options.scenario)) return SimulateAFleet(options);
  if (!options.planners.empty() || !options.policies.empty() || options.seeds > 0) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           options.scenario +
                               " has no [[devices]]: --planners, --policies and --seeds are for "
                               "fleets; see tactus compare"});
  }
  std::vector<std::string> settings = options.settings;
  if (!options.policy.empty()) settings.push_back("policy=" + options.policy);
  if (options.policy.empty() && !options.plan.empty()) settings.push_back("policy=planned");
  if (options.seed) settings.push_back(fmt::format("seed={}", *options.seed));
  const std::vector<std::string> files = {options.json, options.files.journal,
                                          options.files.save_predictor, options.files.requests};
  auto experiment = LoadExperiment(options.scenario, settings, files);
  if (!experiment) return ReportBadInput(experiment.error());
  if (const auto read = CheckPlanner(experiment->scenario); !read) {
    return ReportBadInput(read.error());
  }
  std::string split;
  if (!options.plan.empty()) {
    auto taken = TakePlan(options.plan, *experiment, files);
    if (!taken) return ReportBadInput(taken.error());
    split = *std::move(taken);
  }
  if (experiment->plan != nullptr || experiment->scenario.plan_planner != "none") {
    if (const auto doubt = MemoryDoubt(experiment->scenario, experiment->profile)) {
      PrintWarning(*doubt);
    }
  }
  std::optional<Progress> progress;
  const auto report =
      RunSimulated(*experiment, options.files, [&](std::size_t done, std::size_t of) {
        if (!progress) progress.emplace(of);
        progress->Show(std::min(done, of), "requests");
        return true;
      });
  progress.reset();
  if (!report) return ReportBadInput(report.error());
  const std::vector<RunReport> runs = {*report};
  if (!experiment->chosen_lanes.empty()) split += "lanes: " + experiment->chosen_lanes + "\n";
  fmt::print("{}{}{}{}\n{}", Heading(*report), split,
             ScenarioDoubts(experiment->scenario, experiment->profile),
             PolicyDoubts(*experiment, experiment->scenario.policy), ToTable(runs, options.wide));
  if (!report->pipelines.empty()) fmt::print("\n{}", PipelineTable(runs));
  if (!report->scaling.empty()) fmt::print("\n{}", ScalingTable(*report));
  if (!report->layout.empty()) fmt::print("\n{}", LayoutTable(*report));
  if (options.json.empty()) return 0;
  const auto written = WriteJson({runs, {}}, options.json);
  return written ? 0 : ReportBadInput(written.error());
}

}  // namespace

void AddSimulate(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "Run a scenario in virtual time");
  CLI::Option* const scenario =
      AddOption(*command, "scenario", options->scenario, ReadFile(), "Scenario file (TOML)");
  CLI::Option* const journal =
      AddOption(*command, "--from-journal", options->from_journal, ReadFile(),
                "Instead of a scenario: what arrived at a server, by its --journal, once as it was "
                "and once with --policy and --set");
  scenario->excludes(journal);
  AddOption(*command, "--last", options->last_s, CLI::Range(1e-3, 1e9),
            "Of the journal only the last so many seconds")
      ->needs(journal);
  command->add_option("--policy", options->policy, "Policy instead of the scenario's");
  command->add_option("--set", options->settings, "Change a key: rate_rps=200, models.*.slo_ms=20")
      ->option_text(kSettings)
      ->allow_extra_args(false);
  AddOption(*command, "--seed", options->seed, SeedRange(), "Seed instead of the scenario's");
  AddOption(*command, "--json", options->json, WritableFile(), "Write the report to this file");
  AddOption(*command, "--journal", options->files.journal, WritableFile(),
            "Write every event and decision to this file");
  AddOption(*command, "--requests", options->files.requests, WritableFile(),
            "Write a row for every request to this CSV file: when it arrived, started and "
            "ended, and how");
  AddOption(*command, "--timeline", options->files.timeline_parts, CLI::Range(1, 100'000),
            "Report the load, the goodput and the busy lanes in each of so many parts of "
            "the run too (in --json)");
  AddOption(*command, "--predictor", options->files.predictor, ReadFile(),
            "Start from what the policy learnt in an earlier run (strait)");
  AddOption(*command, "--save-predictor", options->files.save_predictor, WritableFile(),
            "Write what the policy has learnt by the end to this file (strait)");
  AddOption(
      *command, "--plan", options->plan, ReadFile(),
      "Split devices and place models as this plan of `tactus plan gpulet --out` says. The "
      "policy is then planned, unless --policy names another. Where the scenario has a [plan] "
      "planner, the plan holds until that planner makes the next one. Of a fleet: a plan of "
      "`tactus plan fleet --out`, which holds throughout, or with --set period_s=S until the "
      "first replanning");
  command->add_option("--planners", options->planners, "Of a fleet: compare these planners")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text(kCommaList);
  command
      ->add_option("--policies", options->policies,
                   "Of a fleet: compare these policies (the option again for one with options)")
      ->allow_extra_args(false);
  AddOption(*command, "--seeds", options->seeds, SeedCount(),
            "Of a fleet: how many seeds to average over, from --seed, or else from seed 1");
  command->add_flag("--wide", options->wide, "Show every model, and how requests ended");
  command->callback([options, &context] { context.exit_code = RunSimulate(*options); });
}

}  // namespace tactus
