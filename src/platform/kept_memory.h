// What this process has in memory beyond what it uses: the allocator keeps freed memory for the
// next request, and after a flood that can be most of what the process has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tactus {

struct HeapUse {
  std::int64_t resident = 0;  // bytes of memory that is no file's: heap, stacks
  std::int64_t in_use = 0;    // bytes that the allocator has given out
};
// Walks the allocator's lists of free blocks: some milliseconds where there are 100,000.
HeapUse ReadHeap();
// The same, of a second ago at most, for readers who may come at any rate. Thread-safe.
HeapUse RecentHeap();

// Decides when freed memory goes back to the system. Not thread-safe.
class KeptMemory {
 public:
  // Under load, this much may be kept, and more for less than kReadings readings in a row: what
  // comes and goes with the load is not worth its page faults.
  static constexpr std::int64_t kMost = std::int64_t{64} << 20;
  static constexpr std::size_t kReadings = 6;

  // `activity` changes with every call. True where it has not since the last question, and has
  // since memory was last given back.
  bool GivesBackIdle(std::int64_t activity);
  // A reading under load. True where more than kMost was kept at each of the last kReadings.
  bool GivesBackBusy(const HeapUse& use);
  // Memory was given back; `use` is a reading after it.
  void GaveBack(const HeapUse& use);

 private:
  std::optional<std::int64_t> activity_;    // at the last question
  std::optional<std::int64_t> given_back_;  // the activity when memory was given back
  // Resident less in use where nothing is kept: stacks, fragments, and less than 0 by what was
  // given out and never touched.
  std::optional<std::int64_t> base_;
  std::size_t beyond_ = 0;  // readings in a row
};

}  // namespace tactus
