// Flat combining: the submitter runs pending work unless another thread already is. One thread at a
// time does, and nobody waits: a thread that finds the work under way leaves a mark, and the one at
// work looks once more before it leaves.
//
//   void Look() {                         // from any thread, once its work is where Turn finds it
//     if (!combiner.Take()) return;       // another thread is at work and will see it
//     do {
//       combiner.Begin();
//       Turn();
//     } while (!combiner.Release());
//   }
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ring.h"

namespace tactus {

// Every step is a read-modify-write of one word, so the turn that follows a Take sees what the
// thread wrote before it, whether that Take succeeded or not.
class FlatCombiner {
 public:
  // False: another thread is at work, and its Release will fail.
  bool Take() { return word_.exchange(kAsked, std::memory_order_acq_rel) == kFree; }
  // Before each turn.
  void Begin() { word_.exchange(kHeld, std::memory_order_acq_rel); }
  // False: a thread asked since Begin, and the caller is still the one at work.
  bool Release() {
    std::uint32_t held = kHeld;
    return word_.compare_exchange_strong(held, kFree, std::memory_order_acq_rel,
                                         std::memory_order_acquire);
  }
  // Releases whether or not a thread asked; the caller makes sure that another thread looks.
  void Drop() { word_.exchange(kFree, std::memory_order_acq_rel); }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kAsked = 2;

  alignas(kCacheLine) std::atomic<std::uint32_t> word_{kFree};
};

}  // namespace tactus
