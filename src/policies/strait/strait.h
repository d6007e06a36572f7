// Strait (docs/papers/strait.md): batches share a device where the scheduler expects that each
// still meets its deadline, and that no running batch of equal or higher priority misses its own.
//
// Latency is estimated (Eq. 1) as the profiled latency, plus the wait for the link (Eq. 2), plus
// what the neighbours cost (Eq. 4 to 6, interference.h); the time already waited is in the
// deadline. Algorithm 1: queues by priority; hopeless requests go; of a queue the largest batch
// that some device can take, by bisection; the device with the least estimate.
//
// Not in the paper:
//   - n levels of priority: every level but the highest is under the cap.
//   - A running batch that will miss its deadline anyway forbids nothing.
//   - A low batch alone among low ones may exceed the cap: else a model that needs more than the
//     cap would never run.
//   - A batch waits to form only where its device is full and its first request has time to spare.
//   - Nobody starves: a queue that always holds a request which could still be met alone gets a
//     batch of one within `starve` and the time until a slot is free then, whatever the load of the
//     others; several such queues take turns, the one that waited longest first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/policy.h"
#include "core/prediction_errors.h"
#include "policies/lost_heads.h"
#include "policies/priority_order.h"
#include "policies/strait/device_record.h"
#include "policies/strait/interference.h"
#include "policies/strait/throttle.h"

namespace tactus {

struct StraitOptions {
  InterferenceOptions interference;
  ThrottleOptions throttle;
  double formation = 0.1;  // how long a first request waits for others at most, of its SLO
  double slack = 1.5;      // what it keeps until its deadline, times a full batch alone
  double room = 1;         // a device that the batch would not use beyond this gets it at once
  double half = 0.5;       // of a device's present throughput that meet() counts on
  Duration starve = Seconds(1);
  // Parts of Algorithm 1, to be taken away one by one (Appendix A.3).
  bool ordered = true;   // queues by priority
  bool meets = true;     // meet(); without it a batch must meet its deadline alone
  bool protects = true;  // the second condition of violate()
  bool capped = true;    // the first
};

class Strait final : public Policy {
 public:
  Strait(std::string name, const StraitOptions& options);

  std::string_view name() const override { return name_; }
  void Prepare(const View& view) override;
  Decision Decide(const View& view, TimePoint now) override;
  void OnPopFront(ModelId m, int count) override;
  void OnLaneChange(const Lane& lane) override;
  void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                   TimePoint now) override;
  std::uint64_t examined() const override { return examined_; }
  // Of the kernels' time, of batches that had neighbours.
  const PredictionErrors* prediction_errors() const override { return &errors_; }

  std::optional<LearnedState> Learned() const override { return interference_.Save(); }
  Status Resume(const LearnedState& learned) override { return interference_.Restore(learned); }

  const Interference& interference() const { return interference_; }
  double Cap(TimePoint now) const { return throttle_.Cap(now); }

 private:
  // A batch that might be launched.
  struct Candidate {
    ModelId model;
    ExitId exit;
    int batch = 0;
    int level = 0;
    TimePoint deadline;
  };
  struct Place {
    LaneId lane;
    Duration estimate;
  };

  std::optional<Place> FindPlace(const View& view, const Candidate& candidate, TimePoint now);
  bool Violates(const DeviceRecord& device, const Throughput& own, int level, TimePoint now) const;
  bool ExceedsCap(const DeviceRecord& device, const Throughput& own, TimePoint now) const;
  bool WouldMiss(const DeviceRecord& device, const OngoingBatch& batch, const Throughput& added,
                 TimePoint now) const;
  Duration Estimate(const View& view, const Candidate& candidate, const Lane& lane,
                    TimePoint now) const;

  TimePoint ReadyAt(const View& view, ModelId m, TimePoint now) const;
  std::optional<Decision> Try(const View& view, ModelId m, TimePoint now);
  std::optional<Decision> Feed(const View& view, TimePoint now);
  Decision Launch(const Candidate& candidate, LaneId lane);
  void TrackHunger(const View& view, TimePoint now);
  OngoingBatch Record(const RunningBatch& batch, const Lane& lane) const;

  const std::string name_;
  const StraitOptions options_;
  Interference interference_;
  Throttle throttle_;
  PriorityOrder order_;
  LostHeads lost_;
  PredictionErrors errors_;
  std::vector<DeviceRecord> devices_;  // by LaneId
  std::vector<TimePoint>
      hungry_;  // by ModelId: since when it waits unserved; kNever: not looked at yet
  std::vector<bool> dropped_;  // by ModelId: since it was last served
  const ProfileTable* profile_ = nullptr;
  std::optional<Dispatch> launched_;  // decided, and not yet carried out
  std::optional<Drop> given_up_;
  bool missed_ = false;  // a request of the highest level, since the last question
  std::uint64_t examined_ = 0;
};

}  // namespace tactus
