// Arrivals that somebody has recorded, in place of what a scenario says.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/request.h"
#include "workload/arrivals.h"

namespace tactus {

struct RecordedRequest {
  Request request;
  TimePoint known;  // when the dispatcher had it: not before its arrival
};

// By ModelId, in order of `known`. Outlives what is made of it.
using RecordedRequests = std::span<const std::vector<RecordedRequest>>;

// The instants at which the dispatcher has what was recorded, a stream for each model; where
// nothing was, what the scenario says (MakeArrivals).
Expected<std::vector<std::unique_ptr<Arrivals>>> RecordedOr(const Scenario& scenario,
                                                            RecordedRequests recorded);

// The requests of those instants, under ids of the run's own.
class RecordedTurns {
 public:
  explicit RecordedTurns(RecordedRequests recorded)
      : recorded_(recorded), taken_(recorded.size()) {}
  bool empty() const { return recorded_.empty(); }
  Request Next(std::size_t model, RequestId id) {
    Request request = recorded_[model][taken_[model]++].request;
    request.id = id;
    return request;
  }

 private:
  const RecordedRequests recorded_;
  std::vector<std::size_t> taken_;
};

}  // namespace tactus
