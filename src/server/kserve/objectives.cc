#include "server/kserve/objectives.h"

#include <charconv>

#include <fmt/format.h>

#include "core/request.h"

namespace tactus {

Expected<Objectives> Objectives::Read(std::span<const std::string> entries) {
  Objectives read;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.rfind('=');
    std::uint32_t priority = 0;
    if (equals != entry.npos && equals > 0) {
      const char* const end = entry.data() + entry.size();
      const auto number = std::from_chars(entry.data() + equals + 1, end, priority);
      if (number.ec != std::errc{} || number.ptr != end) priority = 0;
    }
    if (priority < 1 || priority > static_cast<std::uint32_t>(kLowestPriority)) {
      return InvalidArgument(fmt::format(
          "'{}' is no objective: NAME=PRIORITY, and priorities are whole numbers from 1 (the "
          "highest) to {}",
          entry, kLowestPriority));
    }
    if (!read.priorities_.emplace(entry.substr(0, equals), priority).second) {
      return InvalidArgument(
          fmt::format("the objective '{}' is there twice", entry.substr(0, equals)));
    }
  }
  return read;
}

std::uint32_t Objectives::PriorityOf(std::string_view name) const {
  const auto found = priorities_.find(name);
  return found == priorities_.end() ? 0 : found->second;
}

}  // namespace tactus
