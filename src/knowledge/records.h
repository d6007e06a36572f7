// What a knowledge base holds, as plain data: what was measured, who was let in, what was planned
// and what happened. Instants are UTC and come from the caller; samples bear the instant at which
// the controller received them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/serving_time.h"

namespace tactus::knowledge {

using UtcTime = std::chrono::sys_time<std::chrono::microseconds>;

// From `begin`, up to `end` and without it.
struct Window {
  UtcTime begin{};
  UtcTime end{};
};

// What was measured.

struct ArrivalSample {
  UtcTime at{};
  std::string pipeline;
  std::string stage;
  std::string source;  // device
  Duration window{};   // that was observed
  double rate_rps = 0;
  double cv = 0;     // of the gaps between items
  double items = 0;  // for each frame, mean
  std::int64_t bytes_in = 0;
  std::int64_t bytes_out = 0;

  bool operator==(const ArrivalSample&) const = default;
};

struct NetworkSample {
  UtcTime at{};
  std::string from_site;
  std::string to_site;
  double mbps = 0;
  Duration rtt{};
  double loss = 0;  // share of what was sent

  bool operator==(const NetworkSample&) const = default;
};

// Who was let in.

// A token that admitted a node to the cluster, which it does once.
struct TokenUse {
  std::string token;       // key: its sum
  std::string node;        // that it named
  std::string public_key;  // sum of the one that got a certificate for it
  UtcTime at{};
  UtcTime expires{};  // the token

  bool operator==(const TokenUse&) const = default;
};

// What was planned, and what happened.

enum class PlanFate { kProposed, kAdopted, kAbandoned };

struct Plan {
  std::uint64_t epoch = 0;  // key; never used twice
  std::uint64_t term = 0;   // of the controller that made it
  UtcTime made{};
  std::string input;      // JSON
  std::string plan;       // JSON
  std::string predicted;  // JSON
  PlanFate fate = PlanFate::kProposed;
  UtcTime decided{};  // when it met its fate
  std::string why;    // of its fate

  bool operator==(const Plan&) const = default;
};

// What became of a plan that is in the store.
struct Verdict {
  std::uint64_t epoch = 0;
  PlanFate fate = PlanFate::kAdopted;
  UtcTime decided{};
  std::string why;
};

struct Event {
  std::uint64_t number = 0;  // given by the store: 1, 2, 3...
  UtcTime at{};
  std::string kind;     // "node-lost", "plan-adopted"...
  std::string subject;  // a device, a pipeline, a plan
  std::string text;     // for people

  bool operator==(const Event&) const = default;
};

}  // namespace tactus::knowledge
