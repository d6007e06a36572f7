#include "check/doubts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "check/never_served.h"
#include "core/shares.h"

namespace tactus {
namespace {

// The first few, and how many more.
std::string Shortened(std::string_view about, const std::vector<std::string>& warnings) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, warnings.size()); ++i) {
    text += fmt::format("{}, doubtful: {}\n", about, warnings[i]);
  }
  if (warnings.size() > kShown) {
    text += fmt::format("{}, doubtful: {} more like these\n", about, warnings.size() - kShown);
  }
  return text;
}

// Policies that look at deadlines leave such lanes to other models, the rest miss them there. Where
// all kinds are too slow for a model, the run itself refuses it.
std::vector<std::string> SlowLanes(const Scenario& scenario, const ProfileFile& profile,
                                   const ProfileFile& selected) {
  std::vector<std::string> warnings;
  const auto models = MakeModels(scenario, profile);
  const std::vector<LaneKind> kinds = LaneKinds(scenario);
  if (!models || kinds.size() < 2) return warnings;
  for (const LaneKind& kind : kinds) {
    for (const Model& model : *models) {
      if (!MayRun(kind, model.name)) continue;
      const auto met = CheckSlo(selected, model,
                                {.percentile = scenario.percentile,
                                 .jitter_ms = scenario.jitter_ms,
                                 .speeds = {kind.speed}});
      if (met) continue;
      warnings.push_back(fmt::format("{} {}, {}", kind.count, kind.name, met.error().message));
    }
  }
  return warnings;
}

}  // namespace

std::string ScenarioDoubts(const Scenario& scenario, const ProfileFile& profile) {
  const auto selected = SelectProfile(scenario, profile);
  if (!selected) return "";  // the run itself says why
  std::string text = Shortened("lanes", SlowLanes(scenario, profile, *selected));
  for (const ProfiledModel& model : selected->models) {
    if (scenario.slots == 1) continue;
    const auto warning = UseWarning(model.name, &model);
    if (warning) text += fmt::format("profile, doubtful: {}\n", *warning);
  }
  return text + Shortened("profile", Warnings(*selected));
}

std::string PolicyDoubts(const PolicyTraits& policy, const Scenario& scenario,
                         const ServedModels& served_models, std::span<const LaneSpec> lanes) {
  std::string text;
  if (policy.suspends && scenario.capacity.empty()) {
    text += fmt::format(
        "policy, doubtful: {} stops batches only on devices that the scenario describes in "
        "[contention], and it has none\n",
        policy.name);
  }
  if (policy.planner.empty() && scenario.plan_planner != "none") {
    text += fmt::format(
        "policy, doubtful: {} reads no plan, so [plan] planner changes nothing for it\n",
        policy.name);
  }
  for (std::size_t i = 0; i < served_models.models.size(); ++i) {
    const ModelId m{static_cast<ModelId::rep>(i)};
    const auto why = ExplainNeverServed(policy, served_models, lanes, m);
    if (why) text += fmt::format("policy, doubtful: {}\n", *why);
  }
  return text;
}

std::optional<std::string> MemoryDoubt(const Scenario& scenario, const ProfileFile& profile) {
  const auto selected = SelectProfile(scenario, profile);
  if (!selected || scenario.plan_memory_mb == 0) return std::nullopt;
  std::vector<std::string> unknown;
  for (std::size_t m = 0; m < selected->models.size(); ++m) {
    if (MemoryOf(selected->models[m]) == 0) unknown.push_back(scenario.models[m].name);
  }
  if (unknown.empty()) return std::nullopt;
  return fmt::format(
      "[plan] memory_mb: the profile does not say what memory '{}' need{}, which count{} as 0; a "
      "profile that `tactus profile` measures does",
      fmt::join(unknown, "', '"), unknown.size() > 1 ? "" : "s", unknown.size() > 1 ? "" : "s");
}

std::optional<std::string> CoresDoubt(int wanted, int cores) {
  if (wanted <= cores) return std::nullopt;
  return fmt::format(
      "lanes, slots and threads need {} cores, and there are {}: batches will slow each other more "
      "than their profile says",
      wanted, cores);
}

std::optional<std::string> SharesDoubt(std::span<const ShareProfile> shares) {
  std::vector<double> parts;
  for (const ShareProfile& each : shares) parts.push_back(each.share);
  const auto why = ExplainUnusableShare(parts);
  return why ? std::optional("--on-share: " + *why) : std::nullopt;
}

}  // namespace tactus
