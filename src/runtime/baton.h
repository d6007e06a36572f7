// Work that whoever brings it carries out, one thread at a time, and nobody waits for. A thread
// that finds the work under way leaves a mark, and the one at work looks once more before it goes.
//
//   void Look() {                       // from any thread, after it has put work where Turn finds
//   it
//     if (!baton.Take()) return;        // another thread holds it and will see the work
//     do {
//       baton.Begin();
//       Turn();
//     } while (!baton.LayDown());
//   }
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ring.h"

namespace tactus {

// Every step is a read-modify-write of one word, so what a thread wrote before its Take, whether it
// got the baton or not, is seen by the turn that follows.
class Baton {
 public:
  // False: another thread holds it, and its LayDown will fail.
  bool Take() { return word_.exchange(kAsked, std::memory_order_acq_rel) == kFree; }
  // Before each turn.
  void Begin() { word_.exchange(kHeld, std::memory_order_acq_rel); }
  // False: somebody asked since Begin, and the caller still holds it.
  bool LayDown() {
    std::uint32_t held = kHeld;
    return word_.compare_exchange_strong(held, kFree, std::memory_order_acq_rel,
                                         std::memory_order_acquire);
  }
  // Lays it down whether or not somebody asked; the caller must see to it that another thread
  // looks.
  void Drop() { word_.exchange(kFree, std::memory_order_acq_rel); }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kAsked = 2;

  alignas(kCacheLine) std::atomic<std::uint32_t> word_{kFree};
};

}  // namespace tactus
