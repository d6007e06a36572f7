// What Strait is compared with (Section 5.1): policies that limit how many batches run at once on a
// device and do not ask what they cost each other. All of them look at queues by priority, give up
// unmeetable requests, form batches alike, and count on profiled latencies alone:
//
//   temporal     one batch at a time
//   static       at most three
//   reactive     as many as there are slots, at most three of each level; of low levels one fewer
//                after each miss of the highest, never less than one, and three again each 200 ms
//   preemptive   fixed priorities on a device that stops lower batches between kernels (XSched): as
//                many as there are slots, of low levels one fewer, so that a high one can come in
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/learner.h"
#include "core/policy.h"
#include "policies/departures.h"
#include "policies/lost_heads.h"
#include "policies/priority_order.h"

namespace tactus {

enum class SharingRule { kTemporal, kStatic, kReactive, kPreemptive };

struct SharingOptions {
  SharingRule rule = SharingRule::kTemporal;
  double formation = 0.1;  // as Strait's
  int largest_batch = 1 << 20;
};

class Sharing final : public Policy, public Learner {
 public:
  Sharing(std::string name, const SharingOptions& options);

  void Prepare(const View& view) override;
  Decision Decide(const View& view, TimePoint now) override;
  void OnPopFront(ModelId m, int count) override;
  void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                   TimePoint now) override;

 private:
  // Whether the rule lets one more batch of this level run there.
  bool Admits(const Lane& lane, int level) const;
  // What the model's queue would launch now: on the lane that may take it and has the fewest
  // batches; nothing where none may.
  std::optional<Dispatch> Launch(const View& view, ModelId m, TimePoint now) const;
  int BatchFor(const View& view, ModelId m, const Lane& lane, TimePoint now) const;
  void Reset(TimePoint now);
  void Miss() { low_ = std::max(1, low_ - 1); }

  const SharingOptions options_;
  PriorityOrder order_;
  LostHeads lost_;
  Departures departures_;
  int low_;             // of low levels at once; kReactive moves it
  TimePoint reset_at_;  // kReactive: when low_ is what it was
};

}  // namespace tactus
