// Strait (docs/research/papers/strait.md): batches share a device where the scheduler expects that
// each still meets its deadline, and that no running batch of equal or higher priority misses its
// own.
//
// Latency is estimated (Eq. 1) as the profiled latency, plus the wait for the link (Eq. 2), plus
// what the neighbours cost (Eq. 4 to 6, interference.h); the time already waited is in the
// deadline. Algorithm 1: queues by priority; unmeetable requests go; of a queue the largest batch
// that some device can take, by bisection; the device with the least estimate.
//
// Not in the paper:
//   - n levels of priority: every level but the highest is under the cap.
//   - A running batch that will miss its deadline anyway forbids nothing.
//   - Lower batches may join only one that would be in time even if its neighbours cost it as much
//     more than predicted as they cost batches in the tail; how much that is, is learnt
//     (tail_slowdown.h).
//   - Priorities of single requests: a batch has the level of the highest request that it holds,
//     and the bisection looks at the batches of one level at a time, the larger ones first.
//   - A low batch alone among low ones may exceed the cap: else a model that needs more than the
//     cap would never run.
//   - A batch waits to form only where its device is full and its first request has time to spare.
//   - Nobody starves: a queue that always holds a request which could still be met alone gets a
//     batch of one within `starve` and the time until a slot is free then, whatever the load of the
//     others; of several such queues the one that waited longest goes first, so that the last of n
//     waits for n slots to become free. A queue that was empty for `starve` begins anew.
//
// What a device's running batches have left, and which of them will be late anyway, does not depend
// on the candidate: it is worked out once for each device and question, and only where a candidate
// has passed the cheaper conditions: two predictions for each running batch. A candidate costs one
// for itself and one for each running batch, of which a device with a free slot has slots - 1 at
// most: in all, while requests have no priority of their own, at most models x ceil(log2(1 +
// largest batch)) x devices x slots + 2 x devices x (slots - 1) predictions a question.
// strait_plain_for_test.h is the same without this, to be read beside the paper; their decisions
// are equal, since both compute every number by the same functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/strait/strait_records.h"

namespace tactus {

class Strait final : public StraitRecords {
 public:
  Strait(std::string name, const StraitOptions& options)
      : StraitRecords(std::move(name), options) {}

  void Prepare(const View& view) override;
  Decision Decide(const View& view, TimePoint now) override;

 private:
  struct Place {
    LaneId lane;
    Duration estimate;
  };
  // A running batch that may still be in time.
  struct Guarded {
    const OngoingBatch* batch;
    Remaining left;
  };
  // What one device does next; valid for one question.
  struct Forecast {
    std::uint64_t question = 0;
    FixedVector<Guarded> guarded;
  };

  std::optional<Decision> Try(const View& view, ModelId m, TimePoint now);
  std::optional<Place> FindPlace(const View& view, const StraitCandidate& candidate, TimePoint now);
  bool Endangers(const Lane& lane, const Throughput& own, int level, TimePoint now);
  const Forecast& ForecastOf(const Lane& lane, TimePoint now);

  std::vector<Forecast> forecasts_;  // by LaneId
  std::uint64_t questions_ = 0;
};

}  // namespace tactus
