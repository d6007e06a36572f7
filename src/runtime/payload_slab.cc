#include "runtime/payload_slab.h"

#include "base/check.h"

namespace tactus {
namespace {

constexpr std::uint64_t kChange = std::uint64_t{1} << 32;

constexpr std::uint64_t Head(std::uint64_t before, std::uint32_t index) {
  return ((before & ~(kChange - 1)) + kChange) | index;
}

}  // namespace

PayloadSlab::PayloadSlab(std::size_t calls, std::size_t bytes)
    : capacity_(calls), byte_limit_(bytes), slots_(std::make_unique<CallSlot[]>(calls)), free_(0) {
  CHECK(calls > 0 && calls < kNone, "call capacity");
  for (std::uint32_t i = 0; i < calls; ++i) {
    slots_[i].index = i;
    slots_[i].next_free.store(i + 1 < calls ? i + 1 : kNone, std::memory_order_relaxed);
  }
}

CallSlot* PayloadSlab::Acquire(std::size_t bytes) {
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > byte_limit_) {
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
    CallSlot& slot = slots_[index];
    const std::uint32_t next = slot.next_free.load(std::memory_order_relaxed);
    if (free_.compare_exchange_weak(head, Head(head, next), std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      slot.bytes = bytes;
      return &slot;
    }
  }
}

void PayloadSlab::Release(CallSlot& slot) {
  slot.call = InferCall{};
  slot.model.reset();
  slot.row_shapes.clear();
  slot.views.clear();
  slot.rows.clear();
  // A call of thousands of rows must not leave its buffers behind in every slot it ever used.
  if (slot.rows.capacity() > 64) slot.rows.shrink_to_fit();
  if (slot.views.capacity() > 256) slot.views.shrink_to_fit();
  if (++slot.generation == 0) slot.generation = 1;
  bytes_.fetch_sub(slot.bytes, std::memory_order_relaxed);
  std::uint64_t head = free_.load(std::memory_order_relaxed);
  do {
    slot.next_free.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
  } while (!free_.compare_exchange_weak(head, Head(head, slot.index), std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
}

}  // namespace tactus
