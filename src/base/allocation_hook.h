// Replaces operator new of a whole program with one that tells OnAllocation each time: for a test
// or a benchmark that counts. Exactly one source file of the program includes this header and
// defines the hook.
#pragma once

#include <cstdlib>
#include <new>

namespace tactus {

// On the thread that allocates, before it does; must not allocate.
void OnAllocation() noexcept;

inline void* TryAllocateAndTell(std::size_t size) noexcept {
  OnAllocation();
  return std::malloc(size == 0 ? 1 : size);
}

inline void* AllocateAndTell(std::size_t size) {
  void* memory = TryAllocateAndTell(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace tactus

// Not inlined: the compiler would see memory of new that free() gets, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) { return tactus::AllocateAndTell(size); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return tactus::AllocateAndTell(size); }
// std::stable_sort asks so for its buffer, and gives it back as any other memory.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return tactus::TryAllocateAndTell(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return tactus::TryAllocateAndTell(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
