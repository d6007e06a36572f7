// Answers calls: joins rows, counts, tells the observer and calls the front end back. Whoever
// takes a turn of the dispatch loop answers what it ended unless it has a batch to run; then the
// thread of its own does, so that neither deciding nor running batches waits. Several may answer at
// once, each other calls: writing an answer costs a front end more than all that went before.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/ring.h"
#include "platform/doorbell.h"
#include "platform/wall_clock.h"
#include "runtime/calls/payload_slab.h"
#include "runtime/models/served_model.h"
#include "service/loop_delay.h"
#include "service/observer.h"

namespace tactus {

struct BatchEvent {
  ServedModel* model = nullptr;  // its `running` count keeps it alive
  BatchRecord record;
};

class ReplyQueue {
 public:
  struct Options {
    std::vector<int> cores;
    Duration spin{};
    // Takes over a call that a batch failed which its model was assumed to have and has not. It is
    // still counted in `calls`. Empty: such calls end with the error.
    std::function<void(InferCall&&, std::shared_ptr<ServedModel>, Error why)> not_batched = {};
    // The shapes of the first call that a model answered which nobody could try. Empty: none asks.
    std::function<void(std::shared_ptr<ServedModel>, std::map<std::string, Shape>)> shown = {};
  };
  // `calls` counts the calls under way; one is taken off it after each reply.
  ReplyQueue(Options options, PayloadSlab& slab, const WallClock& clock, Observer* observer,
             std::atomic<std::int64_t>& calls);
  ~ReplyQueue();  // Stop

  void Start();
  // Answers what is left first.
  void Stop();

  // Inside a turn of the dispatch loop; neither waits for a front end. Every call fits into the
  // ring. Somebody must Serve or Wake after the turn. Steps linked behind it are answered by the
  // same thread, and what their pipelines start next is decided together.
  void Answer(PendingCall& pending);
  // An observer may miss a batch when thousands wait to be told; nothing else depends on it.
  void Report(const BatchEvent& event);

  // Answers on the caller's thread while it is not `wanted()` elsewhere; the rest is the thread's.
  template <class Wanted>
  void Serve(Wanted wanted);
  // The thread answers, if there is anything to answer.
  void Wake();
  // By how much calls were answered after the end that was expected of their batch.
  const LoopDelay& overruns() const { return overruns_; }

 private:
  void Run();
  bool Idle() const { return answers_.Empty() && batches_.Empty(); }
  // One of each; false if there was nothing.
  bool Drain();
  void AnswerAll(PendingCall& first);
  void AnswerNow(PendingCall& pending);

  const Options options_;
  PayloadSlab& slab_;
  const WallClock& clock_;
  Observer* const observer_;
  std::atomic<std::int64_t>& calls_;
  MpmcRing<PendingCall*> answers_;
  MpmcRing<BatchEvent> batches_{4096};
  Doorbell bell_;
  LoopDelay overruns_;
  std::atomic<bool> asked_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

template <class Wanted>
void ReplyQueue::Serve(Wanted wanted) {
  while (!Idle()) {
    if (wanted()) return Wake();
    if (!Drain()) return;  // what is left, others have taken
  }
}

}  // namespace tactus
