// Without this what is asked while a loop gathers could be done out of order, or never.
#include "cluster/control/loop.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

using std::chrono::steady_clock;

TEST(LoopTest, DoesAllThatIsAskedInOrderWhetherItGathersOrNot) {
  for (const auto gather : {std::chrono::microseconds(0), std::chrono::microseconds(200)}) {
    Loop loop(gather);
    std::vector<int> done;  // of the loop
    std::atomic<bool> all{false};
    std::jthread runs([&] {
      while (loop.RunUntil(steady_clock::now() + std::chrono::hours(1))) {
      }
    });
    constexpr int kTasks = 2000;
    for (int i = 0; i < kTasks; ++i) {
      loop.Post([&done, i] { done.push_back(i); });
      if (i % 7 == 0) std::this_thread::yield();
    }
    loop.Post([&all] {
      all = true;
      all.notify_all();
    });
    all.wait(false);
    loop.Close();
    runs.join();
    ASSERT_EQ(done.size(), static_cast<std::size_t>(kTasks));
    for (int i = 0; i < kTasks; ++i) ASSERT_EQ(done[i], i);
  }
}

// A loop whose first task waits for others must not keep its owner waiting, too.
TEST(LoopTest, EndsWhileItGathers) {
  Loop loop(std::chrono::hours(1));
  bool done = false;
  loop.Post([&done] { done = true; });
  std::jthread runs([&] { EXPECT_FALSE(loop.RunUntil(steady_clock::now())); });
  loop.Close();
  runs.join();
  EXPECT_FALSE(done) << "what was not begun is dropped";
}

}  // namespace
}  // namespace tactus
