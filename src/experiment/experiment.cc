#include "experiment/experiment.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "check/doubts.h"
#include "core/learner.h"
#include "dispatch/journal_file.h"
#include "experiment/auto_lanes.h"
#include "experiment/kept_files.h"
#include "experiment/kept_predictor.h"
#include "metrics/request_file.h"
#include "policies/registry.h"
#include "sim/simulation.h"

namespace tactus {

Expected<std::pair<std::string, std::string>> SplitSetting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return InvalidArgument(fmt::format("'{}': write KEY=VALUE, as in rate_rps=200", text));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::vector<std::string> JoinPolicyOptions(const std::vector<std::string>& parts) {
  std::vector<std::string> policies;
  for (const std::string& part : parts) {
    const bool option = part.find('=') != std::string::npos && part.find(':') == std::string::npos;
    if (option && !policies.empty()) {
      policies.back() += "," + part;
    } else {
      policies.push_back(part);
    }
  }
  return policies;
}

Status CheckPolicies(std::span<const std::string> policies) {
  for (const std::string& policy : policies) {
    const auto made = MakePolicy(policy);
    if (!made) return InvalidArgument(fmt::format("'{}': {}", policy, made.error().message));
  }
  return {};
}

Expected<Experiment> LoadExperiment(const std::string& path,
                                    const std::vector<std::string>& settings,
                                    const std::vector<std::string>& written) {
  auto scenario = LoadScenario(path);
  if (!scenario) return std::unexpected(scenario.error());
  std::vector<Setting> changes;
  for (const std::string& text : settings) {
    auto setting = SplitSetting(text);
    if (!setting) return std::unexpected(setting.error());
    changes.push_back(*std::move(setting));
  }
  const auto set = Override(*scenario, changes);
  if (!set) return InvalidArgument("--set " + set.error().message);
  if (scenario->profile.empty()) {
    return InvalidArgument(fmt::format(
        "{}: [scenario] names no profile; add profile = \"FILE\", or --set profile=FILE", path));
  }
  auto profile = LoadProfile(scenario->profile);
  if (!profile) return std::unexpected(profile.error());
  if (const auto kept = KeepFilesOf(*scenario, written); !kept) {
    return std::unexpected(kept.error());
  }
  Experiment experiment{std::move(*scenario), std::move(*profile)};
  if (experiment.scenario.lanes != kAutoLanes) return experiment;
  const auto question = LaneQuestionOf(experiment.scenario, experiment.profile);
  if (!question) return std::unexpected(question.error());
  const LaneChoice choice = ChooseLanes(*question);
  TakeLanes(choice, experiment.scenario, experiment.profile);
  experiment.chosen_lanes = choice.why;
  return experiment;
}

Status CheckNoPipelines(const Scenario& scenario) {
  if (scenario.pipelines.empty()) return {};
  return InvalidArgument(
      fmt::format("{}: [[pipelines]] of a scenario are for `tactus simulate`; serve one as an "
                  "ensemble (docs/reference/pipelines.md), or state each model's rate_rps instead",
                  scenario.name));
}

Expected<std::unique_ptr<Policy>> MakeRealTimePolicy(const std::string& text) {
  auto policy = MakePolicy(text);
  if (!policy) return policy;
  if ((*policy)->traits().suspends) {
    return InvalidArgument(fmt::format(
        "policy '{}': stops batches between their kernels and goes on with them later, which no "
        "engine here can; simulate it",
        text));
  }
  const DecisionCost& cost = (*policy)->traits().decision_cost;
  if (!cost.launch && !cost.candidate) return policy;
  return InvalidArgument(
      fmt::format("policy '{}': cost and look have no effect in real time, where decisions take "
                  "real time; leave them out, or simulate",
                  text));
}

namespace {

Expected<std::unique_ptr<JournalWriter>> OpenJournal(const Experiment& experiment,
                                                     const Policy& policy,
                                                     const std::string& path) {
  const Scenario& scenario = experiment.scenario;
  return JournalWriter::Create(path,
                               {.policy = scenario.policy,
                                .source = "simulated",
                                .commit = BuildCommit(),
                                .options = MakeDispatcherOptions(scenario),
                                .lanes = SimulatedLanes(scenario, policy, experiment.plan.get())},
                               WhenFull::kWrite);
}

Status Resume(const Experiment& experiment, const std::string& path, Policy& policy) {
  const auto predictor = ResumePredictor(path, policy);
  if (!predictor) return std::unexpected(predictor.error());
  const auto served_models =
      MakeServedModels(experiment.scenario, experiment.profile, experiment.on_share);
  if (!served_models) return std::unexpected(served_models.error());
  return CheckPredictor(*predictor, path,
                        PredictorOf(experiment.scenario.policy, experiment.profile.machine,
                                    (*served_models)->models));
}

}  // namespace

Expected<RunReport> RunSimulated(const Experiment& experiment, const RunFiles& files,
                                 const SimulationProgress& on_progress) {
  const Scenario& scenario = experiment.scenario;
  auto policy = MakePolicy(scenario.policy);
  if (!policy) return std::unexpected(policy.error());
  const auto fine =
      CheckPredictorFiles(files.save_predictor, files.predictor, files.journal, **policy);
  if (!fine) return std::unexpected(fine.error());
  if (!files.predictor.empty()) {
    const auto resumed = Resume(experiment, files.predictor, **policy);
    if (!resumed) return std::unexpected(resumed.error());
  }
  SimulationOptions options{.plan = experiment.plan,
                            .planned_rps = experiment.planned_rps,
                            .on_share = experiment.on_share,
                            .on_progress = on_progress};
  std::unique_ptr<JournalWriter> writer;
  if (!files.journal.empty()) {
    auto created = OpenJournal(experiment, **policy, files.journal);
    if (!created) return std::unexpected(created.error());
    writer = std::move(*created);
    options.journal = writer.get();
  }
  auto result = Simulate(scenario, experiment.profile, **policy, options);
  if (!result) return std::unexpected(result.error());
  if (writer != nullptr) {
    if (const auto closed = writer->Close(); !closed) return std::unexpected(closed.error());
  }
  if (!files.save_predictor.empty()) {
    const auto saved =
        KeepPredictor(PredictorOf(scenario.policy, experiment.profile.machine, result->models),
                      **policy, files.save_predictor);
    if (!saved) return std::unexpected(saved.error());
  }
  if (!files.requests.empty()) {
    const auto written = WriteRequests(
        result->records, result->models,
        Counting(result->records, result->begin, result->end, result->skip), files.requests);
    if (!written) return std::unexpected(written.error());
  }
  RunReport report = MakeReport(scenario, experiment.profile, *result);
  if (files.timeline_parts > 0) {
    report.timeline =
        MakeTimeline(result->records, result->models, scenario.duration_s, files.timeline_parts);
  }
  if (const PredictionErrors* errors = PredictionErrorsOf(**policy)) {
    report.prediction = SummaryOf(*errors);
  }
  return report;
}

PredictionSummary SummaryOf(const PredictionErrors& errors) {
  PredictionSummary summary{.batches = errors.kernel.count(),
                            .p50 = errors.kernel.AbsolutePercentile(50),
                            .p95 = errors.kernel.AbsolutePercentile(95),
                            .p99 = errors.kernel.AbsolutePercentile(99),
                            .overhead_p50 = errors.overhead.Percentile(50),
                            .overhead_p99 = errors.overhead.Percentile(99)};
  const auto add = [&](double percent) {
    summary.percentiles.push_back({.percent = percent,
                                   .error = errors.kernel.AbsolutePercentile(percent),
                                   .signed_error = errors.kernel.Percentile(percent),
                                   .latency_error = errors.latency.AbsolutePercentile(percent),
                                   .overhead = errors.overhead.Percentile(percent)});
  };
  for (int percent = 1; percent < 100; ++percent) add(percent);
  for (const double percent : {99.5, 99.9, 100.0}) add(percent);
  return summary;
}

std::string TuningNotes(std::span<const std::string> policies, const Scenario& scenario) {
  std::string text;
  if (policies.size() < 2) return text;  // nothing is compared
  for (const PolicyInfo& info : Policies()) {
    const auto tuned = [&](const std::string& each) { return each.starts_with(info.name + ":"); };
    const bool helps = !info.tuned.empty() && std::ssize(scenario.models) >= info.tuned_from;
    if (!helps || std::ranges::find(policies, info.name) == policies.end() ||
        std::ranges::any_of(policies, tuned)) {
      continue;
    }
    text += fmt::format("{} is compared at its defaults; mostly it does better with {}\n",
                        info.name, info.tuned);
  }
  return text;
}

std::string PolicyDoubts(const Experiment& experiment, const std::string& policy) {
  const auto made = MakePolicy(policy);
  const auto served_models =
      MakeServedModels(experiment.scenario, experiment.profile, experiment.on_share);
  if (!made || !served_models) return "";  // the run itself says why
  return PolicyDoubts((*made)->traits(), experiment.scenario, **served_models,
                      MakeLanes(experiment.scenario));
}

std::string LanesOf(const Scenario& scenario) {
  std::string text = fmt::format("{} lane{}", scenario.lanes, scenario.lanes > 1 ? "s" : "");
  if (scenario.lane_kinds.empty()) return text;
  const char* before = " (";
  for (const LaneKind& kind : LaneKinds(scenario)) {
    text += fmt::format("{}{} {}", before, kind.count, kind.name);
    if (kind.speed != 1) text += fmt::format(" of speed {:.6g}", kind.speed);
    before = ", ";
  }
  return text + ")";
}

std::string Heading(const RunReport& run) {
  return fmt::format("{} ({}, {:.4g} s of arrivals that count)\nprofile: {}\n", run.scenario,
                     run.source, run.duration_s, run.profile_provenance);
}

}  // namespace tactus
