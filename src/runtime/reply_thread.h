// Answers calls: joins rows, counts, tells the observer and calls the front end back. One thread at
// a time does so: a lane worker that has nothing to run, else the thread of its own, so that
// neither deciding nor running batches waits for it.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "base/ring.h"
#include "runtime/baton.h"
#include "runtime/doorbell.h"
#include "runtime/observer.h"
#include "runtime/payload_slab.h"
#include "runtime/served_model.h"
#include "runtime/wall_clock.h"

namespace tactus {

struct BatchEvent {
  ServedModel* model = nullptr;  // its `running` count keeps it alive
  BatchRecord record;
};

class ReplyThread {
 public:
  struct Options {
    std::vector<int> cores;
    Duration spin{};
  };
  // `calls` counts the calls under way; one is taken off it after each reply.
  ReplyThread(Options options, PayloadSlab& slab, const WallClock& clock, Observer* observer,
              std::atomic<std::int64_t>& calls);
  ~ReplyThread();  // Stop

  void Start();
  // Answers what is left first.
  void Stop();

  // Inside a turn of the dispatch loop; never block. Every slot fits into the ring. Somebody must
  // Serve or Wake after the turn.
  void Answer(CallSlot& slot);
  // An observer may miss a batch when thousands wait to be told; nothing else depends on it.
  void Report(const BatchEvent& event);

  // Answers on the caller's thread while it is not `wanted()` elsewhere; the rest is the thread's.
  template <class Wanted>
  void Serve(Wanted wanted);
  // The thread answers, if there is anything to answer.
  void Wake();

 private:
  void Run();
  bool Idle() const { return answers_.Empty() && batches_.Empty(); }
  // One of each; false if there was nothing.
  bool Drain();
  void AnswerNow(CallSlot& slot);

  const Options options_;
  PayloadSlab& slab_;
  const WallClock& clock_;
  Observer* const observer_;
  std::atomic<std::int64_t>& calls_;
  SpscRing<CallSlot*> answers_;
  SpscRing<BatchEvent> batches_{4096};
  Baton baton_;  // of the rings' consumer
  Doorbell bell_;
  std::atomic<bool> asked_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

template <class Wanted>
void ReplyThread::Serve(Wanted wanted) {
  if (Idle()) return;
  if (wanted()) return Wake();
  if (!baton_.Take()) return;
  do {
    baton_.Begin();
    while (Drain()) {
      if (!wanted()) continue;
      baton_.Drop();
      return Wake();
    }
  } while (!baton_.LayDown());
}

}  // namespace tactus
