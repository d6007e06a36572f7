#include "serving/overload_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Overloads : public ::testing::Test {
 protected:
  // A second in which so many calls of a model ended in time, and so many others in this way.
  std::optional<std::string> Second(std::uint64_t met, std::uint64_t missed = 0,
                                    Outcome outcome = Outcome::kShed) {
    OutcomeCounts& counts = calls_[{"m", 1}];
    counts[static_cast<std::size_t>(Outcome::kMet)] += met;
    counts[static_cast<std::size_t>(outcome)] += missed;
    return news_.Second(calls_, refused_);
  }

  CallsByModel calls_;
  std::uint64_t refused_ = 0;
  OverloadNews news_;
};

TEST_F(Overloads, AreSilentWhileCallsAreAnsweredInTime) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Second(100, i % 2), std::nullopt) << i;
  EXPECT_EQ(Second(0), std::nullopt);
}

TEST_F(Overloads, BeginAndEndOnce) {
  for (int i = 0; i < 20; ++i) Second(100);
  calls_[{"quiet", 1}][static_cast<std::size_t>(Outcome::kLate)] += 1;
  const auto begun = Second(60, 40);
  ASSERT_TRUE(begun);
  EXPECT_THAT(*begun, AllOf(HasSubstr("41 of the last"), HasSubstr("most of model 'm': 40 shed, "
                                                                   "0 expired, 0 late")));
  for (int i = 0; i < 30; ++i) EXPECT_EQ(Second(60, 40), std::nullopt);
  for (int i = 1; i < OverloadNews::kQuiet; ++i) EXPECT_EQ(Second(100), std::nullopt);
  EXPECT_EQ(Second(60, 40), std::nullopt) << "a pause is no end";
  for (int i = 1; i < OverloadNews::kQuiet; ++i) EXPECT_EQ(Second(100), std::nullopt);
  const auto ended = Second(100);
  ASSERT_TRUE(ended);
  EXPECT_THAT(*ended, AllOf(HasSubstr("after 40 s"), HasSubstr("1281 of")));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Second(100), std::nullopt);
  EXPECT_TRUE(Second(60, 40)) << "the next one";
}

TEST_F(Overloads, CountWhatWasRefusedAsItCame) {
  Second(100);
  refused_ = 70;
  const auto begun = Second(10);
  ASSERT_TRUE(begun);
  EXPECT_THAT(*begun, AllOf(HasSubstr("70 of the last 80"), HasSubstr("70 refused as they came")));
}

TEST_F(Overloads, AreNoErrorsAndNothingThatClientsTookBack) {
  for (const Outcome outcome : {Outcome::kError, Outcome::kCancelled}) {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(Second(10, 90, outcome), std::nullopt);
  }
}

TEST_F(Overloads, OfAFewCallsAreNone) {
  EXPECT_EQ(Second(1, OverloadNews::kLeast - 1), std::nullopt);
}

}  // namespace
}  // namespace tactus
