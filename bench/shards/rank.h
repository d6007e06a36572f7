// Matches candidates with lanes (Symphony, Section 4.2: RANKTHREAD): among those that are
// schedulable the one that expires first, to the free lane with the least id; the Match of the
// policy, fed by notes. It has no thread and no clock.
//
// A note counts the batches that were schedulable and the grants that were known when it was
// written; those granted since are taken off, so a batch is not granted twice. Each event costs
// O(log models + log lanes). Not thread-safe. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/indexed_heap.h"
#include "policies/match.h"
#include "shards/candidate_mailbox.h"
#include "shards/messages.h"

namespace tactus {

// Who says that a lane is free again.
enum class LaneRelease {
  kAtProfiledEnd,  // the clock: an emulated lane is free when the profiled latency has passed
  kReported,       // OnLaneFree
};

class Rank {
 public:
  Rank(std::size_t models, std::size_t lanes, LaneRelease release);

  void OnNote(ModelId m, const CandidateNote& note);
  void OnAnswer(const LaneAnswer& answer, TimePoint now);
  // With kReported: the batch on this lane ended.
  void OnLaneFree(LaneId lane, TimePoint now);
  // A closed lane is granted no more; what runs there still ends.
  void SetLaneOpen(LaneId lane, bool open, TimePoint now);

  // With kAtProfiledEnd: the lanes whose batches end by `now` are free.
  void Advance(TimePoint now);
  // The next grant, or nothing: no lane is free, or no candidate schedulable.
  std::optional<Grant> NextGrant(TimePoint now);

  // When the next lane is free by the clock; kNever if none.
  TimePoint NextTimer() const { return ends_.empty() ? kNever : ends_.top_key(); }

 private:
  struct ModelState {
    std::uint32_t granted = 0;  // grants, ever
    std::uint32_t left = 0;     // batches to grant; above 0 while match_ has the model
    TimePoint since{};          // of its candidate
  };
  struct LaneState {
    bool open = true;
    bool busy = false;
    bool free = false;  // open and not busy
  };

  // Tells the match if the lane is free now and was not, or the other way round.
  void Update(LaneId lane, TimePoint at);

  const LaneRelease release_;
  std::vector<ModelState> models_;
  std::vector<LaneState> lanes_;
  Match match_;
  IndexedHeap<TimePoint> ends_;  // by lane, those that end by the clock
  std::size_t free_ = 0;         // lanes
  TimePoint free_since_{};       // ever since some lane has been free
};

}  // namespace tactus
