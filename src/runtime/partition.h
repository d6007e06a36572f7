// Some cores of the processor as one device, split into lanes as a plan says, and split anew while
// requests are served (dispatch/reorganiser.h): a new lane gets its models and runs them once
// before it takes requests, and an old one ends what it runs before it goes.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/plan.h"
#include "dispatch/reorganiser.h"
#include "runtime/dispatch_loop.h"
#include "runtime/model_host.h"
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
  // lanes. Thread-safe.
  Status Adopt(const Plan& plan, const std::vector<std::string>& models);

 private:
  void CarryOut(const ReorganiserStep& step, const std::vector<std::string>& models);
  void Make(LaneId lane, LaneSpec spec, const std::vector<std::string>& models);
  // Cores for a lane of so many threads: those that no other lane of the next layout has, first.
  std::vector<int> Choose(LaneId lane, int threads) const;
  std::vector<std::string> NamesOn(LaneId lane, const std::vector<std::string>& models) const;
  void AwaitDrained(LaneId lane);

  const std::vector<int> cores_;
  const bool pinned_;
  DispatchLoop& loop_;
  ModelHost& host_;
  Places& places_;
  std::mutex mutex_;  // held while a plan is taken up
  Reorganiser reorganiser_{1};
  std::vector<LaneSpec> made_;  // by LaneId: as it was made, cores and all
};

}  // namespace tactus
