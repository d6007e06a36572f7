// What both versions of Strait (strait.h, strait_plain_for_test.h) remember and how they learn: the
// devices' running batches, the predictor, the cap, who waits unserved. How they decide is not
// here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/learner.h"
#include "core/policy.h"
#include "core/prediction_errors.h"
#include "policies/departures.h"
#include "policies/lost_heads.h"
#include "policies/priority_order.h"
#include "policies/strait/device_record.h"
#include "policies/strait/interference.h"
#include "policies/strait/tail_slowdown.h"
#include "policies/strait/throttle.h"

namespace tactus {

struct StraitOptions {
  InterferenceOptions interference;
  ThrottleOptions throttle;
  double formation = 0.1;  // how long a first request waits for others at most, of its SLO
  double slack = 1.5;      // what it keeps until its deadline, times a full batch alone
  // A device that the batch would not use beyond this, and where it leaves a slot, gets it at once.
  double room = 1;
  double half = 0.5;  // of a device's present throughput that meet() counts on
  // Lower batches may join one that is in time though its neighbours cost it as much as they cost
  // this part of batches at most (tail_slowdown.h); 0: as much as is expected.
  double tail_quantile = 0.999;
  Duration starve = Seconds(1);
  // Parts of Algorithm 1, to be taken away one by one (Appendix A.3).
  bool ordered = true;   // queues by priority
  bool meets = true;     // meet(); without it a batch must meet its deadline alone
  bool protects = true;  // the second condition of violate()
  bool capped = true;    // the first
};

// A batch that might be launched.
struct StraitCandidate {
  ModelId model;
  ExitId exit;
  int batch = 0;
  int level = 0;       // of the requests that it holds
  TimePoint deadline;  // of its most urgent request
};

class StraitRecords : public Policy, public Learner {
 public:
  void Prepare(const View& view) override;
  void OnPopFront(ModelId m, int count) final;
  void OnLaneChange(const Lane& lane) override;
  void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                   TimePoint now) override;
  const PredictionErrors* prediction_errors() const final { return &errors_; }
  std::optional<LearnedState> Learned() const final { return interference_.Save(); }
  Status Resume(const LearnedState& learned) override { return interference_.Restore(learned); }

  const Interference& interference() const { return interference_; }
  double Cap(TimePoint now) const { return throttle_.Cap(now); }
  // How much more than predicted a batch in the tail loses to its neighbours.
  double tail() const { return tail_.factor(); }

 protected:
  StraitRecords(std::string name, const StraitOptions& options);

  const StraitOptions& options() const { return options_; }
  PriorityOrder& order() { return order_; }
  const DeviceRecord& device(LaneId lane) const { return devices_[lane.value()]; }

  // Before any other question: books what was missed, and gives up a request that cannot finish
  // even alone, if there is one. `wake` falls to when there may be the next.
  std::optional<Drop> EarlyDrop(const View& view, TimePoint now, TimePoint& wake);
  // A queue that has waited for `starve` gets one request served, on the emptiest lane that may
  // take it; the hungriest such queue first. `wake` falls to when the next one has.
  std::optional<Dispatch> Feed(const View& view, TimePoint now, TimePoint& wake);
  // When a batch of the model may go, full or not.
  TimePoint ReadyAt(const View& view, ModelId m, TimePoint now) const;
  // Every launch is told, so that its pop is known from one that is not ours.
  Dispatch Launch(const StraitCandidate& candidate, LaneId lane);

  // Section 3.3, of a running batch: the kernel time that is left after what it has met so far, as
  // expected and in the tail.
  struct Remaining {
    Duration expected;
    Duration in_tail;
  };
  Remaining Left(const DeviceRecord& device, const OngoingBatch& batch, TimePoint now) const;
  // When it ends, as expected or in the tail, if what is `left` runs beside what is there now
  // and `added`.
  enum class Luck { kExpected, kBad };
  TimePoint EndOf(const DeviceRecord& device, const OngoingBatch& batch, const Remaining& left,
                  const Throughput& added, TimePoint now, Luck luck = Luck::kExpected) const;
  // The second condition of violate(): a candidate of `level` that adds this would make it late. By
  // a lower one it is to bear no more than it can in the tail.
  bool Delays(const DeviceRecord& device, const OngoingBatch& batch, const Remaining& left,
              const Throughput& added, int level, TimePoint now) const;
  // violate(), first condition: too much of the device for low levels with `own` added.
  bool ExceedsCap(const DeviceRecord& device, const Throughput& own, TimePoint now) const;
  // Eq. 1 without the time already waited, which the deadline knows.
  Duration Estimate(const View& view, const StraitCandidate& candidate, const Lane& lane,
                    TimePoint now) const;

 private:
  void TrackHunger(const View& view, TimePoint now);
  static const Lane* EmptiestFor(const View& view, ModelId m);
  void CountErrors(const OngoingBatch& batch, double predicted, double actual,
                   const BatchReport& report);
  OngoingBatch Record(const RunningBatch& batch, const Lane& lane) const;

  const StraitOptions options_;
  Interference interference_;
  Throttle throttle_;
  TailSlowdown tail_;
  PriorityOrder order_;
  LostHeads lost_;
  PredictionErrors errors_;
  std::vector<int> priorities_;        // by level, as learnt
  std::vector<DeviceRecord> devices_;  // by LaneId
  std::vector<Duration> slos_;         // by ModelId
  // By ModelId: since when it waits unserved; kNever: not looked at yet.
  std::vector<TimePoint> hungry_;
  std::vector<TimePoint> empty_;  // by ModelId: since when nothing waits; kNever: something does
  std::vector<bool> dropped_;     // by ModelId: since it was last served
  const ProfileTable* profile_ = nullptr;
  Departures departures_;
};

}  // namespace tactus
