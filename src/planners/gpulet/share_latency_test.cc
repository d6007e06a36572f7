// The stand-in for latencies on shares of a device.
#include "planners/gpulet/share_latency.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr ModelId kModel{0};
constexpr ExitId kFinal{0};

ProfileTable Whole(bool with_use) {
  ProfileTable::ModelRows rows{.exits = 1, .max_batch = 2, .latency = {Millis(4), Millis(6)}};
  if (with_use)
    rows.use = {{.throughput = {0, 0.1, 0.2, 0, 0.2}}, {.throughput = {0, 0, 0, 0, 0.5}}};
  return ProfileTable(1, {&rows, 1});
}

TEST(ShareLatency, IsFlatUntilABatchLacksWhatItUses) {
  const auto table = OnShares(Whole(true), {.shares = {0.2, 0.4, 0.8, 1}});
  ASSERT_TRUE(table) << table.error().message;
  // A batch of 1 uses 0.2 / 0.5 of what the device's best batch does, one of 2 all of it.
  EXPECT_EQ(table->Latency(kModel, kFinal, 1, LaneClass{0}), Millis(8));
  EXPECT_EQ(table->Latency(kModel, kFinal, 1, LaneClass{1}), Millis(4));
  EXPECT_EQ(table->Latency(kModel, kFinal, 1, LaneClass{3}), Millis(4));
  EXPECT_EQ(table->Latency(kModel, kFinal, 2, LaneClass{1}), Millis(15));
  EXPECT_EQ(table->Latency(kModel, kFinal, 2, LaneClass{3}), Millis(6));
  EXPECT_EQ(table->Use(kModel, kFinal, 1, LaneClass{2}).throughput[1], 0.1);
  EXPECT_EQ(table->Use(kModel, kFinal, 1, LaneClass{0}).throughput[1], 0.05);  // in twice the time
}

TEST(ShareLatency, TheExponentSaysHowMuchOfALostPercentIsFelt) {
  const auto table = OnShares(Whole(true), {.shares = {0.25, 1}, .exponent = 0.5});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->Latency(kModel, kFinal, 2, LaneClass{0}), Millis(12));
}

// Of the device the best batch uses half, so that it loses nothing on half of it.
TEST(ShareLatency, ABatchCanUseWhatWasProfiledOfTheDevice) {
  const auto table = OnShares(
      Whole(true), {.shares = {0.1, 0.25, 0.5}, .utilization_base = UtilizationBase::kDevice});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->Latency(kModel, kFinal, 1, LaneClass{0}), Millis(8));
  EXPECT_EQ(table->Latency(kModel, kFinal, 1, LaneClass{1}), Millis(4));
  EXPECT_EQ(table->Latency(kModel, kFinal, 2, LaneClass{1}), Millis(12));
  EXPECT_EQ(table->Latency(kModel, kFinal, 2, LaneClass{2}), Millis(6));
}

TEST(ShareLatency, NeedsToKnowWhatBatchesUse) {
  const auto table = OnShares(Whole(false), {.shares = {0.5, 1}, .models = {"LeNet"}});
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().message.find("does not say how much model 'LeNet' uses"),
            std::string::npos);
}

}  // namespace
}  // namespace tactus
