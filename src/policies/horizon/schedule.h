// The receding-horizon schedule: what waits and what will probably come, cut into batches, placed
// on the lanes of one kind as they become free, each as deep as all the others leave time for. Made
// anew for every batch that goes; only its first entry is ever carried out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/horizon/demand.h"

namespace tactus {

// A batch that is to run. Instants are seconds from now.
struct PlannedBatch {
  ModelId model;
  int first = -1;    // its place in the queue; -1: none of its requests has come yet
  int waiting = 0;   // requests of it that wait
  int batch = 0;     // with those that will probably join
  double count = 1;  // batches like this one
  double release = 0;
  double deadline = 0;
  double length = 0;  // at the exit at hand, without the model's margin, as the deadline is
  double margin = 0;
  double key = 0;    // the order in which they go
  int priority = 0;  // the highest of its requests; 0: the model's, until it is added
  int step = 0;      // place in the model's hull
  double start = 0;
  bool left_out = false;
  bool late = false;
};

class Schedule {
 public:
  // So many batches are looked at, the most urgent first: work is bounded.
  static constexpr std::size_t kMost = 64;
  // At most so many requests of one model's queue, and of those expected, are planned.
  static constexpr int kMostOfQueue = 8;
  static constexpr int kMostExpected = 12;

  // May allocate, which nothing else here does.
  void Prepare(const View& view, const LaneKinds& kinds);

  // Cuts the queues and what is expected into batches, all at their quickest exits, and leaves out
  // what does not fit.
  void Make(const View& view, const KindOfLane& kind, std::uint32_t number, const Demand& demand,
            TimePoint now);

  // In the order in which they go.
  const std::vector<PlannedBatch>& batches() const { return batches_; }

  // The exit at which the batch at `place` is to go now, by the requests that wait.
  ExitId ExitFor(const KindOfLane& kind, std::size_t place);

 private:
  int AddQueue(const View& view, const Course& course, ModelId m, const Outlook& outlook,
               TimePoint now);
  void AddExpected(const View& view, const Course& course, ModelId m, const Outlook& outlook,
                   int joined, double ahead);
  void Add(const View& view, const Course& course, PlannedBatch batch);
  void LeaveOut(const Demand& demand);
  // Places all batches. With `mark` it notes when each starts and which are late; without, it stops
  // and says false as soon as one is late that was not.
  bool Place(bool mark);
  // Gives the batch this length, if nobody is late for it.
  bool Deepen(PlannedBatch& batch, double length);

  std::vector<PlannedBatch> batches_;
  std::vector<double> free_;  // when each lane is free, rising
  std::vector<double> ends_;  // the same with what is placed
};

}  // namespace tactus
