// Work that one thread brings in pieces and that is decided as one. Whoever answers the calls of a
// batch may bring the next step of each: taken one by one, the first would run alone on a free
// lane, with the others behind it.
//
//   HeldTurns held;             // on a thread that brings several pieces
//   for (...) loop.Submit(...)  // each asks Hold, and takes no turn of its own
//                               // the end of `held`: one turn takes all of them
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace tactus {

// Has turns that threads take for it.
class TurnTaker {
 public:
  virtual void TakeTurns() = 0;
  // Blocks until no thread is still to take a turn that it held.
  void AwaitHeld() const;

 protected:
  ~TurnTaker() = default;

 private:
  friend class HeldTurns;
  std::atomic<int> holders_{0};
};

// While one lives on a thread, turns that the thread asks for are held. One inside another does
// nothing: the outer one holds.
class HeldTurns {
 public:
  HeldTurns();
  ~HeldTurns();  // Take
  HeldTurns(const HeldTurns&) = delete;
  HeldTurns& operator=(const HeldTurns&) = delete;

  // Takes those that were asked for so far. What their turns bring in is not held.
  void Take();

  // True: this thread will take a turn of `taker` later, whatever is brought until then. False: the
  // caller takes it now. To be asked before the work is put where a turn finds it.
  static bool Hold(TurnTaker& taker);

 private:
  const bool outermost_;
  std::array<TurnTaker*, 4> takers_{};
  std::size_t count_ = 0;
};

}  // namespace tactus
