// What a call may do, as tokens grant it (docs/reference/security.md has the table of endpoints).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tactus {

enum class Scope : std::uint8_t {
  kOpen = 0,   // health: a yes or a no, for whoever asks
  kRead = 1,   // metadata, configurations, statistics, metrics, the list of services
  kInfer = 2,  // inference
  kAdmin = 4,  // what changes the server: loads, unloads, overrides, trace, log, shared memory
};

// "read", "infer" or "admin"; nothing for any other word.
constexpr std::optional<Scope> ParseScope(std::string_view word) {
  if (word == "read") return Scope::kRead;
  if (word == "infer") return Scope::kInfer;
  if (word == "admin") return Scope::kAdmin;
  return std::nullopt;
}

constexpr std::string_view Name(Scope scope) {
  switch (scope) {
    case Scope::kRead:
      return "read";
    case Scope::kInfer:
      return "infer";
    case Scope::kAdmin:
      return "admin";
    case Scope::kOpen:
      break;
  }
  return "open";
}

}  // namespace tactus
