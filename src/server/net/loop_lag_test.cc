// Without it a loop that is kept busy shows in no metric of the server, only at its clients.
#include "server/net/loop_lag.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LoopLag, KeepsTheLongestOfTenToTwentySeconds) {
  LoopLag lag;
  const LoopLag::Clock::time_point start{seconds(1000)};
  EXPECT_EQ(lag.Longest(start), milliseconds(0));
  lag.Note(milliseconds(30), start);
  lag.Note(milliseconds(500), start + seconds(1));
  lag.Note(milliseconds(20), start + seconds(2));
  EXPECT_EQ(lag.Longest(start + seconds(3)), milliseconds(500));
  lag.Note(milliseconds(40), start + seconds(11));
  EXPECT_EQ(lag.Longest(start + seconds(12)), milliseconds(500)) << "of the window before";
  lag.Note(milliseconds(1), start + seconds(21));
  EXPECT_EQ(lag.Longest(start + seconds(22)), milliseconds(40));
  EXPECT_EQ(lag.Longest(start + seconds(100)), milliseconds(0)) << "nothing was heard since";
}

}  // namespace
}  // namespace tactus
