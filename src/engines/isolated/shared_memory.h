// Memory that two processes have. Its size is sealed, so that neither can take from under the other
// what it reads.
#pragma once

#include <cstddef>
#include <span>

#include "base/expected.h"

namespace tactus::isolated {

class SharedMemory {
 public:
  // kResourceExhausted where the system has no more.
  static Expected<SharedMemory> Make(std::size_t bytes);
  // Maps the memory of another process; takes the descriptor. kInternal where it is none.
  static Expected<SharedMemory> Map(int descriptor, std::size_t bytes);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return bytes_; }
  // For the other process; -1 once it was closed.
  int descriptor() const { return descriptor_; }
  void CloseDescriptor();

 private:
  std::span<std::byte> bytes_;
  int descriptor_ = -1;
};

}  // namespace tactus::isolated
