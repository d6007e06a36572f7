// Rows that depend on each other only where they have numbers in common (what is said of one
// customer, of one class of boxes), only where they are nearly the same, or only where one of them
// is of another size. Rows that are made up by chance are neither.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "profiling/batch_trial.h"
#include "profiling/deciding_graph.h"

namespace tactus {
namespace {

using Noise = SampleDraw::Noise;
constexpr std::array<Noise, 3> kSharedNoise{Noise::kNormal, Noise::kAscending, Noise::kWhole};
// Once, after a round of each noise.
struct Special {
  Likeness likeness = Likeness::kHalf;
  // Rows that are not like each other, and beside them one with numbers of any size.
  bool wide = false;
  int integers = 9;  // the most of that one
  Noise noise = Noise::kNormal;
};
constexpr int kTenMillions = 10'000'000;
constexpr std::array<Special, 9> kSpecials{{
    {.wide = true, .integers = kTenMillions, .noise = Noise::kWide},
    {.likeness = Likeness::kNear},
    {.likeness = Likeness::kAllBut},
    {.wide = true, .noise = Noise::kWide},
    {.wide = true, .integers = kTenMillions},
    {.likeness = Likeness::kAllBut, .noise = Noise::kWhole},
    {.likeness = Likeness::kNear, .noise = Noise::kPositive},
    {.likeness = Likeness::kAllBut, .noise = Noise::kAscending},
    {.likeness = Likeness::kNear, .noise = Noise::kFraction},
}};
constexpr std::size_t kSharedRounds = 70;
// Numbers that say what belongs together stand in rows of few. Larger rows have fewer draws, which
// take longer.
constexpr std::size_t kFewBytes = 2048;
constexpr std::size_t kRoundsOfLarge = 12;
constexpr std::uint64_t kSeed = 1'000'000;  // of none of the other rows

const Special* SpecialOf(std::size_t round) {
  const std::size_t first = kSharedNoise.size();
  const bool is = round >= first && round < first + kSpecials.size();
  return is ? &kSpecials[round - first] : nullptr;
}

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
  const bool sized = NamesSizing(spec_);
  for (std::size_t round = 0; round < rounds; ++round) {
    const Special* const special = SpecialOf(round);
    if (special != nullptr && special->wide && (sized || differs_)) continue;
    const bool needed = round < kSharedNoise.size();
    if (needed && Now() > begin_ + kLongestNeeded) short_of_shared_ = true;
    if (needed ? short_of_shared_ : Now() > end) return true;
    if (!DrawShared(round, n)) {
      if (special == nullptr) return true;
      continue;
    }
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

bool Trial::DrawShared(std::size_t round, std::size_t alike) {
  const Special* const given = SpecialOf(round);
  const Special special =
      given != nullptr ? *given : Special{.noise = kSharedNoise[round % kSharedNoise.size()]};
  rows_.clear();
  for (std::size_t r = 0; r <= alike; ++r) {
    const std::uint64_t seed = kSeed + 10 * round + r;
    SampleDraw draw{.seed = seed, .integers = 9, .noise = special.noise};
    if (special.wide && r < alike) draw.noise = Noise::kNormal;
    if (special.wide && r == alike) draw.integers = special.integers;
    auto row = Make(draw);
    if (!row) return false;
    if (!special.wide && r > 0 && r < alike) {
      row->ShareWith(rows_[0], spec_, seed, special.likeness);
    }
    rows_.push_back(*std::move(row));
  }
  return true;
}

}  // namespace tactus
