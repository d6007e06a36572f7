#include "server/live/live_minute.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr LiveMinute::Clock::time_point kNow{std::chrono::hours(1)};

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
  EXPECT_EQ(minute.Copy(kNow).from, minute.Copy(kNow).to);
  for (int s = 1; s <= 100; ++s) minute.Add(TakenAt(Seconds(s)), kNow);
  const LiveMinute::Kept kept = minute.Copy(kNow);
  EXPECT_EQ(kept.from, kStart + Seconds(40));
  EXPECT_EQ(kept.to, kStart + Seconds(100));
  EXPECT_EQ(kept.answers.size(), 61u);
  EXPECT_EQ(kept.batches.size(), 61u);
  EXPECT_EQ(kept.models, std::vector<std::string>{"a"});
}

TEST(LiveMinute, IsShorterWhereThereAreTooMany) {
  LiveMinute minute;
  for (int s = 1; s <= 10; ++s) minute.Add(TakenAt(Seconds(s), LiveMinute::kMost / 4), kNow);
  const LiveMinute::Kept kept = minute.Copy(kNow);
  EXPECT_EQ(kept.from, kStart + Seconds(7));
  EXPECT_EQ(kept.answers.size(), LiveMinute::kMost);
  EXPECT_EQ(kept.batches.size(), 4u);
}

TEST(LiveMinute, BeginsAnewWhereSomeWasLost) {
  LiveMinute minute;
  minute.Add(TakenAt(Seconds(1)), kNow);
  LiveMoments::Taken lost = TakenAt(Seconds(2));
  lost.lost = 1;
  minute.Add(lost, kNow);
  EXPECT_TRUE(minute.Copy(kNow).answers.empty());
  minute.Add(TakenAt(Seconds(3)), kNow);
  EXPECT_TRUE(minute.Copy(kNow).answers.empty()) << "an instant is no time";
  minute.Add(TakenAt(Seconds(4)), kNow);
  EXPECT_EQ(minute.Copy(kNow).from, kStart + Seconds(3));
  EXPECT_EQ(minute.Copy(kNow).answers.size(), 2u);
}

// Without this, who loads the page again has nothing to ask of.
TEST(LiveMinute, StaysUntilThereIsAsMuchAsSaysSomething) {
  LiveMinute minute;
  for (int s = 1; s <= 30; ++s) minute.Add(TakenAt(Seconds(s)), kNow);
  const auto later = kNow + std::chrono::seconds(90);
  minute.Forget(later);
  EXPECT_EQ(minute.Copy(later).answers.size(), 30u) << "nobody watches";
  EXPECT_EQ(minute.Copy(later).ago, Seconds(90));
  minute.Begin();
  minute.Add(TakenAt(Seconds(120)), later);
  EXPECT_EQ(minute.Copy(later).answers.size(), 30u) << "somebody does again";
  for (int s = 121; s <= 123; ++s) minute.Add(TakenAt(Seconds(s)), later);
  EXPECT_EQ(minute.Copy(later).answers.size(), 4u);
  EXPECT_EQ(minute.Copy(later).ago, Duration{});
  minute.Begin();
  minute.Begin();
  EXPECT_EQ(minute.Copy(later).answers.size(), 4u) << "whoever looks for a moment takes nothing";
  minute.Forget(later + std::chrono::seconds(599));
  EXPECT_EQ(minute.Copy(later).answers.size(), 4u);
  minute.Forget(later + std::chrono::seconds(600));
  EXPECT_TRUE(minute.Copy(later).answers.empty());
}

}  // namespace
}  // namespace tactus
