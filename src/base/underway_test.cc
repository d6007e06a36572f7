#include "base/underway.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

struct Counted {
  explicit Counted(std::atomic<int>& all) : alive(all) { ++alive; }
  ~Counted() { --alive; }
  std::atomic<int>& alive;
};

// Without this, an owner could go while a call that it waited for is still being freed.
TEST(Underway, WaitsUntilTheLastCallIsFreed) {
  std::atomic<int> alive = 0;
  Underway<Counted> calls;
  std::vector<Counted*> made;
  for (int i = 0; i < 200; ++i) {
    auto call = std::make_shared<Counted>(alive);
    made.push_back(call.get());
    calls.Add(std::move(call));
  }
  EXPECT_EQ(calls.all().size(), 200u);
  std::vector<std::jthread> enders;
  for (std::size_t t = 0; t < 4; ++t) {
    enders.emplace_back([&calls, &made, t] {
      for (std::size_t i = t; i < made.size(); i += 4) calls.End(made[i]);
    });
  }
  calls.Wait();
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(calls.all().empty());
}

// Without this, who gives up all calls could meet one that is freed meanwhile.
TEST(Underway, KeepsWhatSomebodyStillHolds) {
  std::atomic<int> alive = 0;
  Underway<Counted> calls;
  calls.Add(std::make_shared<Counted>(alive));
  {
    const auto held = calls.all();
    calls.End(held.front().get());
    calls.Wait();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace tactus
