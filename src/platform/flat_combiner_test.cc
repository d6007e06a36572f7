// Every piece of work is done by the time its bringer could know, and never by two at once.
#include "platform/flat_combiner.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(FlatCombiner, PassesToOneThreadAtATime) {
  FlatCombiner combiner;
  EXPECT_TRUE(combiner.Take());
  EXPECT_FALSE(combiner.Take()) << "held";
  combiner.Begin();
  EXPECT_TRUE(combiner.Release()) << "nobody asked since Begin";
  EXPECT_TRUE(combiner.Take()) << "free again";
}

TEST(FlatCombiner, WhoAsksMeanwhileIsHeard) {
  FlatCombiner combiner;
  ASSERT_TRUE(combiner.Take());
  combiner.Begin();
  EXPECT_FALSE(combiner.Take());
  EXPECT_FALSE(combiner.Release()) << "somebody asked during the turn";
  combiner.Begin();
  EXPECT_TRUE(combiner.Release());
}

TEST(FlatCombiner, DroppedItIsFreeForTheNext) {
  FlatCombiner combiner;
  ASSERT_TRUE(combiner.Take());
  combiner.Begin();
  EXPECT_FALSE(combiner.Take());
  combiner.Drop();
  EXPECT_TRUE(combiner.Take());
}

// A plain counter is enough for the work: the sanitizer and the sum say whether turns overlap.
TEST(FlatCombiner, NoWorkIsLostBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr int kPieces = 20000;
  FlatCombiner combiner;
  std::atomic<int> brought{0};
  int done = 0;  // guarded by the combiner
  const auto look = [&] {
    if (!combiner.Take()) return;
    do {
      combiner.Begin();
      done += brought.exchange(0, std::memory_order_acq_rel);
    } while (!combiner.Release());
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int piece = 0; piece < kPieces; ++piece) {
        brought.fetch_add(1, std::memory_order_acq_rel);
        look();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kPieces);
}

}  // namespace
}  // namespace tactus
