// For tests, to be preloaded: a machine on which one large allocation finds no memory. Which one,
// a test says in the file that TACTUS_TEST_FAILING_NEW names: two numbers of 32 bits. From the
// first, N, the N-th allocation from now on that is larger than a megabyte fails (0: none does),
// as all do while it is 2^31 or more; in the second the failures are counted.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

struct Orders {
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> failed;
};

Orders* Find() {
  const char* const path = std::getenv("TACTUS_TEST_FAILING_NEW");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return nullptr;
  void* const at = mmap(nullptr, sizeof(Orders), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Orders*>(at);
}

bool Fails(std::size_t size) {
  static Orders* const orders = Find();
  if (size <= (std::size_t{1} << 20) || orders == nullptr) return false;
  std::uint32_t left = orders->left.load();
  while (left > 0 && left < (std::uint32_t{1} << 31)) {
    if (!orders->left.compare_exchange_weak(left, left - 1)) continue;
    if (left > 1) return false;
    orders->failed.fetch_add(1);
    return true;
  }
  if (left == 0) return false;
  orders->failed.fetch_add(1);
  return true;
}

void* New(std::size_t size, std::size_t alignment) noexcept {
  if (Fails(size)) return nullptr;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(size == 0 ? 1 : size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* NewOrThrow(std::size_t size, std::size_t alignment) {
  void* const memory = New(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

using Align = std::align_val_t;
using NoThrow = std::nothrow_t;

void* operator new(std::size_t size) { return NewOrThrow(size, 1); }
void* operator new[](std::size_t size) { return NewOrThrow(size, 1); }
void* operator new(std::size_t size, const NoThrow&) noexcept { return New(size, 1); }
void* operator new[](std::size_t size, const NoThrow&) noexcept { return New(size, 1); }
void* operator new(std::size_t size, Align to) {
  return NewOrThrow(size, static_cast<std::size_t>(to));
}
void* operator new[](std::size_t size, Align to) {
  return NewOrThrow(size, static_cast<std::size_t>(to));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, Align) noexcept { std::free(memory); }
void operator delete[](void* memory, Align) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, Align) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, Align) noexcept { std::free(memory); }
