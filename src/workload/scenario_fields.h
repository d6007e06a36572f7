// The keys of a scenario, as data: the TOML file and the command line's --set read the same table,
// so they cannot differ in what they accept.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "workload/scenario.h"

namespace tactus {

// A value as it was written, before anybody knows which type its key wants.
struct ScenarioValue {
  std::variant<std::int64_t, double, std::string, std::vector<ScenarioValue>> is;
};

template <class Owner>
struct ScenarioField {
  using Target =
      std::variant<double Owner::*, std::optional<double> Owner::*, int Owner::*,
                   std::int64_t Owner::*, std::uint64_t Owner::*, std::string Owner::*,
                   std::filesystem::path Owner::*, ArrivalProcess Owner::*, Popularity Owner::*,
                   std::vector<std::string> Owner::*, std::vector<double> Owner::*>;
  std::string_view section;
  std::string_view key;
  Target target;
  double low = 0;  // of numbers
  double high = 0;
  // Of words: those allowed, "a|b|c"; of a whole number: a word that stands for 0.
  std::string_view names{};
  std::string_view remark{};  // for whoever wrote another
};

std::span<const ScenarioField<Scenario>> ScenarioFields();
std::span<const ScenarioField<ScenarioModel>> ModelFields();
std::span<const ScenarioField<LaneKind>> LaneKindFields();
std::span<const ScenarioField<LaneFault>> LaneFaultFields();
std::span<const ScenarioField<ScenarioPipeline>> PipelineFields();
std::span<const ScenarioField<ScenarioStage>> StageFields();

// What lanes of no other kind are called.
inline constexpr std::string_view kPlainLanes = "plain";

// Sets the field of a Scenario or of a part of it, or says what it must be: "must be a
// number from 0 to 100". Paths are taken relative to `folder`.
template <class Owner>
Status Assign(const ScenarioField<Owner>& field, Owner& owner, const ScenarioValue& value,
              const std::filesystem::path& folder);

// What no single key can be blamed for: no models, a warm-up longer than the run, ...
Status Validate(const Scenario& scenario);

}  // namespace tactus
