// The thread that answers: it joins rows, counts, tells the observer and calls the front end back,
// so that neither deciding nor running batches waits for it.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "base/ring.h"
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

  // For the dispatch thread; never block. Every slot fits into the ring.
  void Answer(CallSlot& slot);
  // An observer may miss a batch when thousands wait to be told; nothing else depends on it.
  void Report(const BatchEvent& event);

 private:
  void Run();
  bool Drain();
  void AnswerNow(CallSlot& slot);

  const Options options_;
  PayloadSlab& slab_;
  const WallClock& clock_;
  Observer* const observer_;
  std::atomic<std::int64_t>& calls_;
  SpscRing<CallSlot*> answers_;
  SpscRing<BatchEvent> batches_{4096};
  Doorbell bell_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tactus
