// Which model gets which lane (Symphony, Algorithm 1, the two timers; Section 4.2, RANKTHREAD):
// candidates and free lanes in, grants out. O(log models + log lanes) for each change and question.
//
// Lanes that run the same models at the same latencies form a group, and a model has a candidate
// for each group; with equal lanes there is one. Driven by a policy in one thread, or by a rank
// thread that hears of candidates from model shards.
//
//   ONMODELTIMER   a candidate whose `exec` has come gets the free lane with the least id
//   ONGPUTIMER     a lane that becomes free gets the schedulable candidate with the least latest
//
// Departure: timers compare with "not later than" where the algorithm writes "earlier than"; in
// exact virtual time a strict comparison would wait forever for the instant at hand.
#pragma once

#include <cstdint>
#include <vector>

#include "base/id_set.h"
#include "base/ids.h"
#include "base/indexed_heap.h"
#include "policies/candidate.h"

namespace tactus {

class Match {
 public:
  // `group_of_lane`: by LaneId. Starts without candidates and with every lane busy. May allocate,
  // which nothing else here does.
  void Resize(std::size_t models, std::vector<std::uint32_t> group_of_lane, std::size_t groups);

  // The model's candidate for the lanes of a group; replaces an earlier one.
  void Put(ModelId m, std::uint32_t group, const SymphonyCandidate& candidate);
  void Erase(ModelId m, std::uint32_t group);
  void SetFree(LaneId lane, bool free);

  struct Outcome {
    enum class Kind : std::uint8_t {
      kNothing,  // ask again at `until`, or when something changed
      kGrant,    // `model` may run on `lane`; say what became of both (Put or Erase, SetFree)
      kStale,    // the candidate's latest has passed: make it anew
    };
    Kind kind = Kind::kNothing;
    ModelId model;
    std::uint32_t group = 0;
    LaneId lane;
    TimePoint until = kNever;

    bool operator==(const Outcome&) const = default;
  };
  // Instants do not fall. A candidate that must wait for a lane may become stale unnoticed: it is
  // looked at when there is a lane for it.
  Outcome Next(TimePoint now);

 private:
  struct Group {
    IndexedHeap<TimePoint> pending;  // models by exec
    IndexedHeap<TimePoint> ready;    // models by latest; exec has passed
    std::vector<TimePoint> latest;   // by model, of those that are pending
    IdSet free;                      // lanes
  };

  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_lane_;
  TimePoint asked_{Duration::min()};  // the last question's instant
};

}  // namespace tactus
