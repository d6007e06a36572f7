// Why a call entered no queue, in one word: for metrics and the live page.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// The first are ErrorCodes, in their order.
enum class RefusalReason : std::uint8_t {
  kInvalidArgument,
  kNotFound,
  kAlreadyExists,
  kUnavailable,
  kDeadlineExceeded,
  kCancelled,
  kResourceExhausted,
  kUnimplemented,
  kInternal,
  kUnread,            // by its header: its body was not read
  kClientLimit,       // its client had as much as it may have
  kUnauthenticated,   // it showed no token that is known
  kPermissionDenied,  // its token may not infer
};
inline constexpr std::size_t kRefusalReasons = 13;

constexpr RefusalReason ReasonOf(ErrorCode code) { return static_cast<RefusalReason>(code); }

constexpr std::string_view Name(RefusalReason reason) {
  constexpr std::array<std::string_view, kRefusalReasons> kNames = {
      "invalid_argument",  "not_found", "already_exists",     "unavailable",
      "deadline_exceeded", "cancelled", "resource_exhausted", "unimplemented",
      "internal",          "unread",    "client_limit",       "unauthenticated",
      "permission_denied"};
  return kNames[static_cast<std::size_t>(reason)];
}

// Told of each call that a front end refused before the service had it, on whichever thread.
using CountRefusal = std::function<void(RefusalReason)>;

}  // namespace tactus
