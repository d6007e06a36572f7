// The candidate of one model (Symphony, Algorithm 1, UPDATECANDIDATE): which requests would form
// its next batch, when that batch becomes schedulable, and until when it stays valid. A pure
// function of the queue, so it is exact until the queue changes or `latest` passes.
#pragma once

#include <optional>

#include "core/view.h"

namespace tactus {

// When a candidate becomes schedulable. The paper's answer is kFrontrun; the others are what it is
// compared with. With d the earliest deadline of the batch, b its size, a its earliest arrival:
enum class Schedulable {
  kEager,     // at once (Clockwork, Nexus, Shepherd)
  kTimeout,   // at a + k (TensorFlow Serving, Triton; Section 3.4)
  kFrontrun,  // at d - l(b + 1): from then on no further request could join (Section 3.1)
  kLatest,    // at d - l(b): as late as the batch can be
};

struct SymphonyCandidate {
  int batch = 0;
  TimePoint exec;    // schedulable from here
  TimePoint latest;  // to here, inclusive
};

struct CandidateOptions {
  Schedulable schedulable = Schedulable::kFrontrun;
  Duration timeout{};  // k of kTimeout
};

// GETBATCH by prefix: the most requests from the head that would all meet the head's deadline if
// they started at `now` on a lane of class `c`, at the model's final exit. Nothing when the queue
// is empty, or when not even the head alone would make it: then the head is to be dropped.
std::optional<SymphonyCandidate> MakeCandidate(const View& view, ModelId m, LaneClass c,
                                               const CandidateOptions& options, TimePoint now);

// b*: the largest batch that arrivals at `rate` requests per second sustain in staggered execution
// (Eq. 1 and 2: l(b) + b / rate <= SLO), at least 1.
int StaggeredBatch(const View& view, ModelId m, LaneClass c, double rate);

// GETBATCH by window: how many heads to give up now so that the batch can reach `target`; 0 when
// the head's deadline allows it already, or when too few requests wait to reach it.
int HeadsToDrop(const View& view, ModelId m, LaneClass c, int target, TimePoint now);

}  // namespace tactus
