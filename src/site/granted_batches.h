// The granted batches that a worker waits for, gathers or runs. A call that brings rows of one
// names it; the rows get the batch's group and deadline, so that they lie side by side in their
// queue and share a batch with nobody else. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "site/messages.h"

namespace tactus {

class GrantedBatches {
 public:
  struct Batch {
    BatchKey key;
    ExitId exit{0};
    std::uint32_t rows = 0;  // of all front ends
    TimePoint deadline;      // of the call that brought the first ones
  };
  struct Place {
    std::uint32_t group = 0;  // as a request's shape class; 0: there is no room
    TimePoint deadline;
  };

  // Shape classes of groups have this bit.
  static constexpr std::uint32_t kGroup = std::uint32_t{1} << 31;
  static constexpr bool IsGroup(std::uint32_t shape) { return (shape & kGroup) != 0; }

  explicit GrantedBatches(std::uint32_t capacity = 4096);

  Place Enter(const Batch& batch);
  // Nothing where the group is none, or ended.
  std::optional<Batch> Find(std::uint32_t group) const;
  // What comes of the batch from here on is a new one. Nothing where the group is another's by now.
  void End(std::uint32_t group, const BatchKey& key);

 private:
  // Batches whose rows were refused before they reached a queue are never ended.
  static constexpr Duration kForgotten = Seconds(60);
  void Sweep(TimePoint deadline);

  static std::uint32_t Index(std::uint32_t group) { return group & ~kGroup; }

  mutable std::mutex mutex_;
  std::vector<std::optional<Batch>> batches_;  // by index
  std::vector<std::uint32_t> free_;
  std::unordered_map<BatchKey, std::uint32_t> index_;
};

}  // namespace tactus
