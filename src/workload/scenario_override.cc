// --set and --sweep: one key of a scenario, from the command line.
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "workload/csv.h"
#include "workload/pipelines.h"
#include "workload/scenario.h"
#include "workload/scenario_fields.h"

namespace tactus {
namespace {

template <class Owner>
bool IsList(const ScenarioField<Owner>& field) {
  return std::holds_alternative<std::vector<std::string> Owner::*>(field.target) ||
         std::holds_alternative<std::vector<double> Owner::*>(field.target);
}
template <class Owner>
bool IsText(const ScenarioField<Owner>& field) {
  return std::holds_alternative<std::string Owner::*>(field.target) ||
         std::holds_alternative<std::vector<std::string> Owner::*>(field.target);
}

// A command line has no quotes: a name may look like a number, so the field says how to read it.
template <class Owner>
ScenarioValue ReadText(const ScenarioField<Owner>& field, std::string_view text) {
  const auto one = [&](std::string_view part) {
    const auto number = IsText(field) ? std::nullopt : ParseNumber(part);
    return number ? ScenarioValue{*number} : ScenarioValue{std::string(part)};
  };
  if (!IsList(field)) return one(text);
  // "1,2,3" is one list for --set, and for --sweep three values, whose lists are "1+2+3".
  const char between = text.find(',') == std::string_view::npos ? '+' : ',';
  std::vector<ScenarioValue> items;
  for (const std::string& part : SplitTrimmed(text, between)) items.push_back(one(part));
  return {std::move(items)};
}

Status Blame(std::string_view key, std::string_view what) {
  return InvalidArgument(fmt::format("{}: {}", key, what));
}

// "SECTION.NAME.KEY" of what has a name; * is all of them. `rest` is behind SECTION.
template <class Owner>
Status OverrideNamed(std::vector<Owner>& owners, std::span<const ScenarioField<Owner>> fields,
                     std::string_view key, std::string_view rest, std::string_view value) {
  const std::string_view section = fields.front().section;
  const std::size_t dot = rest.rfind('.');  // a name may hold dots
  if (dot == std::string_view::npos) {
    return Blame(key, fmt::format("write {0}.NAME.KEY or {0}.*.KEY", section));
  }
  const std::string_view name = rest.substr(0, dot);
  const std::string_view member = rest.substr(dot + 1);
  const auto field = std::ranges::find(fields, member, &ScenarioField<Owner>::key);
  if (field == fields.end()) {
    return Blame(key, fmt::format("[[{}]] have no '{}'", section, member));
  }
  bool found = false;
  for (Owner& owner : owners) {
    if (name != "*" && name != owner.name) continue;
    found = true;
    const auto set = Assign(*field, owner, ReadText(*field, value), {});
    if (!set) return Blame(key, set.error().message);
  }
  if (!found) return Blame(key, fmt::format("the scenario's [[{}]] have no '{}'", section, name));
  return {};
}

bool AllStateTheirRates(const Scenario& scenario) {
  return std::ranges::all_of(scenario.models,
                             [&](const ScenarioModel& model) {
                               return model.rate_rps || IsStage(scenario, model.name);
                             }) &&
         std::ranges::all_of(scenario.pipelines, [](const ScenarioPipeline& pipeline) {
           return pipeline.rate_rps.has_value();
         });
}

// Without a look at what the other keys are.
Status Set(Scenario& changed, std::string_view key, std::string_view value) {
  constexpr std::string_view kModels = "models.";
  constexpr std::string_view kLaneKinds = "lane_kinds.";
  constexpr std::string_view kPipelines = "pipelines.";
  if (key.starts_with(kModels)) {
    return OverrideNamed(changed.models, ModelFields(), key, key.substr(kModels.size()), value);
  }
  if (key.starts_with(kLaneKinds)) {
    return OverrideNamed(changed.lane_kinds, LaneKindFields(), key, key.substr(kLaneKinds.size()),
                         value);
  }
  if (key.starts_with(kPipelines)) {
    return OverrideNamed(changed.pipelines, PipelineFields(), key, key.substr(kPipelines.size()),
                         value);
  }
  if (key == "lanes") key = "lanes.count";  // what people write first
  const auto fields = ScenarioFields();
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const auto& f) {
    return f.key == key || fmt::format("{}.{}", f.section, f.key) == key;
  });
  if (field == fields.end()) {
    std::string keys = "models.NAME.KEY, lane_kinds.NAME.KEY, pipelines.NAME.KEY";
    std::vector<std::string> names;
    for (const auto& known : fields) {
      keys += fmt::format(", {}", known.key);
      names.emplace_back(known.key);
    }
    return Blame(key, fmt::format("a scenario has no such key{}; the keys are {}",
                                  DidYouMean(key, names), keys));
  }
  const auto set = Assign(*field, changed, ReadText(*field, value), {});
  if (!set) return Blame(key, set.error().message);
  if (field->key == "rate_rps" && AllStateTheirRates(changed)) {
    return Blame(key, changed.pipelines.empty()
                          ? "every model states its own rate, so this would change nothing; "
                            "write models.NAME.rate_rps, or models.*.rate_rps= before it to "
                            "share a total"
                          : "every model states its own rate and every pipeline its own, so this "
                            "would change nothing; write pipelines.NAME.rate_rps, or "
                            "pipelines.*.rate_rps= before it to share a total");
  }
  return {};
}

}  // namespace

Status Override(Scenario& scenario, std::string_view key, std::string_view value) {
  const Setting only{std::string(key), std::string(value)};
  return Override(scenario, std::span(&only, 1));
}

Status Override(Scenario& scenario, std::span<const Setting> settings) {
  Scenario changed = scenario;
  std::string_view blamed;  // since which nothing has been right
  Status valid;
  for (const auto& [key, value] : settings) {
    if (auto set = Set(changed, key, value); !set) return set;
    const bool before = valid.has_value();
    valid = Validate(changed);
    if (before) blamed = key;
  }
  if (!valid) return Blame(blamed, valid.error().message);
  scenario = std::move(changed);
  return {};
}

}  // namespace tactus
