// One request: one row of work for one model (one image, one sentence). A client's call with k rows
// enters as k requests that share their deadline; the front end joins the answers.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/serving_time.h"

namespace tactus {

// The lowest priority of a request or a model; 1 is the highest.
inline constexpr int kLowestPriority = 1'000'000;

struct Request {
  RequestId id;                // unique in one dispatcher, given in order of arrival
  TimePoint arrival;           // the instant the server (or the simulated source) had it whole
  TimePoint deadline;          // absolute; the earliest of what the client and the model say
  std::uint64_t payload = 0;   // the driver's: where the tensors lie; no policy looks at it
  std::uint32_t shape = 0;     // requests of different shape classes never share a batch
  std::uint32_t priority = 0;  // 1 is the highest; 0 is the model's default

  bool operator==(const Request&) const = default;
};

// Why a request leaves without having run.
enum class DropReason : std::uint8_t {
  kQueueFull,  // its queue holds all it may hold
  kExpired,    // its deadline has passed, or not even the quickest run could meet it any more
  kShed,       // a policy gave it up: its queue cannot meet this deadline
  kCancelled,  // the client left or asked for it
  kUnloaded,   // its model went away, or the server is stopping
};

// How a request ended. Every accepted request has exactly one.
enum class Outcome : std::uint8_t {
  kMet,        // answered by its deadline
  kLate,       // answered after it
  kShed,       // not computed: queue full, given up by a policy, or unloaded
  kExpired,    // not computed: the deadline had passed or could not be met
  kCancelled,  // nobody waits for it
  kError,      // the engine failed
};
inline constexpr int kOutcomes = 6;

constexpr Outcome OutcomeOf(DropReason reason) {
  switch (reason) {
    case DropReason::kExpired:
      return Outcome::kExpired;
    case DropReason::kCancelled:
      return Outcome::kCancelled;
    case DropReason::kQueueFull:
    case DropReason::kShed:
    case DropReason::kUnloaded:
      return Outcome::kShed;
  }
  return Outcome::kError;
}

constexpr const char* Name(Outcome outcome) {
  constexpr const char* kNames[kOutcomes] = {"met",     "late",      "shed",
                                             "expired", "cancelled", "error"};
  return kNames[static_cast<int>(outcome)];
}

}  // namespace tactus
