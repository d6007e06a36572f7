#include "engines/isolated/shared_memory.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tactus::isolated {

Expected<SharedMemory> SharedMemory::Make(std::size_t bytes) {
  const int descriptor = memfd_create("tactus-batch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const bool made = descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
                    fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (!made) {
    const int why = errno;
    if (descriptor >= 0) close(descriptor);
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("{} bytes of shared memory: {}", bytes, std::strerror(why)));
  }
  SharedMemory memory;
  memory.descriptor_ = descriptor;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) {
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("{} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  memory.bytes_ = {static_cast<std::byte*>(at), bytes};
  return memory;
}

Expected<SharedMemory> SharedMemory::Map(int descriptor, std::size_t bytes) {
  SharedMemory memory;
  memory.descriptor_ = descriptor;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (descriptor < 0) errno = EMFILE;  // there was no room for it to come
  memory.CloseDescriptor();
  if (at == MAP_FAILED) {
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("{} bytes of shared memory in an engine's process: {}", bytes,
                            std::strerror(errno)));
  }
  memory.bytes_ = {static_cast<std::byte*>(at), bytes};
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SharedMemory::~SharedMemory() {
  CloseDescriptor();
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

void SharedMemory::CloseDescriptor() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

}  // namespace tactus::isolated
