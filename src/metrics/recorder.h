// What happened, request by request, as fixed records; percentiles are exact.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "core/model.h"
#include "core/request.h"

namespace tactus {

struct RequestRecord {
  TimePoint arrival;
  TimePoint deadline;
  TimePoint started;  // of its batch; arrival when it never ran; kNever where only a server knows
  TimePoint ended;    // when it was answered or given up
  std::uint32_t model = 0;
  std::uint16_t exit = 0;
  std::uint16_t batch = 0;  // size of its batch; 0 when it never ran
  Outcome outcome = Outcome::kMet;
  std::int8_t correct = -1;  // 1 right, 0 wrong, -1 not checked: from labelled inputs
};

class Recorder {
 public:
  // Room for `expected` records is taken at once; beyond it the storage grows.
  explicit Recorder(std::size_t expected) { records_.reserve(expected); }

  void Add(const RequestRecord& record) { records_.push_back(record); }
  // From the dispatcher's outbox; `answered` is when the client had it.
  void Complete(const Batch& batch, const BatchReport& report, TimePoint answered);
  // One of its requests, as its client has it.
  void Complete(const Batch& batch, const BatchReport& report, const Request& request,
                TimePoint answered);
  void Reject(ModelId model, const Request& request, DropReason reason, TimePoint now);

  std::span<const RequestRecord> records() const { return records_; }
  std::vector<RequestRecord> Take() && { return std::move(records_); }

 private:
  std::vector<RequestRecord> records_;
};

// The smallest value that at least p percent of the values do not exceed (nearest rank); 0 for
// none. `p` in (0, 100]. Sorts `values` partially.
Duration Percentile(std::vector<Duration>& values, double p);

}  // namespace tactus
