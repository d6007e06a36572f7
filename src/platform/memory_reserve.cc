#include "platform/memory_reserve.h"

#include <atomic>
#include <new>

#include <sys/mman.h>

namespace tactus {
namespace {

std::atomic<void*> held{nullptr};
std::atomic<bool> spent{false};

void* Reserve() {
  void* const addresses = mmap(nullptr, MemoryReserve::kBytes, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return addresses == MAP_FAILED ? nullptr : addresses;
}

void GiveUp() {
  void* const addresses = held.exchange(nullptr);
  if (addresses == nullptr) throw std::bad_alloc();
  spent.store(true);
  munmap(addresses, MemoryReserve::kBytes);
}

}  // namespace

void MemoryReserve::Hold() {
  held.store(Reserve());
  std::set_new_handler(GiveUp);
}

bool MemoryReserve::Spent() {
  if (!spent.load(std::memory_order_relaxed)) return false;
  void* const addresses = Reserve();
  if (addresses == nullptr) return true;
  // Of several threads that try, one goes on.
  if (!spent.exchange(false)) {
    munmap(addresses, kBytes);
  } else {
    held.store(addresses);
  }
  return false;
}

}  // namespace tactus
