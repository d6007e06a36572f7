#include "base/ring.h"

#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(SpscRing, RefusesWhenFullAndKeepsOrder) {
  SpscRing<int> ring(4);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ring.TryPush(i));
  EXPECT_FALSE(ring.TryPush(4));
  int value = -1;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(ring.TryPop(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_FALSE(ring.TryPop(value));
  EXPECT_TRUE(ring.Empty());
}

TEST(SpscRing, CarriesEveryValueInOrderBetweenTwoThreads) {
  constexpr std::uint64_t kValues = 200'000;
  SpscRing<std::uint64_t> ring(64);
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kValues;) {
      if (ring.TryPush(i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t expected = 0;
  while (expected < kValues) {
    std::uint64_t value = 0;
    if (!ring.TryPop(value)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(value, expected++);
  }
  producer.join();
}

TEST(MpscRing, RefusesWhenFull) {
  MpscRing<int> ring(2);
  EXPECT_TRUE(ring.Empty());
  EXPECT_TRUE(ring.TryPush(1));
  EXPECT_TRUE(ring.TryPush(2));
  EXPECT_FALSE(ring.TryPush(3));
  int value = 0;
  EXPECT_TRUE(ring.TryPop(value));
  EXPECT_EQ(value, 1);
  EXPECT_TRUE(ring.TryPush(3));
}

// Each producer's own values stay in order, and none is lost or doubled.
TEST(MpscRing, CarriesEveryValueOfEveryProducer) {
  constexpr int kProducers = 4;
  constexpr std::uint64_t kValues = 20'000;
  MpscRing<std::uint64_t> ring(128);
  std::vector<std::thread> producers;
  for (std::uint64_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&ring, p] {
      for (std::uint64_t i = 0; i < kValues;) {
        if (ring.TryPush(p << 32 | i)) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::uint64_t next[kProducers] = {};
  for (std::uint64_t taken = 0; taken < kProducers * kValues;) {
    std::uint64_t value = 0;
    if (!ring.TryPop(value)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(value & 0xffffffff, next[value >> 32]++);
    ++taken;
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(ring.Empty());
}

}  // namespace
}  // namespace tactus
