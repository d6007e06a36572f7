#include "metrics/recorder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus {
namespace {

std::vector<Duration> OneToN(int n) {
  std::vector<Duration> values;
  for (int i = n; i >= 1; --i) values.push_back(Millis(i));
  return values;
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<Duration> values = OneToN(20);
  EXPECT_EQ(Percentile(values, 50), Millis(10));
  EXPECT_EQ(Percentile(values, 95), Millis(19));  // 0.95 * 20 is a little above 19 as a double
  EXPECT_EQ(Percentile(values, 95.1), Millis(20));
  EXPECT_EQ(Percentile(values, 100), Millis(20));
  EXPECT_EQ(Percentile(values, 0.001), Millis(1));
  std::vector<Duration> one = {Millis(7)};
  EXPECT_EQ(Percentile(one, 1), Millis(7));
  std::vector<Duration> none;
  EXPECT_EQ(Percentile(none, 99), Duration{});
}

TEST(Percentile, AgreesWithTheDefinitionOnRandomValues) {
  constexpr std::uint64_t kSeed = 5;
  Rng rng = Rng::Stream(kSeed, "percentile");
  for (int round = 0; round < 200; ++round) {
    std::vector<Duration> values(1 + rng.Below(60));
    for (Duration& value : values) value = Micros(static_cast<std::int64_t>(rng.Below(20)));
    const double p = 1 + static_cast<double>(rng.Below(100));
    const Duration got = Percentile(values, p);
    const auto covered = [&](Duration limit) {
      const auto n =
          std::count_if(values.begin(), values.end(), [&](Duration v) { return v <= limit; });
      return 100.0 * static_cast<double>(n) >= p * static_cast<double>(values.size());
    };
    ASSERT_TRUE(covered(got)) << "seed " << kSeed << " round " << round;
    ASSERT_FALSE(covered(got - Nanos(1))) << "seed " << kSeed << " round " << round;
  }
}

TEST(Recorder, GivesEveryRequestOfABatchItsOutcome) {
  const Request requests[] = {
      {.id = RequestId{1}, .arrival = kStart, .deadline = kStart + Millis(10)},
      {.id = RequestId{2}, .arrival = kStart + Millis(1), .deadline = kStart + Millis(30)}};
  const Batch batch{.model = ModelId{3}, .exit = ExitId{2}, .requests = requests};
  BatchReport report{kStart + Millis(5), kStart + Millis(11), BatchStatus::kOk};
  Recorder recorder(4);
  recorder.Complete(batch, report, kStart + Millis(12));
  report.status = BatchStatus::kFailed;
  recorder.Complete(batch, report, kStart + Millis(12));
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].outcome, Outcome::kLate);
  EXPECT_EQ(records[1].outcome, Outcome::kMet);
  EXPECT_EQ(records[1].started, kStart + Millis(5));
  EXPECT_EQ(records[1].ended, kStart + Millis(12));
  EXPECT_EQ(records[1].model, 3u);
  EXPECT_EQ(records[1].exit, 2);
  EXPECT_EQ(records[1].batch, 2);
  EXPECT_EQ(records[2].outcome, Outcome::kError);
}

TEST(Recorder, AnswerAtTheVeryDeadlineIsInTime) {
  const Request request{.id = RequestId{1}, .arrival = kStart, .deadline = kStart + Millis(10)};
  Recorder recorder(1);
  recorder.Complete({.requests = {&request, 1}}, {}, kStart + Millis(10));
  EXPECT_EQ(recorder.records()[0].outcome, Outcome::kMet);
}

TEST(Recorder, NotesWhyARequestDidNotRun) {
  Recorder recorder(8);
  const Request request{.id = RequestId{1}, .arrival = kStart, .deadline = kStart + Millis(10)};
  const std::pair<DropReason, Outcome> wanted[] = {{DropReason::kQueueFull, Outcome::kShed},
                                                   {DropReason::kExpired, Outcome::kExpired},
                                                   {DropReason::kShed, Outcome::kShed},
                                                   {DropReason::kCancelled, Outcome::kCancelled},
                                                   {DropReason::kUnloaded, Outcome::kShed}};
  for (const auto& [reason, outcome] : wanted) {
    recorder.Reject(ModelId{1}, request, reason, kStart + Millis(3));
    EXPECT_EQ(recorder.records().back().outcome, outcome);
    EXPECT_EQ(recorder.records().back().batch, 0);
    EXPECT_EQ(recorder.records().back().ended, kStart + Millis(3));
  }
}

}  // namespace
}  // namespace tactus
