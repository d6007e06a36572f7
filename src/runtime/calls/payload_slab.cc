#include "runtime/calls/payload_slab.h"

#include "base/check.h"

namespace tactus {
namespace {

constexpr std::uint64_t kChange = std::uint64_t{1} << 32;

constexpr std::uint64_t Head(std::uint64_t before, std::uint32_t index) {
  return ((before & ~(kChange - 1)) + kChange) | index;
}

}  // namespace

PayloadSlab::PayloadSlab(std::size_t calls, std::size_t bytes)
    : capacity_(calls),
      byte_limit_(bytes),
      calls_(std::make_unique<PendingCall[]>(calls)),
      free_(0) {
  CHECK(calls > 0 && calls < kNone, "call capacity");
  for (std::uint32_t i = 0; i < calls; ++i) {
    calls_[i].index = i;
    calls_[i].next_free.store(i + 1 < calls ? i + 1 : kNone, std::memory_order_relaxed);
  }
}

PendingCall* PayloadSlab::Acquire(std::size_t bytes, bool begun) {
  const std::size_t answers = begun ? 0 : answers_->load(std::memory_order_relaxed);
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes + answers > byte_limit_) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }
  std::uint64_t head = free_.load(std::memory_order_acquire);
  for (;;) {
    const auto index = static_cast<std::uint32_t>(head);
    if (index == kNone) {
      bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      return nullptr;
    }
    PendingCall& pending = calls_[index];
    const std::uint32_t next = pending.next_free.load(std::memory_order_relaxed);
    if (free_.compare_exchange_weak(head, Head(head, next), std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      pending.bytes = bytes;
      return &pending;
    }
  }
}

void PayloadSlab::Release(PendingCall& pending) {
  pending.call = InferCall{};
  pending.model.reset();
  pending.row_shapes.clear();
  pending.views.clear();
  pending.rows.clear();
  // A call of thousands of rows must not leave its buffers behind in every record it ever used.
  if (pending.rows.capacity() > 64) pending.rows.shrink_to_fit();
  if (pending.views.capacity() > 256) pending.views.shrink_to_fit();
  if (++pending.generation == 0) pending.generation = 1;
  bytes_.fetch_sub(pending.bytes, std::memory_order_relaxed);
  std::uint64_t head = free_.load(std::memory_order_relaxed);
  do {
    pending.next_free.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
  } while (!free_.compare_exchange_weak(head, Head(head, pending.index), std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
}

}  // namespace tactus
