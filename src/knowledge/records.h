// What a knowledge base holds, as plain data: what the cluster is made of, what was measured, what
// was planned, what happened. Instants are UTC and come from the caller; samples bear the instant
// at which the controller received them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/serving_time.h"

namespace tactus::knowledge {

using UtcTime = std::chrono::sys_time<std::chrono::microseconds>;

// From `begin`, up to `end` and without it.
struct Window {
  UtcTime begin{};
  UtcTime end{};
};

// What the cluster is made of. A later record of the same key replaces the earlier one.

struct Device {
  std::string name;  // key
  std::string kind;
  std::string site;
  int accelerators = 1;
  double memory_mb = 0;  // of each accelerator
  bool server = false;   // takes stages of other devices' pipelines
  UtcTime seen{};        // last

  bool operator==(const Device&) const = default;
};

// In one direction: an uplink and its downlink are two.
struct Link {
  std::string from_site;  // key
  std::string to_site;    // key
  double mbps = 0;        // as declared; what was measured are NetworkSamples
  Duration rtt{};

  bool operator==(const Link&) const = default;
};

struct Model {
  std::string digest;  // key, "sha256:..."
  std::string name;
  std::int64_t bytes = 0;

  bool operator==(const Model&) const = default;
};

struct Stage {
  std::string name;
  std::string model;  // digest
  double items = 1;   // that it works on for each of the pipeline's frames, mean
  double in_kb = 0;   // of an item, as it is sent over a link
  double out_kb = 0;  // of an answer

  bool operator==(const Stage&) const = default;
};

struct Pipeline {
  std::string name;    // key
  std::string source;  // the device that its frames come from
  Duration slo{};
  std::string declaration;    // JSON, whole: who waits for whom is here
  std::vector<Stage> stages;  // in order; they replace those of the earlier record

  bool operator==(const Pipeline&) const = default;
};

struct Percentiles {
  Duration p50{};
  Duration p95{};
  Duration p99{};

  bool operator==(const Percentiles&) const = default;
};

// What a batch of a model takes on devices of a kind.
struct Profile {
  std::string model;  // key, digest
  std::string kind;   // key
  int exit = 0;       // key, as numbered in the model's profile
  int batch = 1;      // key
  Percentiles pre, infer, post;
  double memory_mb = 0;
  std::array<double, 5> use{};  // shares of the device's peaks, in core/resource_use.h's order
  std::string source;           // "measured on cam1", "derived from x"
  UtcTime made{};

  bool operator==(const Profile&) const = default;
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

struct BatchLatencySample {
  UtcTime at{};
  std::string device;
  std::string model;  // digest
  int exit = 0;
  int batch = 1;
  std::int64_t batches = 0;  // that were observed
  Percentiles took;

  bool operator==(const BatchLatencySample&) const = default;
};

struct OutcomeSample {
  UtcTime at{};
  std::string pipeline;
  std::string stage;  // empty: the pipeline as a whole; else `dropped` is what was dropped here
  std::int64_t on_time = 0;
  std::int64_t late = 0;
  std::int64_t dropped = 0;
  Percentiles took;  // from arrival to answer

  bool operator==(const OutcomeSample&) const = default;
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

struct DeviceLoadSample {
  UtcTime at{};
  std::string device;
  int accelerator = 0;
  double use = 0;  // of its throughput
  double memory_mb = 0;
  double host_cores = 0;  // busy

  bool operator==(const DeviceLoadSample&) const = default;
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
