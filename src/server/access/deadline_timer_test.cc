#include "base/deadline_timer.h"

#include <chrono>
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "platform/wall_clock.h"

namespace tactus {
namespace {

// Its thread sleeps where nothing waits: the first that comes must wake it, each time anew.
TEST(DeadlineTimer, IsWokenByWhatComesToAnEmptyOne) {
  const WallClock clock;
  DeadlineTimer timer;
  timer.Start([&clock] { return clock.Now(); });
  for (int time = 0; time < 20; ++time) {
    std::promise<void> called;
    timer.At(clock.Now() + Micros(200), [&called] { called.set_value(); });
    ASSERT_EQ(called.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready)
        << "time " << time;
  }
}

TEST(DeadlineTimer, CallsBackInOrderAndNeverWhatWasCancelled) {
  DeadlineTimer timer;  // not started: the test says what time it is
  std::vector<int> called;
  timer.At(kStart + Millis(30), [&] { called.push_back(3); });
  const auto dropped = timer.At(kStart + Millis(20), [&] { called.push_back(2); });
  timer.At(kStart + Millis(10), [&] { called.push_back(1); });
  timer.Cancel(dropped);
  timer.Run(kStart + Millis(9));
  EXPECT_TRUE(called.empty());
  timer.Run(kStart + Millis(30));
  EXPECT_EQ(called, (std::vector{1, 3}));
  EXPECT_EQ(timer.waiting(), 0u);
}

}  // namespace
}  // namespace tactus
