#include "engines/isolated/sharing_famine.h"

#include <array>
#include <atomic>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tactus {
namespace {

std::atomic<std::size_t> noted{0};  // 0: nothing is lacking
std::atomic<const void*> lacking{nullptr};

// What a lane needs for a batch and for a process: a piece of memory, a pair of sockets.
bool CanShare(std::size_t bytes) {
  const int piece = memfd_create("tactus-try", MFD_CLOEXEC);
  bool memory = piece >= 0 && ftruncate(piece, static_cast<off_t>(bytes)) == 0;
  if (memory) {
    // Nothing is touched, so it costs addresses alone.
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, piece, 0);
    memory = at != MAP_FAILED;
    if (memory) munmap(at, bytes);
  }
  std::array<int, 2> ends{-1, -1};
  const bool sockets =
      memory && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0;
  for (const int descriptor : {piece, ends[0], ends[1]}) {
    if (descriptor >= 0) close(descriptor);
  }
  return sockets;
}

}  // namespace

void SharingFamine::Note(std::size_t bytes, const void* purpose) {
  lacking.store(purpose);
  noted.store(bytes);
}

void SharingFamine::Had(std::size_t bytes, const void* purpose) {
  const std::size_t lacked = noted.load(std::memory_order_relaxed);
  if (lacked > 0 && bytes >= lacked && lacking.load() == purpose) noted.store(0);
}

bool SharingFamine::Lasts() {
  const std::size_t bytes = noted.load(std::memory_order_relaxed);
  if (bytes == 0) return false;
  if (!CanShare(bytes)) return true;
  noted.store(0);
  return false;
}

}  // namespace tactus
