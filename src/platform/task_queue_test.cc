// Without these a server that stops would wait for loads that nobody wants any more, or leave their
// clients without an answer.
#include "platform/task_queue.h"

#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

// A queue whose thread is held in its first task.
struct HeldQueue {
  explicit HeldQueue(std::size_t capacity) : queue("test", capacity) {
    queue.Post([this](bool) {
      held.release();
      go.acquire();
    });
    held.acquire();
  }
  ~HeldQueue() { go.release(); }  // where the test has not
  TaskQueue::Task Note(std::string what) {
    return [this, what = std::move(what)](bool refused) {
      done.push_back(what + (refused ? " refused" : ""));
      where.push_back(std::this_thread::get_id());
    };
  }

  std::vector<std::string> done;
  std::vector<std::thread::id> where;
  std::binary_semaphore held{0};
  std::counting_semaphore<2> go{0};
  TaskQueue queue;
};

TEST(TaskQueue, DoesTasksInTheOrderInWhichTheyCame) {
  HeldQueue held(8);
  std::binary_semaphore all{0};
  EXPECT_TRUE(held.queue.Post(held.Note("a")));
  EXPECT_TRUE(held.queue.Post(held.Note("b")));
  EXPECT_TRUE(held.queue.Post([&](bool) { all.release(); }));
  held.go.release();
  all.acquire();
  EXPECT_EQ(held.done, (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(held.where.front(), std::this_thread::get_id());
}

TEST(TaskQueue, DropsWhatItHasNoRoomFor) {
  HeldQueue held(1);
  EXPECT_TRUE(held.queue.Post(held.Note("a")));
  EXPECT_FALSE(held.queue.Post(held.Note("b")));
  held.go.release();
  held.queue.Stop();
  EXPECT_EQ(held.done.size(), 1u);
}

TEST(TaskQueue, RefusesWhatWaitsAndWhatComesOnceItIsClosed) {
  HeldQueue held(8);
  held.queue.Post(held.Note("waits"));
  held.queue.Close();
  held.go.release();
  held.queue.Stop();
  EXPECT_TRUE(held.queue.Post(held.Note("late")));
  EXPECT_EQ(held.done, (std::vector<std::string>{"waits refused", "late refused"}));
  EXPECT_EQ(held.where.back(), std::this_thread::get_id());
}

// What a task owns may post another.
TEST(TaskQueue, LetsGoOfATaskWithoutItsLock) {
  std::binary_semaphore gone{0};
  TaskQueue queue("test");
  queue.Post([owned = std::shared_ptr<void>(
                  nullptr, [&](void*) { queue.Post([&](bool) { gone.release(); }); })](bool) {});
  gone.acquire();
}

}  // namespace
}  // namespace tactus
