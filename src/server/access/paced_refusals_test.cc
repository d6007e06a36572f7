#include "server/access/paced_refusals.h"

#include <mutex>
#include <optional>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(PacedRefusals, TellEachOnceAndAtTheStopWhatIsHeld) {
  PacedRefusals refusals;
  int told = 0;
  constexpr int kCalls = 500;
  std::mutex mutex;
  const auto tell = [&] {
    const std::lock_guard lock(mutex);
    ++told;
  };
  for (int i = 0; i < kCalls; ++i) refusals.Tell("storm", 1'000'000, std::nullopt, tell);
  EXPECT_GT(refusals.held(), 0u);
  refusals.Stop();
  EXPECT_EQ(refusals.held(), 0u);
  EXPECT_EQ(told, kCalls);
  refusals.Tell("storm", 1'000'000, std::nullopt, tell);
  EXPECT_EQ(told, kCalls + 1);
}

}  // namespace
}  // namespace tactus
