// Drives the Dispatcher in real time, in turns: a turn takes arrivals and cancellations from the
// front ends and finished batches from the lanes, reads the clock once, steps the dispatcher, and
// carries out what it says. Per request it allocates nothing and takes no lock.
//
// A turn runs on the thread that has a reason for it: the front end's that brings a call, the lane
// worker's whose batch is done, or, when an instant is due, the loop's own. Turns never overlap
// (see platform/flat_combiner.h). So a batch follows the one before it on the same thread, with no
// hand-over between.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/ring.h"
#include "dispatch/dispatcher.h"
#include "platform/doorbell.h"
#include "platform/flat_combiner.h"
#include "platform/held_turns.h"
#include "platform/wall_clock.h"
#include "runtime/calls/lane_worker.h"
#include "runtime/calls/payload_slab.h"
#include "runtime/calls/reply_queue.h"

namespace tactus {

class DispatchTurns final : private Outbox, private LaneWorker::Listener, private TurnTaker {
 public:
  struct Options {
    DispatcherOptions dispatcher;
    std::vector<LaneSpec> lanes;
    std::vector<int> cores;  // of the loop's own thread
    Duration spin{};
    // A lane died, and why; in a turn, so it must be quick. Empty: nobody is told.
    std::function<void(LaneId, const Error&)> lost = {};
    bool plans = false;  // lanes are opened and closed by plans
  };

  DispatchTurns(Options options, const WallClock& clock, Policy& policy, Journal* journal,
                PayloadSlab& slab, ReplyQueue& replies);
  ~DispatchTurns() override;  // Stop

  void Start();
  // When nothing waits and nothing runs.
  void Stop();

  // From any thread. `pending` is filled; it belongs to the loop until it is answered. Where the
  // thread holds turns (platform/held_turns.h), what it submits is decided together.
  void Submit(PendingCall& pending);
  void Cancel(CallId call);

  // A turn is due, whatever happens. From any thread.
  void Nudge() { HandOver(); }

  // The lanes' threads, which engines need that are not deferred. Throws std::system_error where
  // there is no room for a thread. Again: no effect. Thread-safe.
  void StartWorkers();
  // Blocks until a turn has adopted them; one call at a time. `served` by ModelId; null: not
  // loaded. `plan` by ModelId and LaneId; null: the one there was, if any.
  void Configure(std::shared_ptr<const ServedModels> served_models,
                 std::vector<ServedModel*> served, std::shared_ptr<const Plan> plan = nullptr);
  // Blocks until a turn has called it.
  void Change(std::function<void(Dispatcher&)> change);
  // The threads of the lane run on these cores from now on; empty: anywhere they may.
  void Pin(LaneId lane, const std::vector<int>& cores);
  // A run takes far longer than it should: the one of workers()[worker] that began at `begun`. A
  // lane all of whose slots are held by such runs is closed until one of them ends, unless lanes
  // come and go with plans; what waits for a model that no other lane serves is refused, and so is
  // what comes. A run for which nobody waits in time any more is stopped where the engine can. The
  // model's name; empty where the run has ended. Blocks until a turn has done it.
  std::string HoldStuck(std::size_t worker, TimePoint begun);
  // The lane's engine gives no sign of life, or does again: meanwhile the lane is closed, and what
  // waits goes on waiting. One that is opened by somebody else stays open. Whether it was silent
  // before. Blocks until a turn has done it.
  bool SetSilent(LaneId lane, bool silent);
  // The lane died, as far as the caller knows: it is closed. False where it was closed already but
  // for its silence, or runs a batch, which will tell. Blocks until a turn has done it.
  bool LoseIdle(LaneId lane);
  // Within Change: the lane, made anew, is opened.
  void OpenAnew(LaneId lane);
  // Whether every lane is held by such runs, silent, or has been dead for a while. From any thread.
  bool AllHeld() const;
  // Runs that were ever held so, by LaneId, and whether the lane is now.
  struct StuckReading {
    std::int64_t runs = 0;
    bool now = false;
    bool held = false;        // as AllHeld has it
    std::int64_t deaths = 0;  // of its engine, ever
  };
  StuckReading stuck(LaneId lane) const;
  // Stops the batches that run, as far as their engines can.
  void AbandonRunning();

  // Whether the caller is inside a turn, of whichever loop.
  static bool InTurn();

  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }
  const std::vector<std::unique_ptr<LaneWorker>>& workers() const { return workers_; }
  std::size_t lanes() const { return options_.lanes.size(); }
  LaneId lane_of(std::size_t worker) const { return lane_of_[worker]; }

