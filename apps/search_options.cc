#include "search_options.h"

#include <algorithm>

#include <fmt/format.h>

#include "commands.h"
#include "experiment/experiment.h"
#include "output_file.h"

namespace tactus {

void Declare(SearchOptions& options, CLI::App& command, const std::string& seeds) {
  AddOption(command, "scenario", options.scenario, ReadFile(), "Scenario file (TOML)")->required();
  command
      .add_option("--policies", options.policies,
                  "Policies: symphony,clockwork; default: the scenario's")
      ->delimiter(',')
      ->option_text(kCommaList)
      ->allow_extra_args(false);
  command.add_option("--seeds", options.seeds, seeds)->check(SeedCount())->capture_default_str();
  AddOption(command, "--first-seed", options.first_seed, SeedRange(),
            "The first seed; the others follow it")
      ->capture_default_str();
  AddOption(
      command, "--bad", options.bad_percent, CLI::Range(0.0, 99.0),
      "Highest violation ratio of any model or pipeline (late, shed, expired or failed), in %")
      ->capture_default_str();
  command.add_option("--set", options.settings, "Change a key: lanes.count=8, models.*.slo_ms=20")
      ->option_text(kSettings)
      ->allow_extra_args(false);
}

std::vector<std::string> PoliciesOf(const SearchOptions& options, const Scenario& scenario) {
  if (options.policies.empty()) return {scenario.policy};
  return JoinPolicyOptions(options.policies);
}

std::vector<std::uint64_t> SeedsOf(const SearchOptions& options) {
  std::vector<std::uint64_t> seeds;
  for (int i = 0; i < options.seeds; ++i) seeds.push_back(options.first_seed + i);
  return seeds;
}

Error NoneFound(std::span<const FailedPolicy> failed) {
  const std::string& first = failed.front().why;
  if (std::ranges::all_of(failed, [&](const FailedPolicy& each) { return each.why == first; })) {
    return {ErrorCode::kInvalidArgument, first};
  }
  std::string text;
  for (const FailedPolicy& each : failed) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", each.policy, each.why);
  }
  return {ErrorCode::kInvalidArgument, text};
}

std::string FailuresOf(std::span<const FailedPolicy> failed) {
  std::string text;
  for (const FailedPolicy& each : failed) {
    text += fmt::format("{} failed: {}\n", each.policy, each.why);
  }
  return text;
}

std::vector<Judged> JudgedOf(const RunReport& run, const SearchOptions& options) {
  if (options.together) {
    return {{"requests of", "all models", run.all.requests, run.all.bad_ratio}};
  }
  std::vector<Judged> all;
  for (const ModelSummary& model : run.models) {
    if (model.staged) continue;
    all.push_back(
        {"requests of model", model.name, model.figures.requests, model.figures.bad_ratio});
  }
  for (const PipelineSummary& pipeline : run.pipelines) {
    all.push_back({"requests to pipeline", pipeline.name, pipeline.requests(), pipeline.bad_ratio});
  }
  return all;
}

std::string CoarseRuns(const SearchOptions& options, const std::string& policy,
                       std::span<const RunReport> runs) {
  const double enough = options.bad_percent > 0 ? 10 / (options.bad_percent / 100) : 0;
  for (const RunReport& run : runs) {
    for (const Judged& judged : JudgedOf(run, options)) {
      if (static_cast<double>(judged.counted) >= enough) continue;
      return fmt::format(
          "{}: only {} {} '{}' counted at seed {}, which makes it coarse; a longer run helps: "
          "--set "
          "duration_s=...\n",
          policy, judged.counted, judged.what, judged.name, run.seed);
    }
  }
  return "";
}

}  // namespace tactus
