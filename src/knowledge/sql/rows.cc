#include "knowledge/sql/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tactus::knowledge {

std::string_view NameOf(PlanFate fate) {
  switch (fate) {
    case PlanFate::kProposed:
      return "proposed";
    case PlanFate::kAdopted:
      return "adopted";
    case PlanFate::kAbandoned:
      break;
  }
  return "abandoned";
}

PlanFate FateOf(std::string_view name) {
  if (name == "adopted") return PlanFate::kAdopted;
  return name == "proposed" ? PlanFate::kProposed : PlanFate::kAbandoned;
}

std::string InsertSql(std::string_view table, const std::vector<std::string>& columns) {
  std::vector<std::string> places;
  for (std::size_t i = 1; i <= columns.size(); ++i) places.push_back(fmt::format("${}", i));
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, fmt::join(columns, ", "),
                     fmt::join(places, ", "));
}

}  // namespace tactus::knowledge
