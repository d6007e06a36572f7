#include "platform/held_turns.h"

#include <algorithm>
#include <thread>

namespace tactus {
namespace {

// Aligned as in runtime/calls/dispatch_turns.cc, for the same linker.
alignas(8) thread_local HeldTurns* on_this_thread = nullptr;

}  // namespace

void TurnTaker::AwaitHeld() const {
  while (holders_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

HeldTurns::HeldTurns() : outermost_(on_this_thread == nullptr) {
  if (outermost_) on_this_thread = this;
}

HeldTurns::~HeldTurns() {
  if (!outermost_) return;
  Take();
  on_this_thread = nullptr;
}

void HeldTurns::Take() {
  if (!outermost_) return;
  const std::array<TurnTaker*, 4> takers = takers_;
  const std::size_t count = count_;
  count_ = 0;
  on_this_thread = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    takers[i]->TakeTurns();
    takers[i]->holders_.fetch_sub(1, std::memory_order_release);
  }
  on_this_thread = this;
}

bool HeldTurns::Hold(TurnTaker& taker) {
  HeldTurns* held = on_this_thread;
  if (held == nullptr) return false;
  const auto end = held->takers_.begin() + static_cast<std::ptrdiff_t>(held->count_);
  if (std::find(held->takers_.begin(), end, &taker) != end) return true;
  if (held->count_ == held->takers_.size()) return false;
  taker.holders_.fetch_add(1, std::memory_order_acquire);
  held->takers_[held->count_++] = &taker;
  return true;
}

}  // namespace tactus
