// The thread that owns the Dispatcher. It takes arrivals and cancellations from the front ends and
// finished batches from the lanes, reads the clock once per turn, steps the dispatcher, and carries
// out what it says. Per request it allocates nothing and takes no lock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/ring.h"
#include "dispatch/dispatcher.h"
#include "runtime/doorbell.h"
#include "runtime/lane_worker.h"
#include "runtime/payload_slab.h"
#include "runtime/reply_thread.h"
#include "runtime/wall_clock.h"

namespace tactus {

class DispatchLoop final : private Outbox {
 public:
  struct Options {
    DispatcherOptions dispatcher;
    std::vector<LaneSpec> lanes;
    std::vector<std::vector<int>> lane_cores;  // by LaneId
    std::vector<int> cores;                    // of the dispatch thread itself
    Duration spin{};
  };

  DispatchLoop(Options options, const WallClock& clock, Policy& policy, Journal* journal,
               PayloadSlab& slab, ReplyThread& replies);
  ~DispatchLoop() override;  // Stop

  void Start();
  // When nothing waits and nothing runs.
  void Stop();

  // From any thread. `slot` is filled; it belongs to the loop until it is answered.
  void Submit(CallSlot& slot);
  void Cancel(CallId call);

  // Blocks until the dispatch thread has adopted them. `served` by ModelId; null: not loaded.
  void Configure(std::shared_ptr<const Deployment> deployment, std::vector<ServedModel*> served);
  // Stops the batches that run, as far as their engines can.
  void AbandonRunning();

  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }
  const std::vector<std::unique_ptr<LaneWorker>>& workers() const { return workers_; }
  LaneId lane_of(std::size_t worker) const { return lane_of_[worker]; }

 private:
  struct Message {
    enum class Kind : std::uint32_t { kArrive, kCancel };
    Kind kind = Kind::kArrive;
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
  };
  struct Control {
    std::shared_ptr<const Deployment> deployment;  // null: no change
    std::vector<ServedModel*> served;
    bool abandon_running = false;
  };

  // Outbox.
  void Launch(const Batch& batch) override;
  void Abort(LaneId lane, BatchId batch) override;
  void Reject(ModelId model, const Request& request, DropReason reason) override;
  void Complete(const Batch& batch, const BatchReport& report) override;

  void Run();
  void Carry(Control control);
  void TakeControl();
  void TakeFinished(TimePoint now);
  void TakeMessages(TimePoint now);
  void Admit(CallSlot& slot, TimePoint now);
  void CancelCall(const Message& message);
  void Finish(LaunchOrder& order, TimePoint now);
  void AbandonOrder(LaunchOrder& order);
  void RefuseWhole(CallSlot& slot, DropReason reason, TimePoint now);
  void AnswerIfDone(CallSlot& slot);
  bool HasWork() const;

  const Options options_;
  const WallClock& clock_;
  PayloadSlab& slab_;
  ReplyThread& replies_;
  Dispatcher dispatcher_;

  Doorbell bell_;
  MpscRing<Message> messages_;
  std::vector<std::unique_ptr<LaneWorker>> workers_;
  std::vector<LaneId> lane_of_;  // by worker
  std::vector<ServedModel*> served_;
  LaunchOrder* finishing_ = nullptr;  // during Dispatcher::Finish
  TimePoint now_{};                   // of this turn
  std::uint64_t next_request_ = 0;
  std::size_t running_rows_ = 0;
  bool configured_ = false;  // a policy is asked nothing before its first Prepare
  std::atomic<std::size_t> pending_{0};

  std::atomic<bool> control_waits_{false};
  std::atomic<bool> stop_{false};
  std::mutex control_mutex_;  // taken by the dispatch thread only when control_waits_
  std::condition_variable control_done_;
  std::vector<Control> controls_;
  std::uint64_t controls_posted_ = 0;
  std::uint64_t controls_carried_ = 0;
  std::thread thread_;
};

}  // namespace tactus
