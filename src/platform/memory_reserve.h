// Room for what a process has begun when the system gives it no more memory (ulimit -v): addresses
// that are held for then. The first allocation that fails gives them up and is tried again. Until
// they are held anew, nothing new is to be begun.
#pragma once

#include <cstddef>

namespace tactus {

class MemoryReserve {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;  // of addresses, not of memory

  // Holds the addresses, and has operator new give them up, for the life of the process. Once.
  static void Hold();
  // Whether they were given up. Tries to hold them again first; false then, and before Hold.
  static bool Spent();
};

}  // namespace tactus
