// The policy of a worker under a central scheduler: it runs each granted batch on a free lane as
// soon as its rows are there, those of all front ends, or those that came within `patience` of the
// first. What comes without a grant, from clients that speak to the worker itself, is another
// policy's while no granted batch waits, and else runs when it is first in its queue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/learner.h"
#include "core/policy.h"
#include "site/granted_batches.h"

namespace tactus {

// Where a worker's reports go. Called in a turn of its dispatcher: must be quick.
class DonePort {
 public:
  virtual ~DonePort() = default;
  virtual void Send(const BatchDone& done) = 0;
  // So many granted batches run now.
  virtual void SetRunning(std::size_t /*batches*/) {}
};

class OrderedPolicy final : public Policy, public Learner {
 public:
  // `batches` and `port` outlive the policy; `own` decides what was not granted.
  OrderedPolicy(GrantedBatches& batches, DonePort& port, std::unique_ptr<Policy> own,
                Duration patience = Millis(2));

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnPlan(const View& view) override { own_->OnPlan(view); }
  void OnArrive(ModelId m, const Request& request) override;
  void OnPopFront(ModelId m, int count) override;
  void OnQueueChange(ModelId m) override;
  void OnLaneChange(const Lane& lane) override;
  void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                   TimePoint now) override;

 private:
  struct Gathering {
    GrantedBatches::Batch batch;
    ModelId model;
    std::uint32_t group = 0;
    std::uint32_t came = 0;
    TimePoint since;  // of the first row
  };

  std::optional<Decision> RunHead(const View& view, ModelId m, TimePoint now, TimePoint& again);
  // Batches whose rows all left the queue without running.
  void EndVoid(const View& view);
  void End(std::uint32_t group, const BatchKey& key, Duration took, BatchStatus status);

  GrantedBatches& batches_;
  DonePort& port_;
  const std::unique_ptr<Policy> own_;
  Learner* const own_learner_;
  const Duration patience_;
  std::unordered_map<std::uint32_t, Gathering> gathering_;  // by group
  std::unordered_map<std::uint64_t, Gathering> running_;    // by BatchId
  std::optional<Gathering> launching_;                      // the decision just given runs it
  bool left_ = false;                                       // rows left a queue, not to run
};

}  // namespace tactus
