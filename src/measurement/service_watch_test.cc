// What `tactus measure` reports of a runtime is taken here: a wrong offset or ratio would be
// mistaken for the machine's.
#include "measurement/service_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(SpreadOf, IsZeroOfNothingAndKeepsPercentilesApart) {
  EXPECT_EQ(SpreadOf({}).p99, Duration{});
  std::vector<Duration> values;
  for (int i = 1; i <= 100; ++i) values.push_back(Micros(i));
  const Spread spread = SpreadOf(std::move(values));
  EXPECT_EQ(spread.mean, Nanos(50'500));
  EXPECT_LT(spread.p50, spread.p95);
  EXPECT_LE(spread.p95, Micros(96));
  EXPECT_GE(spread.p99, Micros(99));
}

class ServiceWatchTest : public ::testing::Test {
 protected:
  ServiceWatchTest() {
    ProfiledModel model;
    model.name = "a";
    model.exits.resize(1);
    model.exits[0].cells.resize(2);
    model.exits[0].cells[0].mean_ms = 2;
    model.exits[0].cells[1].mean_ms = 3;
    selected_.models.push_back(model);
    spec_.name = "a";
  }
  void Ran(Duration start, Duration took, int batch, BatchStatus status = BatchStatus::kOk) {
    BatchRecord record;
    record.exit = ExitId{0};
    record.batch = batch;
    record.decided = kStart + start - Micros(10);
    record.started = kStart + start;
    record.ended = record.started + took;
    record.learnt = record.ended + Micros(5);
    record.status = status;
    watch_.OnBatch(spec_, record);
  }

  ProfileFile selected_;
  ModelSpec spec_;
  ServiceWatch watch_{16, selected_};
};

TEST_F(ServiceWatchTest, ComparesBatchesWithTheProfile) {
  EXPECT_THAT(watch_.service_ratios(), ElementsAre(1)) << "of a model without a batch";
  Ran(Millis(0), Millis(4), 1);
  Ran(Millis(10), Millis(6), 2);
  Ran(Millis(20), Millis(50), 2, BatchStatus::kFailed);
  EXPECT_THAT(watch_.service_ratios(), ElementsAre(DoubleNear(2, 1e-9))) << "10 ms for 5";
  EXPECT_EQ(watch_.launch().mean, Micros(10));
  EXPECT_EQ(watch_.finish().p50, Micros(5));
}

// A window in which no batch started has what the one before it had.
TEST_F(ServiceWatchTest, TracesTheRatioThroughWindows) {
  Ran(Millis(0), Millis(2), 1);
  Ran(Millis(210), Millis(6), 1);
  EXPECT_THAT(watch_.service_trace(kStart, Millis(100)),
              ElementsAre(DoubleNear(0.5, 1e-9), DoubleNear(0.5, 1e-9), DoubleNear(1.5, 1e-9)));
}

TEST_F(ServiceWatchTest, TellsRecordsInTheScenariosTime) {
  RequestRecord record;
  record.arrival = kStart + Millis(7);
  record.ended = kStart + Millis(9);
  watch_.OnAnswered(spec_, record, 1);
  watch_.Keep(1);
  const auto records = watch_.TakeRecords(kStart + Millis(5));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].arrival, kStart + Millis(2));
  EXPECT_EQ(records[0].ended, kStart + Millis(4));
  EXPECT_EQ(records[0].correct, 1);
}

}  // namespace
}  // namespace tactus
