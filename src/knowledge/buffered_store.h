// A store that is written by a thread of its own, so that nobody waits for it: what is handed over
// waits in a WriteBuffer while the store is away, and is written when it is back, in order and
// once.
//
//   BufferedStore history(Must(OpenStore(where)), term);
//   history.Write(std::move(batch), now);   // returns at once, whatever the store does
//
// To read, open another Store of the same place.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "knowledge/store.h"
#include "knowledge/write_buffer.h"

namespace tactus::knowledge {

// Between attempts to write to a store that is away: doubles from the first to the most.
struct RetryPause {
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds most{5'000};
};

class BufferedStore {
 public:
  struct Counts {
    std::uint64_t written = 0;  // records
    std::uint64_t waiting = 0;  // batches
    std::uint64_t dropped = 0;  // records: the store was away for too long
    std::uint64_t refused = 0;  // records that the store will never take
    bool superseded = false;    // another controller leads: nothing is written any more
    std::string last_error;     // empty: the last attempt went well
  };

  // One for each term: it numbers its batches from 1 on.
  BufferedStore(std::unique_ptr<StoreWriter> store, std::uint64_t term,
                const BufferLimits& limits = {}, const RetryPause& pause = {});
  // Waits for the attempt that is under way; what waits then is lost. Flush() first.
  ~BufferedStore();
  BufferedStore(const BufferedStore&) = delete;
  BufferedStore& operator=(const BufferedStore&) = delete;

  // From any thread; `now` does not go back. Term and sequence number are this object's to give.
  void Write(Batch batch, UtcTime now);
  // Retention as of `now`, when there is nothing to write.
  void Retain(UtcTime now, const Retention& limits = {});
  // Waits until all is written, for so long at most; whether it is.
  bool Flush(std::chrono::milliseconds most);

  Counts counts() const;

 private:
  struct Errand {
    UtcTime now{};
    Retention limits;
  };
  void Run();
  // Commits the oldest batch, or does the errand, without holding the lock.
  void WriteOldest(std::unique_lock<std::mutex>& lock);
  void RunErrand(std::unique_lock<std::mutex>& lock);
  // Waits before the next attempt.
  void PauseForRetry(std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<StoreWriter> store_;  // the thread's
  const std::uint64_t term_;
  const RetryPause pause_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  WriteBuffer buffer_;
  std::optional<Errand> errand_;
  Counts counts_;
  std::chrono::milliseconds next_pause_;
  bool busy_ = false;  // a batch or an errand is under way
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tactus::knowledge
