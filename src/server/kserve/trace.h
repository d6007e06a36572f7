// A call that was traced, and who takes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/request.h"
#include "service/infer_call.h"
#include "service/trace_parent.h"

namespace tactus {

// A call that has been answered. Instants of one clock.
struct Trace {
  using Instant = std::chrono::steady_clock::time_point;
  std::uint64_t id = 0;
  std::uint32_t log_frequency = 0;  // see TraceSample
  std::string model;
  std::int64_t version = 1;
  std::string request_id;  // of the client; empty: none
  std::optional<TraceParent> parent;
  Outcome outcome = Outcome::kMet;
  int batch = 0;          // 0: it was in none
  std::string exit;       // empty: none served it
  bool emulated = false;  // its times come from a profile
  Instant received;       // REQUEST_START: the first bytes of the request came
  Instant queued;         // QUEUE_START: it is read and checked
  struct Compute {
    Instant start;
    Instant end;
  };
  std::optional<Compute> compute;  // nothing: it did not run, or in several steps
  std::vector<StepRun> steps;      // of an ensemble's call
  Instant answered;                // REQUEST_END: the answer is there, not yet written
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // From any thread; waits for nobody.
  virtual void Add(Trace trace) = 0;
};

}  // namespace tactus
