#include "core/request_queue.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"

namespace tactus {
namespace {

Request Make(std::uint64_t id, Duration deadline, std::uint32_t shape = 0) {
  return {.id = RequestId{id}, .arrival = kStart, .deadline = kStart + deadline, .shape = shape};
}

std::vector<std::uint64_t> Ids(const RequestQueue& queue) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < queue.size(); ++i) ids.push_back(queue[i].id.value());
  return ids;
}

TEST(RequestQueue, IsInDeadlineOrderWithTiesByArrival) {
  RequestQueue queue(8);
  ASSERT_TRUE(queue.Push(Make(1, Millis(50))));
  ASSERT_TRUE(queue.Push(Make(2, Millis(20))));
  ASSERT_TRUE(queue.Push(Make(3, Millis(50))));
  ASSERT_TRUE(queue.Push(Make(4, Millis(20))));
  EXPECT_EQ(Ids(queue), (std::vector<std::uint64_t>{2, 4, 1, 3}));
}

TEST(RequestQueue, ReturnedRequestsTakeTheirOldPlace) {
  RequestQueue queue(8);
  queue.Push(Make(1, Millis(10)));
  queue.Push(Make(2, Millis(20)));
  queue.PopFront(1);
  queue.Push(Make(3, Millis(30)));
  queue.Push(Make(1, Millis(10)));
  EXPECT_EQ(Ids(queue), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(RequestQueue, RefusesBeyondItsCapacityWhateverThePowerOfTwo) {
  RequestQueue queue(3);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(queue.Push(Make(i, Millis(1))));
  EXPECT_TRUE(queue.full());
  EXPECT_FALSE(queue.Push(Make(9, Millis(1))));
  EXPECT_EQ(queue.size(), 3u);
}

// Without this a client that leaves would hold everybody while each of its rows moves the others:
// this test would take minutes.
TEST(RequestQueue, ManyThatLeaveInOrderMoveNoOthers) {
  constexpr std::uint64_t kMany = 1 << 16;
  RequestQueue queue(kMany);
  for (std::uint64_t i = 0; i < kMany; ++i) ASSERT_TRUE(queue.Push(Make(i, Millis(1))));
  for (std::uint64_t i = 0; i + 1 < kMany; ++i) {
    ASSERT_TRUE(queue.Remove(RequestId{i}).has_value());
    ASSERT_EQ(queue.front().id, RequestId{i + 1});
  }
}

// Without this ten thousand models would hold three gigabytes for requests that never come.
TEST(RequestQueue, TakesMemoryAsFarAsRequestsWait) {
  constexpr std::size_t kCapacity = std::size_t{1} << 20;
  RequestQueue queue(kCapacity);
  ASSERT_TRUE(queue.Push(Make(0, Millis(1))));
  const Request* const first = &queue[0];
  for (std::uint64_t i = 1; i < 1000; ++i) {
    queue.PopFront(1);
    ASSERT_TRUE(queue.Push(Make(i, Millis(1))));
    ASSERT_EQ(&queue[0], first) << "what was used before is used again";
  }
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(first) + page - 1) / page * page;
  std::vector<unsigned char> resident((kCapacity - 1) * sizeof(Request) / page - 1);
  ASSERT_EQ(mincore(reinterpret_cast<void*>(begin), resident.size() * page, resident.data()), 0);
  const auto used = std::ranges::count_if(resident, [](unsigned char p) { return (p & 1) != 0; });
  EXPECT_LT(static_cast<std::size_t>(used), resident.size() / 4);
}

// Tensors of different shapes cannot be stacked, so a batch ends where the shape changes.
TEST(RequestQueue, BatchableStopsAtAnotherShape) {
  RequestQueue queue(8);
  queue.Push(Make(1, Millis(1), 7));
  queue.Push(Make(2, Millis(2), 7));
  queue.Push(Make(3, Millis(3), 8));
  queue.Push(Make(4, Millis(4), 7));
  EXPECT_EQ(queue.Batchable(10), 2);
  EXPECT_EQ(queue.Batchable(1), 1);
  queue.PopFront(2);
  EXPECT_EQ(queue.Batchable(10), 1);
  EXPECT_EQ(RequestQueue(2).Batchable(10), 0);
}

TEST(RequestQueue, RemovesFromTheMiddleOnceOnly) {
  RequestQueue queue(8);
  for (std::uint64_t i = 0; i < 5; ++i) queue.Push(Make(i, Millis(1)));
  const auto removed = queue.Remove(RequestId{2});
  ASSERT_TRUE(removed.has_value());
  EXPECT_EQ(removed->id, RequestId{2});
  EXPECT_FALSE(queue.Remove(RequestId{2}).has_value());
  EXPECT_EQ(Ids(queue), (std::vector<std::uint64_t>{0, 1, 3, 4}));
}

TEST(RequestQueue, KnowsTheHighestPriorityOfTheNextBatch) {
  RequestQueue queue(4);
  Request plain = Make(1, Millis(10));
  Request low = Make(2, Millis(20));
  Request high = Make(3, Millis(30));
  low.priority = 5;
  high.priority = 1;
  queue.Push(plain);
  EXPECT_EQ(queue.Priority(4, 3), 3);
  queue.Push(low);
  queue.Push(high);
  EXPECT_EQ(queue.Priority(2, 3), 3) << "the third is not in that batch";
  EXPECT_EQ(queue.Priority(3, 3), 1);
  queue.PopFront(1);
  EXPECT_EQ(queue.Priority(1, 3), 5);
  queue.Remove(RequestId{3});
  EXPECT_EQ(queue.Priority(4, 3), 5);
  queue.PopFront(1);
  queue.Push(plain);
  EXPECT_EQ(queue.Priority(4, 3), 3);
}

// The ring wraps many times; a sorted vector is the truth it is held against.
TEST(RequestQueue, BehavesAsASortedVectorUnderRandomUse) {
  const std::uint64_t seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Rng rng = Rng::Stream(seed, "queue");
  RequestQueue queue(16);
  std::vector<Request> truth;
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const std::uint64_t action = rng.Below(4);
    if (action <= 1) {
      const Request request = Make(step, Micros(static_cast<std::int64_t>(rng.Below(50))));
      const bool fits = truth.size() < 16;
      ASSERT_EQ(queue.Push(request), fits);
      if (fits) truth.push_back(request);
      std::stable_sort(truth.begin(), truth.end(), [](const Request& a, const Request& b) {
        return a.deadline != b.deadline ? a.deadline < b.deadline : a.id < b.id;
      });
    } else if (action == 2 && !truth.empty()) {
      const std::size_t n = 1 + rng.Below(truth.size());
      queue.PopFront(n);
      truth.erase(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(n));
    } else if (!truth.empty()) {
      const std::size_t at = rng.Below(truth.size());
      ASSERT_TRUE(queue.Remove(truth[at].id).has_value());
      truth.erase(truth.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_EQ(queue.size(), truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) ASSERT_EQ(queue[i], truth[i]);
  }
}

}  // namespace
}  // namespace tactus
