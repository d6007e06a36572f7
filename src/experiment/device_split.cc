#include "experiment/device_split.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/error_line.h"
#include "core/shares.h"
#include "experiment/kept_files.h"
#include "sim/world/plan_question.h"
#include "workload/plan_file.h"
#include "workload/scenario_fields.h"

namespace tactus {
namespace {

// Nothing happens for a plan that does not say what it was made for.
Status TakeSharesOf(const PlanFile& plan, Experiment& experiment) {
  if (!plan.on_share.empty()) {
    const auto taken = TakeMeasuredShares(plan.on_share, experiment);
    if (taken) return {};
    return Fail(taken.error().code, "on_share: " + taken.error().message);
  }
  if (plan.shares.empty()) return {};
  experiment.scenario.plan_shares = plan.shares;
  experiment.scenario.plan_exponent = plan.exponent;
  experiment.scenario.plan_utilization_base = plan.utilization_base;
  if (const auto why = ExplainUnusableShare(Shares(experiment.scenario))) {
    return InvalidArgument("shares: " + *why);  // the plan's, not [plan] shares
  }
  return Validate(experiment.scenario);
}

std::vector<double> RatesOf(const PlanFile& plan, const Scenario& scenario) {
  std::vector<double> rates_rps;
  for (const ScenarioModel& model : scenario.models) {
    const auto found = std::ranges::find(plan.models, model.name, &PlanFile::PlannedFor::name);
    CHECK(found != plan.models.end(), "a plan that fits knows every model");
    rates_rps.push_back(found->rate_rps);
  }
  return rates_rps;
}

}  // namespace

std::string SharesText(const Experiment& experiment) {
  const Scenario& scenario = experiment.scenario;
  const bool measured = !experiment.on_share.empty();
  if (scenario.plan_shares.empty()) return measured ? "the whole device, measured" : "none";
  const std::string percent = fmt::format("{}", fmt::join(scenario.plan_shares, ", "));
  if (measured) return fmt::format("{} % of a device and the whole, measured one by one", percent);
  return fmt::format("{} % of a device by a stand-in, exponent {:g}{}", percent,
                     scenario.plan_exponent,
                     scenario.plan_utilization_base == "device" ? ", utilization_base device" : "");
}

Status TakeMeasuredShares(std::span<const MeasuredShare> shares, Experiment& experiment) {
  auto on_share = LoadShareProfiles(shares);
  if (!on_share) return std::unexpected(std::move(on_share.error()));
  std::vector<double> parts;
  for (const ShareProfile& each : *on_share) parts.push_back(each.share);
  if (const auto why = ExplainUnusableShare(parts)) return InvalidArgument(*why);
  experiment.scenario.plan_shares.clear();
  for (const MeasuredShare& each : shares.first(shares.size() - 1)) {
    experiment.scenario.plan_shares.push_back(each.percent);
  }
  experiment.profile = on_share->back().profile;
  experiment.on_share = *std::move(on_share);
  return Validate(experiment.scenario);
}

Expected<std::string> TakePlan(const std::string& path, Experiment& experiment,
                               const std::vector<std::string>& written) {
  const auto file = LoadPlan(path);
  if (!file) return std::unexpected(file.error());
  std::vector<std::filesystem::path> profiles;
  for (const MeasuredShare& each : file->on_share) profiles.push_back(each.profile);
  if (auto kept = KeepFiles(path, profiles, written); !kept) return std::unexpected(kept.error());
  const std::string before = SharesText(experiment);
  if (const auto taken = TakeSharesOf(*file, experiment); !taken) {
    return Fail(taken.error().code, fmt::format("{}: {}", path, taken.error().message));
  }
  const auto question =
      MakePlanQuestion(experiment.scenario, experiment.profile, experiment.on_share);
  if (!question) return std::unexpected(question.error());
  auto plan = FitPlan(*file, path, question->input);
  if (!plan) return std::unexpected(plan.error());
  if (const auto other = ExplainPlanMismatch(*file, question->input, KnownRates::kYes)) {
    PrintWarning(fmt::format("{}: {}", path, *other));
  }
  experiment.plan = std::make_shared<const Plan>(std::move(*plan));
  experiment.planned_rps = RatesOf(*file, experiment.scenario);
  std::string text;
  if (const std::string now = SharesText(experiment); now != before) {
    text = fmt::format("shares: {}, as {} was made for; the scenario says {}\n", now, path, before);
  }
  const std::string& planner = experiment.scenario.plan_planner;
  if (planner == "none") return text;
  return text +
         fmt::format("plan: at first as {} says, then by {} as the load changes\n", path, planner);
}

}  // namespace tactus
