// Batches that wait to be written, oldest first, while a store is away or slow: at most so much and
// so long. Samples go first, the oldest before the others, and are counted; plans and events
// stay. No thread and no clock: buffered_store.h has both.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>

#include "knowledge/store.h"

namespace tactus::knowledge {

struct BufferLimits {
  std::chrono::microseconds age = std::chrono::minutes(10);  // of samples
  std::size_t bytes = std::size_t{64} << 20;                 // of all batches
  std::size_t batches = 10'000;
};

class WriteBuffer {
 public:
  // Numbers batches from 1 on: for one term of one controller.
  explicit WriteBuffer(const BufferLimits& limits) : limits_(limits) {}

  // `now` does not go back. The batch's sequence number is the buffer's to give.
  void Add(Batch batch, UtcTime now);

  // The oldest batch, for someone who writes it; it stays as it is until Remove(). Null: none.
  std::shared_ptr<const Batch> Oldest();
  // It was written, or will never be.
  void Remove();
  // All are dropped.
  void Clear();

  std::size_t batches() const { return waiting_.size(); }
  std::size_t bytes() const { return bytes_; }
  // Records that were dropped without being written.
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Waiting {
    std::shared_ptr<Batch> batch;
    UtcTime added{};
    std::size_t bytes = 0;
    bool has_samples = true;
  };
  void KeepLimits(UtcTime now);
  void DropSamples(Waiting& waiting);
  bool IsFull() const { return bytes_ > limits_.bytes || waiting_.size() > limits_.batches; }

  BufferLimits limits_;
  std::deque<Waiting> waiting_;
  std::size_t bytes_ = 0;
  bool oldest_is_out_ = false;  // somebody writes it
  std::uint64_t sequence_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace tactus::knowledge
