// A set of small ids whose least member is found in O(log64 n): a bit for each id, and above every
// 64 bits one that says whether any of them is set. Nothing allocates after Resize.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace tactus {

class IdSet {
 public:
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

  // Empties the set; it may hold ids under `ids`.
  void Resize(std::size_t ids) {
    levels_.clear();
    do {
      ids = (ids + 63) / 64;
      levels_.emplace_back(ids, 0);
    } while (ids > 1);
  }

  bool empty() const { return levels_.empty() || levels_.back().empty() || levels_.back()[0] == 0; }
  bool contains(std::uint32_t id) const { return (levels_[0][id / 64] >> (id % 64) & 1) != 0; }

  void Insert(std::uint32_t id) {
    for (auto& level : levels_) {
      level[id / 64] |= std::uint64_t{1} << (id % 64);
      id /= 64;
    }
  }
  void Erase(std::uint32_t id) {
    for (auto& level : levels_) {
      level[id / 64] &= ~(std::uint64_t{1} << (id % 64));
      if (level[id / 64] != 0) return;
      id /= 64;
    }
  }
  // kNone when empty.
  std::uint32_t Least() const {
    if (empty()) return kNone;
    std::uint32_t at = 0;
    for (std::size_t i = levels_.size(); i-- > 0;) {
      at = at * 64 + static_cast<std::uint32_t>(std::countr_zero(levels_[i][at]));
    }
    return at;
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // the ids first
};

}  // namespace tactus
