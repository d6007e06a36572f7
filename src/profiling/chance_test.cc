// Answers of chance: without these, a graph whose noise hides that rows depend on each other would
// be run in batches, or one whose rows are right would lose its batch.
#include "profiling/chance.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

constexpr std::size_t kRuns = 64;
constexpr std::size_t kNumbers = 16;

template <class Draw>
Series Runs(Rng& rng, Draw draw) {
  Series series(kRuns);
  for (auto& run : series) {
    for (std::size_t i = 0; i < kNumbers; ++i) run.push_back(draw(rng));
  }
  return series;
}

double Noise(Rng& rng) { return rng.Normal(); }
double Rare(Rng& rng) { return rng.Uniform() < 0.02 ? 50 : 0; }
// Without a mean.
double Wild(Rng& rng) { return rng.Normal() / rng.Normal(); }

TEST(Chance, OneDistributionIsAlikeWhateverItIs) {
  const std::vector<double> allowed(kNumbers, 0);
  for (double (*const draw)(Rng&) : {&Noise, &Rare, &Wild}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Rng rng = Rng::Stream(seed, "test");
      const Series a = Runs(rng, draw);
      EXPECT_TRUE(SpreadAlike(a, Runs(rng, draw), allowed)) << seed;
    }
  }
}

TEST(Chance, AnotherMeanOrSpreadIsNotAlike) {
  const std::vector<double> allowed(kNumbers, 0);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng = Rng::Stream(seed, "test");
    const Series a = Runs(rng, Noise);
    EXPECT_FALSE(SpreadAlike(a, Runs(rng, [](Rng& r) { return 2 + r.Normal(); }), allowed));
    EXPECT_FALSE(SpreadAlike(a, Runs(rng, [](Rng& r) { return 5 * r.Normal(); }), allowed));
  }
}

// Beside noise, some numbers may be none of chance's.
TEST(Chance, NumbersThatDoNotWaverMayDifferAsKernelsRound) {
  Rng rng = Rng::Stream(1, "test");
  const Series a = Runs(rng, [](Rng&) { return 1.0; });
  const Series near = Runs(rng, [](Rng&) { return 1.0 + 1e-7; });
  const Series far = Runs(rng, [](Rng&) { return 1.1; });
  const std::vector<double> allowed(kNumbers, 1e-3);
  EXPECT_TRUE(SpreadAlike(a, a, allowed));
  EXPECT_TRUE(SpreadAlike(a, near, allowed));
  EXPECT_FALSE(SpreadAlike(a, far, allowed));
  EXPECT_FALSE(SpreadAlike(a, near, std::vector<double>(kNumbers, 0)));
}

}  // namespace
}  // namespace tactus
