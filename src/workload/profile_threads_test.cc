// Latencies of other threads than were measured must be told apart from those that were: a server
// that took them as they are would promise what its lanes cannot do.
#include "workload/profile_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ProfileCell Cell(double ms) {
  return {.mean_ms = ms,
          .min_ms = ms,
          .p50_ms = ms,
          .p95_ms = 2 * ms,
          .p99_ms = 2 * ms,
          .max_ms = 3 * ms};
}

// Measured with 1, 2 and 4 threads: a batch of one gains nothing, one of three halves each time.
ProfiledModel Measured() {
  ProfiledModel model{.name = "m", .max_batch = 3};
  model.exits.push_back({.name = "1",
                         .cells = {Cell(8), Cell(12), Cell(16)},
                         .by_threads = {{1, 8, 16}, {2, 8, 8}, {4, 8, 4}}});
  return model;
}

TEST(ProfileThreads, KnowsWhatLiesBetweenTheMeasured) {
  ProfiledModel model = Measured();
  EXPECT_THAT(ThreadsKnown(model, 1), ElementsAre(1, 2, 3, 4));
  model.exits.push_back(model.exits[0]);
  model.exits[1].by_threads.pop_back();
  EXPECT_THAT(ThreadsKnown(model, 1), ElementsAre(1, 2));
  model.exits[1].by_threads.clear();
  EXPECT_THAT(ThreadsKnown(model, 1), ElementsAre(1));
  EXPECT_THAT(ThreadsKnown(model, 3), ElementsAre(3)) << "older profiles know their own alone";
}

TEST(ProfileThreads, ScalesByTheBatchAndNeverFalls) {
  const ProfiledModel two = AtThreads(Measured(), 1, 2);
  const std::vector<ProfileCell>& cells = two.exits[0].cells;
  EXPECT_DOUBLE_EQ(cells[0].mean_ms, 8);
  EXPECT_DOUBLE_EQ(cells[1].mean_ms, 9);  // three quarters of 12
  EXPECT_DOUBLE_EQ(cells[2].mean_ms, 9);  // half of 16, but no less than the smaller batch
  EXPECT_DOUBLE_EQ(cells[1].p95_ms, 18);
  EXPECT_EQ(AtThreads(Measured(), 1, 1).exits[0].cells[2].mean_ms, 16);
}

TEST(ProfileThreads, GoesByAmdahlBetweenThem) {
  ProfiledModel model = Measured();
  model.exits[0].by_threads = {{1, 8, 16}, {4, 2, 4}};  // a perfect gain
  EXPECT_NEAR(AtThreads(model, 1, 2).exits[0].cells[2].mean_ms, 8, 1e-9);
  EXPECT_NEAR(AtThreads(model, 1, 3).exits[0].cells[0].mean_ms, 8.0 / 3, 1e-9);
}

TEST(ProfileThreads, AScaledFileSaysSoAndLeavesOutWhatItCannotScale) {
  ProfileFile file{.provenance = "measured", .models = {Measured(), Measured()}};
  file.models[1].name = "old";
  file.models[1].exits[0].by_threads.clear();
  const ProfileFile scaled = AtThreads(file, 2);
  EXPECT_NE(scaled.Find("m"), nullptr);
  EXPECT_EQ(scaled.Find("old"), nullptr);
  EXPECT_EQ(scaled.provenance, "measured, scaled from 1 to 2 threads a batch");
  EXPECT_EQ(AtThreads(file, 1).models.size(), 2u);
  EXPECT_EQ(AtThreads(file, 1).provenance, "measured");
}

TEST(ProfileThreads, TheQuickestExitByPercentile) {
  ProfiledModel model = Measured();
  model.exits.push_back({.name = "2", .cells = {Cell(20), Cell(10), Cell(30)}});
  EXPECT_THAT(QuickestLatencies(model, 2, {.percentile = 0}), ElementsAre(Millis(8), Millis(10)));
  EXPECT_THAT(QuickestLatencies(model, 9, {.percentile = 95, .jitter_ms = 1}),
              ElementsAre(Millis(17), Millis(21), Millis(33)));
}

}  // namespace
}  // namespace tactus
