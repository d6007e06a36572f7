// Some cores of the processor as one device, split into lanes as a plan says, and split anew while
// requests are served (placement/plan_transition.h): a new lane gets its models and runs them once
// before it takes requests, and an old one ends what it runs before it goes. Where a new one cannot
// be had, the old ones go on.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/plan.h"
#include "placement/plan_transition.h"
#include "platform/wall_clock.h"
#include "runtime/calls/dispatch_turns.h"
#include "runtime/layout/device_layout.h"
#include "runtime/layout/drain_watch.h"
#include "runtime/layout/lane_loader.h"
#include "runtime/models/model_host.h"
#include "service/readings.h"

namespace tactus {

class LaneLayout {
 public:
  struct Options {
    std::vector<int> cores;    // the device's
    bool pinned = true;        // else only their number counts
    bool on_device = false;    // SplitOptions has it: no cores
    Duration longest_batch{};  // that is expected to run, see DrainWatch
    // One line for people; on the thread that adopts. Empty: nothing is said.
    std::function<void(const std::string&)> log;
  };
  // The others outlive it. Its lanes are the loop's, by LaneId.
  LaneLayout(Options options, const WallClock& clock, DispatchTurns& loop, ModelHost& host,
             LaneLoader& loader);

  // What a dispatcher is to have for one.
  static std::vector<LaneSpec> Lanes() { return PlanTransition(1).AllLanes(); }

  // Before the first request.
  void Start();
  // Makes the lanes as `plan` has them, whose ModelIds are the order of `models`. Blocks until the
  // old ones are gone. An error, and nothing happens, for a plan that has other devices or too many
  // lanes; and one that says which lane cannot be had and why, where the layout stays what it was.
  // kCancelled once changes have ended. Thread-safe.
  Status Adopt(const Plan& plan, const std::vector<std::string>& models);

  // No plan is taken up from now on. The change under way is cut short: what is being prepared goes
  // again, once the engine has loaded the lane that it is at; old lanes are not waited for, and
  // what runs there keeps its models until they are retired. Waits for nothing. Thread-safe.
  void EndChanges() { ended_.store(true); }
  // EndChanges, and waits until no Adopt is under way.
  void Stop();

  // As it serves now. Thread-safe; waits for no Adopt.
  DeviceLayout layout() const;

 private:
  // A lane whose batches are waited for: all of them, or where it stays those of the models that
  // the dispatcher's plan has there no more.
  struct Draining {
    LaneId lane;
    bool stays = false;
  };
  struct Change {                           // to another plan
    std::deque<TransitionStep> steps = {};  // that are still to be carried out
    std::vector<Draining> draining = {};
    Status made = {};  // the first lane that could not be had
  };
  Plan WithOurIds(const Plan& plan, const std::vector<std::string>& models);
  void Run(Change& change);
  void Prepare(const TransitionStep& step, Change& change);
  void CarryOut(const TransitionStep& step);
  Status Make(LaneId lane, LaneSpec spec);
  // Cores for a lane of so many threads: those that no other lane of the next layout has, first.
  std::vector<int> Choose(LaneId lane, int threads) const;
  // The first place on the device that no other lane of the next layout has.
  CudaPlacement PlaceOnDevice(LaneId lane, double fraction) const;
  std::vector<std::string> NamesOn(LaneId lane) const;
  static bool Runs(const View& view, const Draining& lane);
  // One of the change's that runs nothing any more, if there is one.
  std::optional<Draining> Drained(const Change& change);
  // Until one of them does, and then what is next for it. False: changes ended before.
  bool AwaitOne(Change& change);
  void WarnOfDrains();

  const Options options_;
  const WallClock& clock_;
  DispatchTurns& loop_;
  ModelHost& host_;
  LaneLoader& loader_;
  std::atomic<bool> ended_{false};  // see EndChanges
  std::mutex mutex_;                // held while a plan is taken up
  PlanTransition transition_{1};
  std::vector<LaneSpec> made_;  // by LaneId: as it was made, cores and all
  // Models by the ids that the transition knows them by. A name keeps its id whatever plans call
  // it: what is on a lane is compared by them.
  std::vector<std::string> names_;
  mutable std::mutex layout_mutex_;
  DeviceLayout layout_;  // but for its drains
  DrainWatch drains_;    // with layout_mutex_
};

}  // namespace tactus
