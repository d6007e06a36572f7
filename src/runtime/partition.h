// Some cores of the processor as one device, split into lanes as a plan says, and split anew while
// requests are served (dispatch/reorganiser.h): a new lane gets its models and runs them once
// before it takes requests, and an old one ends what it runs before it goes. Where a new one cannot
// be had, the old ones go on.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/plan.h"
#include "dispatch/reorganiser.h"
#include "runtime/dispatch_loop.h"
#include "runtime/model_host.h"
#include "runtime/partition_question.h"
#include "runtime/places.h"

namespace tactus {

class Partition {
 public:
  // `cores` are the device's; where they are not `pinned`, only their number counts. The others
  // outlive it. Its lanes are the loop's, by LaneId.
  Partition(std::vector<int> cores, bool pinned, DispatchLoop& loop, ModelHost& host,
            Places& places);

  // What a dispatcher is to have for one.
  static std::vector<LaneSpec> Lanes() { return Reorganiser(1).Places(); }

  // Before the first request.
  void Start();
  // Makes the lanes as `plan` has them, whose ModelIds are the order of `models`. Blocks until the
  // old ones are gone. An error, and nothing happens, for a plan that has other devices or too many
  // lanes; and one that says which lane cannot be had and why, where the layout stays what it was.
  // Thread-safe.
  Status Adopt(const Plan& plan, const std::vector<std::string>& models);

  // As it serves now. Thread-safe; waits for no Adopt.
  DeviceLayout layout() const;

 private:
  struct Change {                            // to another plan
    std::deque<ReorganiserStep> steps = {};  // that are still to be carried out
    std::vector<LaneId> draining = {};
    Status made = {};  // the first lane that could not be had
  };
  Plan WithOurIds(Plan plan, const std::vector<std::string>& models);
  void Run(Change& change);
  void Prepare(const ReorganiserStep& step, Change& change);
  void CarryOut(const ReorganiserStep& step);
  Status Make(LaneId lane, LaneSpec spec);
  // Cores for a lane of so many threads: those that no other lane of the next layout has, first.
  std::vector<int> Choose(LaneId lane, int threads) const;
  std::vector<std::string> NamesOn(LaneId lane) const;
  // Until no batch runs there, but of models that the dispatcher's plan has there if `planned_may`.
  void Await(LaneId lane, bool planned_may);

  const std::vector<int> cores_;
  const bool pinned_;
  DispatchLoop& loop_;
  ModelHost& host_;
  Places& places_;
  std::mutex mutex_;  // held while a plan is taken up
  Reorganiser reorganiser_{1};
  std::vector<LaneSpec> made_;  // by LaneId: as it was made, cores and all
  // Models by the ids that the reorganiser knows them by. A name keeps its id whatever plans call
  // it: what is on a lane is compared by them.
  std::vector<std::string> names_;
  mutable std::mutex layout_mutex_;
  DeviceLayout layout_;
};

}  // namespace tactus
