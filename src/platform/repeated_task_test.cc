// Without these a server would look at files and counters never, too late, or after it is gone.
#include "platform/repeated_task.h"

#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr Duration kHour = Seconds(3600);

TEST(RepeatedTask, RunsAgainAfterEachPauseOnAThreadOfItsOwn) {
  std::latch third(3);
  std::atomic<int> runs{0};
  std::thread::id where;
  RepeatedTask task("test", Every(Nanos(1), [&] {
                      where = std::this_thread::get_id();
                      if (++runs <= 3) third.count_down();
                    }));
  third.wait();
  task.Stop();
  EXPECT_NE(where, std::this_thread::get_id());
  const int before = runs;
  task.Wake();  // nobody hears it
  task.Stop();
  EXPECT_EQ(runs, before);
}

TEST(RepeatedTask, WaitsBeforeTheFirstRunIfItIsToldTo) {
  bool ran = false;
  {
    const RepeatedTask task("test", Every(kHour, [&] { ran = true; }), kHour);
  }
  EXPECT_FALSE(ran);
}

// A wake during a run is not lost: what it is for may have come after the run looked.
TEST(RepeatedTask, IsWokenInAPauseAndInARun) {
  for (const Duration pause : {kHour, RepeatedTask::kUntilWoken, kNever.time_since_epoch()}) {
    std::counting_semaphore<8> began(0);
    std::counting_semaphore<8> may_end(0);
    RepeatedTask task(
        "test",
        [&] {
          began.release();
          may_end.acquire();
          return pause;
        },
        pause);
    task.Wake();
    began.acquire();
    task.Wake();
    may_end.release();
    began.acquire();
    may_end.release();
  }
}

TEST(RepeatedTask, IsWokenBeforeItStarts) {
  std::binary_semaphore ran(0);
  RepeatedTask task;
  task.Wake();
  task.Start("test", Every(kHour, [&] { ran.release(); }), kHour);
  ran.acquire();
}

TEST(RepeatedTask, AStopWaitsForTheRunUnderWay) {
  std::binary_semaphore began(0);
  bool ended = false;
  RepeatedTask task("test", Every(kHour, [&] {
                      began.release();
                      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
                      ended = true;
                    }));
  began.acquire();
  task.Stop();
  EXPECT_TRUE(ended);
}

TEST(RepeatedTask, KeepsWhatOnlyMoves) {
  std::binary_semaphore ran(0);
  auto count = std::make_unique<int>(0);
  const RepeatedTask task("test", Every(kHour, [&ran, count = std::move(count)] {
                            ++*count;
                            ran.release();
                          }));
  ran.acquire();
}

TEST(RepeatedTask, EndsWithoutAStart) {
  RepeatedTask task;
  task.Stop();
}

TEST(SleepUnlessStopped, SaysWhetherAStopCame) {
  std::stop_source stop;
  EXPECT_TRUE(SleepUnlessStopped(Nanos(1), stop.get_token()));
  std::jthread stops([&] { stop.request_stop(); });
  EXPECT_FALSE(SleepUnlessStopped(kHour, stop.get_token()));
  EXPECT_FALSE(SleepUnlessStopped({}, stop.get_token()));
}

}  // namespace
}  // namespace tactus
