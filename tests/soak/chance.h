// Where a random test takes its choices from: a seed, or the bytes that a fuzzer made up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/rng.h"

namespace tactus {

class Chance {
 public:
  virtual ~Chance() = default;
  virtual std::uint64_t Below(std::uint64_t bound) = 0;  // [0, bound); bound > 0
  virtual bool exhausted() const { return false; }

  bool OneIn(std::uint64_t bound) { return Below(bound) == 0; }
  int Whole(int least, int most) {
    return least + static_cast<int>(Below(static_cast<std::uint64_t>(most - least + 1)));
  }
};

class SeededChance final : public Chance {
 public:
  SeededChance(std::uint64_t seed, std::string_view name) : rng_(Rng::Stream(seed, name)) {}
  std::uint64_t Below(std::uint64_t bound) override { return rng_.Below(bound); }

 private:
  Rng rng_;
};

// As few bytes for a choice as its bound needs, so that a fuzzer's small change is one choice.
// After the last byte every choice is 0.
class BytesChance final : public Chance {
 public:
  explicit BytesChance(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint64_t Below(std::uint64_t bound) override {
    std::uint64_t value = 0;
    for (std::uint64_t left = bound - 1; left > 0; left >>= 8) {
      value = value << 8 | (next_ < bytes_.size() ? bytes_[next_] : 0);
      ++next_;
    }
    return value % bound;
  }
  bool exhausted() const override { return next_ >= bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t next_ = 0;
};

}  // namespace tactus
