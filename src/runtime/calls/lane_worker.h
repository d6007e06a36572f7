// The thread that runs the batches of one lane slot: it gathers the rows' inputs, hands them to the
// engine, and reports. One batch at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fixed_vector.h"
#include "base/held_bytes.h"
#include "base/ring.h"
#include "core/batch.h"
#include "core/engine.h"
#include "platform/doorbell.h"
#include "platform/wall_clock.h"
#include "runtime/calls/payload_slab.h"
#include "runtime/models/served_model.h"

namespace tactus {

// A batch on its way to a lane and back. It belongs to whoever holds the dispatcher, but between
// Launch and the finish to the worker.
struct LaunchOrder {
  struct Row {
    PendingCall* pending = nullptr;
    std::uint32_t row = 0;
  };
  // What became of a row of a failed batch whose calls were run again, each alone. Neither output
  // nor error: it was not run, since its call was late or nobody waited for it.
  struct Apart {
    std::shared_ptr<const BatchOutput> output;
    std::shared_ptr<const Error> error;
    bool misshapen = false;
    std::uint32_t position = 0, batch = 1;  // its place among the rows that ran, and their number
    bool first = false;                     // of the rows that came of one run
    Duration gather{}, infer{}, scatter{};
  };

  LaunchOrder() : rows(kMaxBatch) {}

  BatchId id;
  LaneId lane;
  ExitId exit;
  ServedModel* model = nullptr;
  TimePoint decided;
  TimePoint expected_end;
  FixedVector<Row> rows;
  bool busy = false;                   // the dispatcher's
  bool stuck = false;                  // the dispatcher's: takes far longer than it should
  std::atomic<bool> abandoned{false};  // nobody waits for it: need not start

  // The worker's answer.
  BatchReport report;
  Duration gather{}, infer{}, scatter{};
  std::shared_ptr<const BatchOutput> output;
  std::shared_ptr<const Error> error;
  // With an error: what the model takes for a batch is none (BatchResult::misshapen, or all calls
  // run well alone and not together).
  bool no_batch = false;
  std::vector<Apart> apart;  // by row, where the batch failed and its calls ran apart; else empty
  // Where the lane died: under these rows, perhaps because of one of them.
  std::vector<Row> suspects;
};

struct LaneWorkerOptions {
  LaneId lane;
  int slot = 0;
  std::vector<int> cores;  // where it runs; empty: anywhere
  Duration spin{};
  bool gives_up_late = true;  // late calls are not run apart
  std::shared_ptr<HeldBytes::Count>
      answers;  // counts what batches answer, for as long as it is held
};

class LaneWorker final : private Completions {
 public:
  // Told on the worker's thread, or that of a deferred engine.
  class Listener {
   public:
    virtual ~Listener() = default;
    // The batch in `worker.order()` is done. The listener may launch the next one at once.
    virtual void OnFinished(LaneWorker& worker) = 0;
  };

  LaneWorker(LaneWorkerOptions options, const WallClock& clock, Listener& listener);
  ~LaneWorker() override;  // Stop
  LaneWorker(const LaneWorker&) = delete;
  LaneWorker& operator=(const LaneWorker&) = delete;

  void Start();  // again: no effect
  // To other cores than the options', from now on.
  void Pin(std::vector<int> cores);
  // After the last batch was reported.
  void Stop();

  // For whoever holds the dispatcher.
  LaunchOrder& order() { return order_; }
  void Launch();  // order() is filled
  // Instead of Launch, on the caller's thread; the listener is not told.
  void RunHere() { RunBatch(order_); }
  // Instead of Launch where the engine is deferred: on the caller's thread, at once. It needs no
  // Start.
  void Submit();

  // For the worker's thread: the next batch is here already.
  bool HasNext() const { return !launches_.Empty(); }

  // The run that is under way in the engine, from any thread; `begun` is kNever where none is. A
  // batch whose calls run apart is several runs.
  struct Running {
    TimePoint begun = kNever;
    Duration expected{};
  };
  Running running() const;

  // Time spent in batches, with that of the one under way. Never falls. From any thread.
  Duration busy() const;
  std::int64_t batches() const { return batches_.load(std::memory_order_relaxed); }

 private:
  void Run();
  void RunBatch(LaunchOrder& order);
  void Begin(LaunchOrder& order);
  void HandToEngine(LaunchOrder& order);
  bool NextApart(LaunchOrder& order);
  bool WorthRunning(const LaunchOrder& order, const PendingCall& pending) const;
  void BeginApart(LaunchOrder& order);
  bool SkipToCall(const LaunchOrder& order);
  bool RunsNow(const LaunchOrder::Row& row) const;
  bool RunsWhole(const LaunchOrder& order) const;
  void Take(BatchResult&& result);
  void TakeApart(BatchResult&& result);
  void Count(const LaunchOrder& order);
  void Book(Duration busy);
  std::shared_ptr<const BatchOutput> Counted(std::shared_ptr<const BatchOutput> output) const;
  void Done(BatchId batch, BatchResult&& result) noexcept override;

  const LaneWorkerOptions options_;
  const WallClock& clock_;
  Listener& listener_;
  LaunchOrder order_;
  SpscRing<LaunchOrder*> launches_{2};
  Doorbell bell_;           // of launches, for the worker's thread
  Doorbell answered_bell_;  // of the engine's report, for the thread that runs the batch
  std::vector<RowInputs> inputs_;
  bool failed_together_ = false;       // the batch, whose calls run apart for it
  std::size_t apart_row_ = 0;          // first row of the call that runs alone; see order_.apart
  std::atomic<bool> answered_{false};  // the engine's report of the batch that runs is in order_
  bool tell_ = false;  // the batch that runs is a deferred engine's: Done tells the listener
  std::atomic<bool> stop_{false};
  std::atomic<TimePoint> run_begun_{kNever};
  std::atomic<std::int64_t> run_expected_ns_{0};
  std::atomic<std::uint32_t> booking_{0};  // odd while the next two change
  std::atomic<std::int64_t> busy_ns_{0};   // of batches that have ended
  std::atomic<TimePoint> busy_since_{kNever};
  std::atomic<std::int64_t> batches_{0};
  std::mutex thread_mutex_;  // of the next two
  std::vector<int> cores_;
  std::thread thread_;
};

}  // namespace tactus
