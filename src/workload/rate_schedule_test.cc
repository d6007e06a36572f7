#include "workload/rate_schedule.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

class RateScheduleTest : public ::testing::Test {
 protected:
  std::filesystem::path Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  Scenario Two(const std::string& schedule) {
    Scenario scenario;
    scenario.models = {{.name = "a", .profile_as = "a"}, {.name = "b", .profile_as = "b"}};
    scenario.rate_rps = 4000;
    scenario.seed = 7;
    if (!schedule.empty()) scenario.schedule = Write("schedule.csv", schedule);
    return scenario;
  }

  const TemporaryFolder folder_;
};

// How many arrive in each second of [0, seconds), by model.
std::vector<std::vector<int>> PerSecond(const Scenario& scenario, int seconds) {
  auto streams = MakeArrivals(scenario, kStart + Seconds(seconds));
  EXPECT_TRUE(streams) << streams.error().message;
  std::vector<std::vector<int>> counts;
  for (const auto& stream : *streams) {
    auto& count = counts.emplace_back(seconds);
    TimePoint before = kStart;
    for (TimePoint at; (at = stream->Next()) != kNever; before = at) {
      EXPECT_GE(at, before);
      ++count[static_cast<std::size_t>((at - kStart) / Seconds(1))];
    }
  }
  return counts;
}

// A rate that is off would make every figure with a changing load another experiment.
TEST_F(RateScheduleTest, EachModelFollowsItsColumn) {
  const auto counts = PerSecond(Two("at_s,b,a\n0,1,0.5\n2,0,0.5\n3,2.5,0\n4,1,3\n"), 6);
  const double a[] = {1000, 1000, 1000, 0, 6000, 6000};
  const double b[] = {2000, 2000, 0, 5000, 2000, 2000};
  for (int s = 0; s < 6; ++s) {
    EXPECT_NEAR(counts[0][s], a[s], 5 * std::sqrt(a[s]) + 1e-9) << "second " << s;
    EXPECT_NEAR(counts[1][s], b[s], 5 * std::sqrt(b[s]) + 1e-9) << "second " << s;
  }
}

// The dice stay where they are: a schedule of ones changes no arrival.
TEST_F(RateScheduleTest, OfOnesIsNone) {
  for (const ArrivalProcess process :
       {ArrivalProcess::kPoisson, ArrivalProcess::kGamma, ArrivalProcess::kUniform}) {
    Scenario plain = Two("");
    Scenario ones = Two("at_s,all\n0,1\n0.5,1\n");
    plain.process = ones.process = process;
    plain.cv = ones.cv = 3;
    EXPECT_EQ(PerSecond(plain, 3), PerSecond(ones, 3));
  }
}

// Nothing more comes, and the stream says so instead of searching for ever.
TEST_F(RateScheduleTest, MayEndInSilence) {
  const auto counts = PerSecond(Two("at_s,all\n0,1\n1,0\n"), 5);
  EXPECT_GT(counts[0][0], 1000);
  EXPECT_EQ(counts[0][1] + counts[0][2] + counts[0][3] + counts[0][4], 0);
}

TEST_F(RateScheduleTest, ErrorsNameThePlace) {
  const std::vector<std::string> models = {"a", "b"};
  const struct {
    const char* text;
    const char* wanted;
  } cases[] = {
      {"time,a,b\n0,1,1\n", "header must be at_s"},
      {"at_s,a,x\n0,1,1\n", "column 'x' is no model"},
      {"at_s,a\n0,1\n", "no column 'b'"},
      {"at_s,all\n1,1\n", "bad.csv:2: at_s '1'"},
      {"at_s,all\n0,1\n2,1\n2,3\n", "bad.csv:4: at_s '2'"},
      {"at_s,all\n0,-1\n", "bad.csv:2: '-1' must be a factor"},
      {"at_s,all\n0,nan\n", "must be a factor"},
      {"at_s,all\n0\n", "bad.csv:2"},
      {"at_s,all\n", "has no row"},
  };
  for (const auto& bad : cases) {
    const auto loaded = LoadRateSchedule(Write("bad.csv", bad.text), models);
    ASSERT_FALSE(loaded) << bad.text;
    EXPECT_THAT(loaded.error().message, HasSubstr(bad.wanted)) << bad.text;
  }
  EXPECT_THAT(LoadRateSchedule("missing.csv", models).error().message, HasSubstr("missing.csv"));
}

}  // namespace
}  // namespace tactus
