// A turn of the dispatch loop allocates nothing per request once it is warm, whichever thread takes
// it. This executable's operator new counts.
#include <atomic>

#include <gtest/gtest.h>

#include "base/allocation_hook.h"
#include "runtime/calls/dispatch_turns.h"
#include "runtime/harness_test.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<long> turn_allocations{0};
std::atomic<long> other_allocations{0};

}  // namespace

void tactus::OnAllocation() noexcept {
  if (!counting.load(std::memory_order_relaxed)) return;
  (DispatchTurns::InTurn() ? turn_allocations : other_allocations).fetch_add(1);
}

namespace tactus {
namespace {

TEST(Allocation, ATurnAllocatesNothingPerRequest) {
  for (const char* policy : {"edgeserving", "all-final", "early-exit-edf"}) {
    SCOPED_TRACE(policy);
    testing::HarnessOptions options;
    options.policy = policy;
    options.profile = testing::FlatProfile({"a", "b"}, 8, 0.001);
    testing::Harness h(std::move(options));
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(testing::FloatModel("a")));
    ASSERT_TRUE(h.runtime->Serve(testing::FloatModel("b")));
    const auto burst = [&h] {
      for (int i = 0; i < 200; ++i) {
        CallId id = 0;
        h.Send(i % 3 == 0 ? "a" : "b", {1, 2, 3, 4}, {2, 2}, {}, &id);
        if (i % 10 == 0) h.runtime->Cancel(id);
      }
      h.replies.AwaitAll();
    };
    burst();
    turn_allocations = 0;
    other_allocations = 0;
    counting = true;
    burst();
    counting = false;
    EXPECT_EQ(turn_allocations, 0);
    // The counter does count: clients and replies allocate.
    EXPECT_GT(other_allocations, 0);
  }
}

}  // namespace
}  // namespace tactus
