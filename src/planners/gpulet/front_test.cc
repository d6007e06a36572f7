// What no other point beats, against comparing all with all.
#include "planners/gpulet/front.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

// Few values, so that equal coordinates and equal points are common.
std::vector<FrontPoint> RandomPoints(Rng& rng, std::size_t count) {
  std::vector<FrontPoint> points(count);
  for (FrontPoint& point : points) {
    for (std::size_t d = 0; d < 4; ++d) point[d] = static_cast<double>(rng.Below(9)) * (d + 1.0);
  }
  return points;
}

TEST(Front, FindsABeaterExactlyWhereThereIsOne) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "front");
    const auto added = RandomPoints(rng, seed * 7);
    Front front;
    for (std::size_t i = 0; i < added.size(); ++i) {
      const auto asked = RandomPoints(rng, 1).front();
      const auto found = front.WhoBeats(asked);
      const bool any = std::any_of(added.begin(), added.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const FrontPoint& each) { return Beats(each, asked); });
      ASSERT_EQ(found.has_value(), any) << i;
      if (found) {
        ASSERT_LT(*found, i);
        ASSERT_TRUE(Beats(added[*found], asked));
      }
      front.Add(added[i]);
    }
  }
}

TEST(Front, UnbeatenKeepsTheFirstOfEqualsAndNothingThatAnotherBeats) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "unbeaten");
    const auto points = RandomPoints(rng, 150);
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < points.size(); ++i) {
      bool beaten = false;
      for (std::size_t j = 0; j < points.size(); ++j) {
        beaten |= Beats(points[j], points[i]) && (points[j] != points[i] || j < i);
      }
      if (!beaten) expected.push_back(i);
    }
    auto kept = Unbeaten(points);
    std::ranges::sort(kept);
    EXPECT_EQ(kept, expected);
  }
}

}  // namespace
}  // namespace tactus
