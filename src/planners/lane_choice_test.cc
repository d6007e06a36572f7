// Without these a machine stands idle beside its one lane, or a model never meets its SLO though
// more threads a lane would see to it.
#include "planners/lane_choice.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;

// Batches of 1 to 8 that take 6 b + 4 ms on one thread; a tenth of that is not divided.
ModelDemand Demand(const std::string& name, double slo_ms, int most_threads, double of_all = 1,
                   double serial = 0.1) {
  ModelDemand demand{.model = name, .slo = FromMillis(slo_ms)};
  for (int threads = 1; threads <= most_threads; ++threads) {
    for (int b = 1; b <= 8; ++b) {
      const double alone = of_all * (6.0 * b + 4);
      demand.by_threads[threads].push_back(FromMillis(alone * (serial + (1 - serial) / threads)));
    }
  }
  return demand;
}

struct Case {
  const char* what;
  LaneQuestion question;
  int lanes;
  int threads;
  int kept;
};

TEST(LaneChoice, Table) {
  const ModelDemand unknown{.model = "new", .slo = Millis(50)};
  const Case cases[] = {
      {"nothing is served yet", {.processors = 16}, 15, 1, 1},
      {"no profile", {.processors = 16, .demands = {unknown, unknown}}, 15, 1, 1},
      {"one processor", {.processors = 1, .demands = {Demand("a", 100, 1)}}, 1, 1, 0},
      {"two processors are both used",
       {.processors = 2, .demands = {Demand("a", 100, 2)}},
       2,
       1,
       0},
      {"of three, one is left", {.processors = 3, .demands = {Demand("a", 100, 2)}}, 2, 1, 1},
      {"loose SLO", {.processors = 16, .demands = {Demand("a", 200, 16)}}, 15, 1, 1},
      {"SLO of half again the batch", {.processors = 4, .demands = {Demand("a", 15, 4)}}, 1, 3, 1},
      {"shorter SLO than the batch", {.processors = 8, .demands = {Demand("a", 7, 8)}}, 1, 7, 1},
      {"the same, not measured", {.processors = 8, .demands = {Demand("a", 7, 1)}}, 7, 1, 1},
      {"one of two asks for more",
       {.processors = 16, .demands = {Demand("a", 100, 16, 0.1), Demand("b", 9, 16)}},
       5,
       3,
       1},
      {"what is not known asks for nothing",
       {.processors = 8, .demands = {unknown, Demand("a", 7, 8)}},
       1,
       7,
       1},
      {"threads are given",
       {.processors = 9, .threads = 4, .demands = {Demand("a", 100, 2)}},
       2,
       4,
       1},
      {"more threads are given than there are", {.processors = 2, .threads = 4}, 1, 4, 0},
      {"slots share a lane", {.processors = 9, .slots = 2, .demands = {unknown}}, 4, 1, 1},
      {"measured with more threads alone",
       {.processors = 9,
        .demands = {{.model = "a", .slo = Millis(50), .by_threads = {{2, {Millis(5)}}}}}},
       4,
       2,
       1},
  };
  for (const Case& each : cases) {
    const LaneChoice choice = ChooseLanes(each.question);
    EXPECT_EQ(choice.lanes, each.lanes) << each.what << ": " << choice.why;
    EXPECT_EQ(choice.threads, each.threads) << each.what << ": " << choice.why;
    EXPECT_EQ(choice.kept, each.kept) << each.what;
    EXPECT_EQ(choice, ChooseLanes(each.question)) << each.what;
  }
}

TEST(LaneChoice, SaysWhyInPlainWords) {
  EXPECT_EQ(
      ChooseLanes({.processors = 4}).why,
      "3 lanes of 1 thread on 4 processors, one of which is left to other threads: no profile "
      "says what more threads would bring");
  EXPECT_EQ(ChooseLanes({.processors = 1, .threads = 1}).why,
            "1 lane of 1 thread on 1 processor: the threads are given");
  const std::string why =
      ChooseLanes({.processors = 8, .demands = {Demand("a", 7, 8), Demand("b", 200, 8)}}).why;
  EXPECT_THAT(why, HasSubstr("by the profile they sustain about "));
  EXPECT_THAT(why, HasSubstr("2 lanes of 3 threads about "));
}

// A model that no number of threads serves must not decide for those that can be served.
TEST(LaneChoice, AModelThatNothingServesDecidesNothing) {
  const ModelDemand unmeetable = Demand("never", 0.1, 8);
  const LaneChoice choice =
      ChooseLanes({.processors = 8, .demands = {unmeetable, Demand("a", 200, 8)}});
  EXPECT_EQ(choice.lanes, 7);
  EXPECT_EQ(WorthOf({.processors = 8, .demands = {unmeetable}}, 7, 1).met, 0);
}

TEST(LaneChoice, MoreLanesAreWorthMore) {
  const LaneQuestion question{.demands = {Demand("a", 60, 2), Demand("b", 40, 2, 0.5)}};
  double before = 0;
  for (const int lanes : {1, 2, 4, 8}) {
    const LaneWorth worth = WorthOf(question, lanes, 1);
    EXPECT_EQ(worth.met, 2);
    EXPECT_GT(worth.peak_rps, 1.9 * before);
    before = worth.peak_rps;
  }
}

}  // namespace
}  // namespace tactus
