// Replaces operator new of a whole program with one that tells OnAllocation each time: for a test
// or a benchmark that counts. Exactly one source file of the program includes this header and
// defines the hook.
#pragma once

#include <cstdlib>
#include <new>

namespace tactus {

// On the thread that allocates, before it does; must not allocate.
void OnAllocation() noexcept;

inline void* AllocateAndTell(std::size_t size) {
  OnAllocation();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace tactus

void* operator new(std::size_t size) { return tactus::AllocateAndTell(size); }
void* operator new[](std::size_t size) { return tactus::AllocateAndTell(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
