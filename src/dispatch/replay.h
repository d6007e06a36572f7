// Feeds a journal's events to a new dispatcher and compares every decision with the one on record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/expected.h"
#include "core/policy.h"
#include "dispatch/journal_file.h"

namespace tactus {

struct ReplayResult {
  std::uint64_t events = 0;     // arrivals, completions, cancellations, lane changes, steps
  std::uint64_t decisions = 0;  // compared: dispatches, drops, preemptions, waits
  std::uint64_t plans = 0;      // adopted
  // The first difference, with the records around it; nothing when every decision was the same.
  std::optional<std::string> difference;
};

// Is told what happens, while it is decided again.
class ReplayWatch {
 public:
  virtual ~ReplayWatch() = default;
  virtual void Configured(std::shared_ptr<const ServedModels>) {}
  // It takes batches from now on, or none: its server has gone, or its engine died.
  virtual void LaneOpened(LaneId, bool /*open*/, TimePoint /*now*/) {}
  // It has the model from now on, or has lost it: its process has died, or is new.
  virtual void LaneHolds(LaneId, ModelId, bool /*holds*/, TimePoint /*now*/) {}
  virtual void Arrived(ModelId, const Request&) {}
  virtual void Launched(const Batch&) {}
  virtual void Finished(BatchId, const BatchReport&) {}
  // As of Outbox: requests that end with the batch's report.
  virtual void Answered(const Batch&, const BatchReport&) {}
  virtual void GivenUp(ModelId, const Request&, DropReason, TimePoint /*now*/) {}
};

// `policy` is a new one of the kind that the journal names. An error is a journal whose events make
// no sense, such as a batch that ends without having begun.
// `watch` may be null.
Expected<ReplayResult> Replay(const JournalFile& journal, Policy& policy,
                              ReplayWatch* watch = nullptr);

// One record on one line: "[17] arrive model 2 request 40 at 12.500000 ms deadline 62.500000 ms".
std::string ToText(const JournalRecord& record);

}  // namespace tactus
