// The candidate of one model (Symphony, Algorithm 1, UPDATECANDIDATE): which requests would form
// its next batch, when that batch becomes schedulable, and until when it stays as it is. A pure
// function of one queue, so whoever keeps a candidate may use it until the queue changes or
// `latest` passes; a model shard on a thread of its own, say.
#pragma once

#include <optional>

#include "core/request_queue.h"
#include "policies/batch_costs.h"

namespace tactus {

// When a candidate becomes schedulable. The paper's answer is kFrontrun; the others are what it is
// compared with. With d the earliest deadline of the batch, b its size, a its earliest arrival:
enum class Schedulable {
  kEager,     // at once (Clockwork, Nexus, Shepherd)
  kTimeout,   // at a + k (TensorFlow Serving, Triton; Section 3.4)
  kFrontrun,  // at d - cost(b + 1): from then on no further request could join (Section 3.1)
  kLatest,    // at d - cost(b): as late as the batch can be
};

// How a batch is gathered.
enum class Gather {
  kPrefix,  // the longest prefix that meets the head's deadline; heads go only when they are lost
  kWindow,  // heads that would hold the batch under a target size are given up
};

struct CandidateOptions {
  Schedulable schedulable = Schedulable::kFrontrun;
  Duration timeout{};  // k of kTimeout
  // Ours: a candidate is schedulable this much before frontrun. Frontrun leaves only
  // cost(b + 1) - cost(b) to find a free lane, too little where few lanes serve many models and
  // each may have to wait for another's batch.
  Duration lead{};
  Gather gather = Gather::kPrefix;
};

struct SymphonyCandidate {
  int drop = 0;      // heads to give up first; 0 with kPrefix
  int batch = 0;     // then this many run
  TimePoint exec;    // schedulable from here (which may be long past) ...
  TimePoint latest;  // ... to here, inclusive

  bool operator==(const SymphonyCandidate&) const = default;
};

// GETBATCH and the window of the batch. Nothing when the queue is empty, or when at `now` not even
// the head alone would make it on this kind of lane; if on none, the head is to be dropped.
//
// With kWindow the head may be one further back: the first from which `target` requests wait and
// whose deadline allows a batch of `target` at `now`; if there is none, the queue's head. The batch
// then grows beyond the target while its head's deadline allows it ("free lunch").
std::optional<SymphonyCandidate> MakeCandidate(const RequestQueue& queue, const BatchCosts& costs,
                                               const CandidateOptions& options, int target,
                                               TimePoint now);

// b*: the largest batch that arrivals at `rate` requests per second sustain in staggered execution
// on at most `lanes` lanes, at least 1. With n = rate cost(b) / b lanes kept busy,
//   (1 + 1/n) cost(b) <= slo   for n >= 1 (Section 3.3), and
//   cost(b) + b / rate <= slo  where less than one lane is needed: gathering takes that long.
int TargetBatch(const BatchCosts& costs, Duration slo, double rate, int lanes);

}  // namespace tactus
