// Rows that depend on each other only where they have numbers in common: what is said of one
// customer, of one class of boxes. Rows that are made up by chance have none.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "profiling/batch_trial.h"

namespace tactus {
namespace {

using Noise = SampleDraw::Noise;
constexpr std::array<Noise, 3> kSharedNoise{Noise::kNormal, Noise::kAscending, Noise::kWhole};
constexpr std::size_t kSharedRounds = 60;
// Numbers that say what belongs together stand in rows of few. Larger rows have fewer draws, which
// take longer.
constexpr std::size_t kFewBytes = 2048;
constexpr std::size_t kRoundsOfLarge = 9;
constexpr std::uint64_t kSeed = 1'000'000;  // of none of the other rows

}  // namespace

// A row's neighbour becomes one that shares nothing with it. In the same place of as many rows,
// rounding is no reason for another answer.
bool Trial::TryShared() {
  const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(spec_.max_batch), 4);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto left = std::max(begin_ + kLongest - Now(), Clock::duration::zero());
  const auto end = Now() + left / 3;
  std::size_t rounds = kSharedRounds;
  for (std::size_t round = 0; round < rounds; ++round) {
    const bool needed = round < kSharedNoise.size();
    if (needed && Now() > begin_ + kLongestNeeded) short_of_shared_ = true;
    if (needed ? short_of_shared_ : Now() > end) return true;
    if (!DrawShared(round, n)) return true;
    std::size_t bytes = 0;
    for (const TensorView& input : rows_[0].inputs().inputs) bytes += input.bytes;
    if (bytes > kFewBytes) rounds = kRoundsOfLarge;
    const auto before = RunTogether(order);
    if (!before) continue;
    for (const std::size_t changed : {n - 1, std::size_t{0}}) {
      std::vector<std::size_t> others = order;
      others[changed] = n;
      const auto now = RunTogether(others);
      if (!now) continue;
      together_ = *now;
      const auto kept = std::span(order).subspan(changed == 0 ? 1 : 0, n - 1);
      if (!Unmoved(order, *before, kept)) return false;
    }
  }
  return true;
}

bool Trial::DrawShared(std::size_t round, std::size_t sharing) {
  rows_.clear();
  for (std::size_t r = 0; r <= sharing; ++r) {
    const std::uint64_t seed = kSeed + 10 * round + r;
    auto row =
        SampleRow::Make(spec_, SampleDraw{.seed = seed,
                                          .integers = 9,
                                          .noise = kSharedNoise[round % kSharedNoise.size()]});
    if (!row) return false;
    if (r > 0 && r < sharing) row->ShareWith(rows_[0], spec_, seed);
    rows_.push_back(*std::move(row));
  }
  return true;
}

}  // namespace tactus
