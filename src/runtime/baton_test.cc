// Every piece of work is done by the time its bringer could know, and never by two at once.
#include "runtime/baton.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(Baton, PassesToOneThreadAtATime) {
  Baton baton;
  EXPECT_TRUE(baton.Take());
  EXPECT_FALSE(baton.Take()) << "held";
  baton.Begin();
  EXPECT_TRUE(baton.LayDown()) << "nobody asked since Begin";
  EXPECT_TRUE(baton.Take()) << "free again";
}

TEST(Baton, WhoAsksMeanwhileIsHeard) {
  Baton baton;
  ASSERT_TRUE(baton.Take());
  baton.Begin();
  EXPECT_FALSE(baton.Take());
  EXPECT_FALSE(baton.LayDown()) << "somebody asked during the turn";
  baton.Begin();
  EXPECT_TRUE(baton.LayDown());
}

TEST(Baton, DroppedItIsFreeForTheNext) {
  Baton baton;
  ASSERT_TRUE(baton.Take());
  baton.Begin();
  EXPECT_FALSE(baton.Take());
  baton.Drop();
  EXPECT_TRUE(baton.Take());
}

// A plain counter is enough for the work: the sanitizer and the sum say whether turns overlap.
TEST(Baton, NoWorkIsLostBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr int kPieces = 20000;
  Baton baton;
  std::atomic<int> brought{0};
  int done = 0;  // guarded by the baton
  const auto look = [&] {
    if (!baton.Take()) return;
    do {
      baton.Begin();
      done += brought.exchange(0, std::memory_order_acq_rel);
    } while (!baton.LayDown());
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