 private:
  struct Message {
    enum class Kind : std::uint32_t { kArrive, kCancel };
    Kind kind = Kind::kArrive;
    std::uint32_t call = 0;
    std::uint32_t generation = 0;
  };
  struct StuckLane {
    int slots = 0;                      // held by runs that take too long
    bool closed = false;                // for it, or for its silence
    std::atomic<std::int64_t> runs{0};  // ever
    std::atomic<bool> now{false};       // all slots are held
    std::atomic<bool> silent{false};    // its engine gives no sign of life
    std::atomic<TimePoint> dead_since{kNever};
    std::atomic<std::int64_t> deaths{0};
  };
  bool IsHeld(const StuckLane& lane) const;
  void Die(StuckLane& lane) const;
  struct Control {
    std::shared_ptr<const ServedModels> served_models;  // null: no change
    std::vector<ServedModel*> served;
    std::shared_ptr<const Plan> plan;         // null: no change
    std::function<void(Dispatcher&)> change;  // empty: none
    bool abandon_running = false;
  };

  // Outbox.
  void Launch(const Batch& batch) override;
  void Abort(LaneId lane, BatchId batch) override;
  void Reject(ModelId model, const Request& request, DropReason reason) override;
  void Complete(const Batch& batch, const BatchReport& report) override;
  void Followed(ModelId model, LaneClass lane_class, double ratio) override;

  // LaneWorker::Listener.
  void OnFinished(LaneWorker& worker) override;

  // TurnTaker: on a front end's thread, or one that answers: turns, batches too short to hand over,
  // and their answers.
  void TakeTurns() override;

  void Run();
  bool Look(int most_turns, LaneWorker** here = nullptr);
  void HandOver();
  bool Turn();
  void SetWake(TimePoint wake);
  void Carry(Control control);
  void TakeControl();
  void TakeFinished(TimePoint now);
  bool TakeMessages(TimePoint now);
  void Admit(PendingCall& pending, TimePoint now);
  // Of a call's time, what answers of late took longer than expected: a policy that uses all of it
  // would be late by as much.
  Duration Reserve(const PendingCall& pending) const;
  void CancelCall(const Message& message);
  void Finish(LaunchOrder& order, TimePoint now);
  void AbandonOrder(LaunchOrder& order);
  std::string HoldStuckNow(LaneWorker& worker, TimePoint begun);
  void CloseStuck(LaneId lane);
  void Hold(LaneId lane);
  void Release(LaneId lane);
  void EndStuck(LaunchOrder& order);
  void RefuseWaiting();
  // Why no lane can run it for now; null: one can.
  std::shared_ptr<const Error> NoLaneFor(const ServedModel& model) const;
  bool OnlyStuck(ModelId model) const;
  void BlameSuspects(const LaunchOrder& order);
  static void EndFailed(const LaunchOrder& order, CallRow& row);
  static BatchRecord::Apart CountApart(LaunchOrder& order);
  void RefuseWhole(PendingCall& pending, DropReason reason, TimePoint now,
                   std::shared_ptr<const Error> error = nullptr);
  void LetGo(const LaunchOrder& order);
  void AnswerIfDone(PendingCall& pending);
  static bool Close(PendingCall& pending);

  const Options options_;
  const WallClock& clock_;
  PayloadSlab& slab_;
  ReplyQueue& replies_;
  const PredictionErrors* predictions_;  // the policy's; null: it predicts nothing
  Dispatcher dispatcher_;

  MpmcRing<Message> messages_;
  MpmcRing<LaneWorker*> finished_;
  std::vector<std::unique_ptr<LaneWorker>> workers_;  // the slots of lane 0, of lane 1, ...
  std::vector<LaneId> lane_of_;                       // by worker
  std::vector<std::size_t> first_worker_;             // by LaneId, and the end

  FlatCombiner combiner_;  // guards the dispatcher and what follows, up to the atomics
  std::vector<ServedModel*> served_;
  LaneWorker** here_ = nullptr;       // see Look
  LaunchOrder* finishing_ = nullptr;  // during Dispatcher::Finish
  TimePoint now_{};                   // of this turn
  std::uint64_t next_request_ = 0;
  std::size_t running_rows_ = 0;
  std::deque<StuckLane> stuck_lanes_;  // by LaneId
  // While what waits is refused: what its calls are told.
  std::shared_ptr<const Error> refusal_;
  Outcome refused_as_ = Outcome::kShed;
  bool configured_ = false;  // a policy is asked nothing before its first Prepare

  std::atomic<int> lanes_stuck_{0};
  std::atomic<std::size_t> pending_{0};
  std::atomic<bool> control_waits_{false};
  std::mutex control_mutex_;  // taken in a turn only when control_waits_
  std::condition_variable control_done_;
  std::vector<Control> controls_;
  std::uint64_t controls_posted_ = 0;
  std::uint64_t controls_carried_ = 0;

  // The loop's own thread sleeps until `sleeps_until_`, which is never later than `wake_` for long:
  // who lowers `wake_` below it rings.
  Doorbell bell_;
  std::atomic<TimePoint> wake_{kNever};          // when the next turn is due, whatever happens
  std::atomic<TimePoint> sleeps_until_{kStart};  // kStart: it is awake
  std::atomic<bool> handed_over_{false};         // a turn is due now
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tactus
