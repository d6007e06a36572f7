#include "workload/model_names.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace tactus {
namespace {

std::string Listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

// The names in `these` that `those` lacks.
std::vector<std::string> Lacking(std::span<const std::string> these,
                                 std::span<const std::string> those) {
  std::vector<std::string> names;
  for (const std::string& name : these) {
    if (std::ranges::find(those, name) == those.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string HowNamesDiffer(std::span<const std::string> known, std::span<const std::string> here) {
  const std::vector<std::string> gone = Lacking(known, here);
  const std::vector<std::string> fresh = Lacking(here, known);
  std::string text;
  if (!gone.empty()) text = fmt::format("it knows {}, not served here", Listed(gone));
  if (!fresh.empty()) {
    text += fmt::format("{}it does not know {}", gone.empty() ? "" : "; ", Listed(fresh));
  }
  return text;
}

}  // namespace tactus
