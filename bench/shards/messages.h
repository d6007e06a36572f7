// What goes into a shard, what rank and shards say to each other about lanes, and what comes out.
// (What a shard says about its candidates: candidate_mailbox.h.)
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/serving_time.h"
#include "core/request.h"

namespace tactus {

struct Arrival {
  ModelId model;
  Request request;
};

// The rank to a shard: this lane is yours, for the candidate of your model.
struct Grant {
  ModelId model;
  LaneId lane;
  TimePoint at{};   // when it was decided
  TimePoint due{};  // since when the candidate was schedulable and a lane free; not after `at`
};

// The answer, one to each grant.
struct LaneAnswer {
  LaneId lane;
  bool used = false;    // false gives the lane back
  TimePoint free_at{};  // when its batch should end
};

// A batch as its shard finalised it.
struct GrantedBatch {
  ModelId model;
  LaneId lane;
  TimePoint start{};
  TimePoint end{};                    // start + profiled latency
  TimePoint due{};                    // of its grant: start - due is the lateness of the dispatch
  std::span<const Request> requests;  // valid during the call
};

// Where a shard's requests go; each one goes to exactly one of the two. Called on the thread that
// drives the shard.
class ShardOutbox {
 public:
  virtual ~ShardOutbox() = default;
  virtual void Launch(const GrantedBatch& batch) = 0;
  virtual void Reject(ModelId model, const Request& request, DropReason reason, TimePoint now) = 0;
};

}  // namespace tactus
