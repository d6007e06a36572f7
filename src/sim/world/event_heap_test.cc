#include "sim/world/event_heap.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

// A lane that becomes free at the instant of an arrival must be seen free by it.
TEST(EventHeap, CompletionsComeBeforeArrivalsAndTiesByOrder) {
  EventHeap heap(8);
  const TimePoint t = kStart + Millis(5);
  heap.Push(t, EventClass::kArrival, 1);
  heap.Push(t, EventClass::kArrival, 0);
  heap.Push(t, EventClass::kFinish, 7);
  heap.Push(t, EventClass::kFinish, 6);
  heap.Push(t - Nanos(1), EventClass::kArrival, 9);
  std::vector<std::uint32_t> order;
  for (; !heap.empty(); heap.Pop()) order.push_back(heap.top().subject);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{9, 7, 6, 1, 0}));
  EXPECT_EQ(heap.NextAt(), kNever);
}

TEST(EventHeap, GivesRandomEventsInOrder) {
  constexpr std::uint64_t kSeed = 11;
  Rng rng = Rng::Stream(kSeed, "heap");
  EventHeap heap(4);
  TimePoint last = kStart;
  std::size_t held = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (held == 0 || rng.Below(2) == 0) {
      heap.Push(last + Nanos(static_cast<std::int64_t>(rng.Below(50))), EventClass::kArrival, 0);
      ++held;
    } else {
      ASSERT_GE(heap.NextAt(), last) << "seed " << kSeed << " step " << i;
      last = heap.NextAt();
      heap.Pop();
      --held;
    }
  }
}

}  // namespace
}  // namespace tactus
