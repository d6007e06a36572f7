// Without these a share that nobody can have the other part of is never used, and nobody knows why;
// or two lanes are more than their device.
#include "core/shares.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ComplementOf, IsWhatADeviceHasLeft) {
  const double shares[] = {0.2, 0.4, 0.5, 0.6, 0.8, 1};
  EXPECT_EQ(ComplementOf(shares, 0.2), 4u);
  EXPECT_EQ(ComplementOf(shares, 0.5), 2u);
  EXPECT_EQ(ComplementOf(shares, 0.6), 1u);
  EXPECT_EQ(ComplementOf(shares, 1), std::nullopt);
  EXPECT_EQ(ComplementOf(shares, 0.3), std::nullopt);
}

// 33.3 and 66.6 % are a third and the rest of it, 33 and 66 % are not; nothing is more than there
// is left.
TEST(ComplementOf, MayBeWrittenRoundedDownButNotUp) {
  const double thirds[] = {0.333, 0.666, 1};
  EXPECT_EQ(ComplementOf(thirds, 0.333), 1u);
  EXPECT_EQ(ComplementOf(thirds, 0.666), 0u);
  EXPECT_EQ(ComplementOf(std::vector{0.333, 0.667, 1.0}, 0.333), 1u);
  EXPECT_EQ(ComplementOf(std::vector{0.33, 0.66, 1.0}, 0.33), std::nullopt);
  EXPECT_EQ(ComplementOf(std::vector{0.334, 0.667, 1.0}, 0.667), std::nullopt);
  EXPECT_EQ(ComplementOf(std::vector{0.333, 0.664, 0.666, 1.0}, 0.333), 2u)
      << "the largest that fits";
}

TEST(ExplainUnusableShare, NamesTheShareAndWhatIsMissing) {
  EXPECT_EQ(ExplainUnusableShare(std::vector{0.2, 0.4, 0.5, 0.6, 0.8, 1.0}), std::nullopt);
  EXPECT_EQ(ExplainUnusableShare(std::vector{1.0}), std::nullopt);
  EXPECT_THAT(
      *ExplainUnusableShare(std::vector{0.3, 0.5, 1.0}),
      AllOf(HasSubstr("no share is the complement of 30 %"), HasSubstr("add 70 %, or leave")));
  EXPECT_THAT(*ExplainUnusableShare(std::vector{0.333, 0.5, 1.0}),
              HasSubstr("complement of 33.3 %"));
}

}  // namespace
}  // namespace tactus
