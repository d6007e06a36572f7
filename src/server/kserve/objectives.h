// Names of objectives that routers send with a call, and the priority that the operator gives each:
// a number is never passed through, for what is urgent to one server is not to another.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// In lower case, as HTTP/2 sends it.
inline constexpr std::string_view kObjectiveHeader = "x-llm-d-inference-objective";

class Objectives {
 public:
  // From "NAME=PRIORITY" each, priorities as in docs/reference/deadlines.md (1 is the highest).
  // InvalidArgument, with the entry, for what is no such thing or there twice.
  static Expected<Objectives> Read(std::span<const std::string> entries);

  // 0, which is the model's own, for a name that nobody declared.
  std::uint32_t PriorityOf(std::string_view name) const;

 private:
  std::map<std::string, std::uint32_t, std::less<>> priorities_;
};

}  // namespace tactus
