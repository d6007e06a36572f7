#include "base/ring.h"

#include <algorithm>
#include <atomic>
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

// Pieces end where the ring turns around; nothing is lost, repeated or seen before it is published.
TEST(SpscRing, CarriesPiecesInPlace) {
  SpscRing<int> ring(8);
  int next = 0;
  int expected = 0;
  for (int round = 0; round < 50; ++round) {
    const std::span<int> room = ring.Writable(5);
    ASSERT_FALSE(room.empty());
    for (int& value : room) value = next++;
    EXPECT_TRUE(ring.Empty()) << "seen before Publish";
    ring.Publish(room.size());
    while (!ring.Empty()) {
      const std::span<const int> piece = ring.Readable(3);
      ASSERT_FALSE(piece.empty());
      for (const int value : piece) EXPECT_EQ(value, expected++);
      ring.Consume(piece.size());
    }
    EXPECT_TRUE(ring.Readable(3).empty());
  }
  EXPECT_EQ(expected, next);
}

TEST(SpscRing, HasNoRoomInPlaceWhenFull) {
  SpscRing<int> ring(4);
  EXPECT_EQ(ring.Writable(9).size(), 4u);
  ring.Publish(4);
  EXPECT_TRUE(ring.Writable(1).empty());
  EXPECT_FALSE(ring.TryPush(1));
  ring.Consume(1);
  EXPECT_EQ(ring.Writable(9).size(), 1u);
}

TEST(SpscRing, CarriesPiecesBetweenTwoThreads) {
  constexpr std::uint64_t kValues = 200'000;
  SpscRing<std::uint64_t> ring(64);
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kValues;) {
      const auto room = ring.Writable(std::min<std::uint64_t>(17, kValues - i));
      for (std::uint64_t& value : room) value = i++;
      ring.Publish(room.size());
      if (room.empty()) std::this_thread::yield();
    }
  });
  std::uint64_t expected = 0;
  while (expected < kValues) {
    const auto piece = ring.Readable(23);
    for (const std::uint64_t value : piece) EXPECT_EQ(value, expected++);
    ring.Consume(piece.size());
    if (piece.empty()) std::this_thread::yield();
  }
  producer.join();
}

TEST(MpmcRing, RefusesWhenFull) {
  MpmcRing<int> ring(2);
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
TEST(MpmcRing, CarriesEveryValueOfEveryProducer) {
  constexpr int kProducers = 4;
  constexpr std::uint64_t kValues = 20'000;
  MpmcRing<std::uint64_t> ring(128);
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

// A value that is slow to leave: it stays in the middle of its move to a `patient` one until it is
// told to go on.
struct SlowToLeave {
  int number = 0;
  std::atomic<bool>* moving = nullptr;  // null: it leaves at once
  std::atomic<bool>* go_on = nullptr;
  bool patient = false;

  SlowToLeave() = default;
  explicit SlowToLeave(int n) : number(n) {}
  SlowToLeave(const SlowToLeave&) = default;
  SlowToLeave& operator=(SlowToLeave&& from) {
    number = from.number;
    moving = from.moving;
    go_on = from.go_on;
    if (patient && moving != nullptr) {
      moving->store(true);
      moving->notify_all();
      go_on->wait(false);
    }
    return *this;
  }
};

// Two values at most are ever in the ring, and yet it comes round to the slot that is being read.
TEST(MpmcRing, PushWaitsForAConsumerThatIsNotYetDone) {
  std::atomic<bool> moving{false}, go_on{false};
  MpmcRing<SlowToLeave> ring(2);
  SlowToLeave slow(1);
  slow.moving = &moving;
  slow.go_on = &go_on;
  ring.Push(slow);
  std::thread consumer([&] {
    SlowToLeave out;
    out.patient = true;
    EXPECT_TRUE(ring.TryPop(out));
    EXPECT_EQ(out.number, 1);
  });
  moving.wait(false);
  ring.Push(SlowToLeave(2));
  SlowToLeave out;
  ASSERT_TRUE(ring.TryPop(out));
  EXPECT_EQ(out.number, 2);
  EXPECT_FALSE(ring.TryPush(SlowToLeave(3))) << "its place is still being read";
  std::thread producer([&] { ring.Push(SlowToLeave(3)); });
  go_on.store(true);
  go_on.notify_all();
  producer.join();
  consumer.join();
  ASSERT_TRUE(ring.TryPop(out));
  EXPECT_EQ(out.number, 3);
}

// Every value comes out once, and each consumer sees a producer's values in order.
TEST(MpmcRing, GivesEveryValueToOneConsumer) {
  constexpr std::uint64_t kProducers = 2;
  constexpr std::uint64_t kValues = 20'000;
  MpmcRing<std::uint64_t> ring(16);
  std::vector<std::atomic<int>> times(kProducers * kValues);
  std::atomic<std::uint64_t> taken{0};
  std::atomic<bool> ordered{true};
  const auto produce = [&](std::uint64_t p) {
    for (std::uint64_t i = 0; i < kValues;) {
      if (ring.TryPush(p * kValues + i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  };
  const auto consume = [&] {
    std::uint64_t next[kProducers] = {};
    while (taken.load() < kProducers * kValues) {
      std::uint64_t value = 0;
      if (!ring.TryPop(value)) {
        std::this_thread::yield();
        continue;
      }
      const std::uint64_t p = value / kValues;
      if (value % kValues < next[p]) ordered = false;
      next[p] = value % kValues + 1;
      ++times[value];
      ++taken;
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t p = 0; p < kProducers; ++p) threads.emplace_back(produce, p);
  for (int c = 0; c < 3; ++c) threads.emplace_back(consume);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(ordered);
  EXPECT_TRUE(ring.Empty());
  EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](const auto& n) { return n == 1; }));
}

}  // namespace
}  // namespace tactus
