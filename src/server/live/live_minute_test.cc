#include "server/live/live_minute.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

LiveMoments::Answer At(Duration ended) {
  return {.record = {.arrival = kStart + ended - Millis(5), .ended = kStart + ended}};
}

LiveMoments::Taken TakenAt(Duration ended, std::size_t answers = 1) {
  return {.batches = {{.started = kStart + ended - Millis(3), .ended = kStart + ended}},
          .answers = std::vector(answers, At(ended)),
          .models = {"a"}};
}

TEST(LiveMinute, KeepsAMinute) {
  LiveMinute minute;
  EXPECT_EQ(minute.Copy().from, minute.Copy().to);
  for (int s = 1; s <= 100; ++s) minute.Add(TakenAt(Seconds(s)));
  const LiveMinute::Kept kept = minute.Copy();
  EXPECT_EQ(kept.from, kStart + Seconds(40));
  EXPECT_EQ(kept.to, kStart + Seconds(100));
  EXPECT_EQ(kept.answers.size(), 61u);
  EXPECT_EQ(kept.batches.size(), 61u);
  EXPECT_EQ(kept.models, std::vector<std::string>{"a"});
}

TEST(LiveMinute, IsShorterWhereThereAreTooMany) {
  LiveMinute minute;
  for (int s = 1; s <= 10; ++s) minute.Add(TakenAt(Seconds(s), LiveMinute::kMost / 4));
  const LiveMinute::Kept kept = minute.Copy();
  EXPECT_EQ(kept.from, kStart + Seconds(7));
  EXPECT_EQ(kept.answers.size(), LiveMinute::kMost);
  EXPECT_EQ(kept.batches.size(), 4u);
}

TEST(LiveMinute, BeginsAnewWhereSomeWasLost) {
  LiveMinute minute;
  minute.Add(TakenAt(Seconds(1)));
  LiveMoments::Taken lost = TakenAt(Seconds(2));
  lost.lost = 1;
  minute.Add(lost);
  EXPECT_TRUE(minute.Copy().answers.empty());
  minute.Add(TakenAt(Seconds(3)));
  EXPECT_EQ(minute.Copy().from, kStart + Seconds(3));
  EXPECT_EQ(minute.Copy().answers.size(), 1u);
}

}  // namespace
}  // namespace tactus
