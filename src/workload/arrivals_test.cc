#include "workload/arrivals.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

Scenario Models(std::initializer_list<const char*> names) {
  Scenario scenario;
  for (const char* name : names) scenario.models.push_back({.name = name, .profile_as = name});
  scenario.seed = 42;
  return scenario;
}

std::vector<std::vector<double>> Instants(const Scenario& scenario, double seconds) {
  auto streams = MakeArrivals(scenario, kStart + FromSeconds(seconds));
  EXPECT_TRUE(streams) << streams.error().message;
  std::vector<std::vector<double>> all;
  for (const auto& stream : *streams) {
    auto& instants = all.emplace_back();
    for (TimePoint at; (at = stream->Next()) != kNever;) instants.push_back(ToSeconds(at - kStart));
    EXPECT_EQ(stream->Next(), kNever) << "a stream that has ended stays ended";
  }
  return all;
}

struct Gaps {
  double mean = 0;
  double cv = 0;
};

Gaps GapsOf(const std::vector<double>& instants) {
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < instants.size(); ++i) {
    const double gap = instants[i] - instants[i - 1];
    EXPECT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const auto n = static_cast<double>(instants.size() - 1);
  const double mean = sum / n;
  // Equal gaps have a variance of 0, which rounding may turn negative.
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean};
}

// The first two moments of the gaps: 200,000 of them leave an error well below the tolerance.
TEST(Arrivals, GapsHaveTheMomentsOfTheirProcess) {
  const struct {
    ArrivalProcess process;
    double cv;
    double wanted_cv;
  } cases[] = {{ArrivalProcess::kPoisson, 3, 1},
               {ArrivalProcess::kGamma, 0.5, 0.5},
               {ArrivalProcess::kGamma, 1, 1},
               {ArrivalProcess::kGamma, 3, 3},
               {ArrivalProcess::kUniform, 1, 0}};
  for (const auto& c : cases) {
    Scenario scenario = Models({"m"});
    scenario.process = c.process;
    scenario.cv = c.cv;
    scenario.rate_rps = 200;
    const Gaps gaps = GapsOf(Instants(scenario, 1000)[0]);
    EXPECT_NEAR(gaps.mean * 200, 1, 0.03) << c.cv;
    EXPECT_NEAR(gaps.cv, c.wanted_cv, 0.03 * c.wanted_cv + 1e-4) << c.cv;
  }
}

TEST(Arrivals, UniformCountsAreExact) {
  Scenario scenario = Models({"a", "b"});
  scenario.process = ArrivalProcess::kUniform;
  scenario.rate_rps = 60;
  const auto instants = Instants(scenario, 100);
  EXPECT_EQ(instants[0].size(), 3000u);
  EXPECT_EQ(instants[1].size(), 3000u);
  EXPECT_NE(instants[0][0], instants[1][0]) << "each model has a phase of its own";
}

TEST(Arrivals, StopAtTheEndAndAtRateZero) {
  Scenario scenario = Models({"a", "b"});
  scenario.popularity = Popularity::kRatio;
  scenario.models[1].ratio = 0;
  const auto instants = Instants(scenario, 2);
  EXPECT_LT(instants[0].back(), 2);
  EXPECT_TRUE(instants[1].empty());
}

// Experiments stay comparable when a model joins: nobody else's arrivals move.
TEST(Arrivals, AddingAModelMovesNoOther) {
  for (const auto process :
       {ArrivalProcess::kPoisson, ArrivalProcess::kGamma, ArrivalProcess::kUniform}) {
    Scenario two = Models({"a", "b"});
    Scenario three = Models({"new", "a", "b"});
    for (Scenario* scenario : {&two, &three}) {
      scenario->process = process;
      scenario->cv = 2;
      for (ScenarioModel& model : scenario->models) model.rate_rps = 50;
    }
    const auto before = Instants(two, 20);
    const auto after = Instants(three, 20);
    EXPECT_EQ(before[0], after[1]);
    EXPECT_EQ(before[1], after[2]);
    EXPECT_NE(before[0], before[1]);
  }
}

TEST(Arrivals, DependOnTheSeedAlone) {
  Scenario scenario = Models({"a"});
  const auto once = Instants(scenario, 5);
  EXPECT_EQ(once, Instants(scenario, 5));
  scenario.seed = 43;
  EXPECT_NE(once, Instants(scenario, 5));
}

// Callers that wait for their answers: what comes after their first calls, answers decide.
TEST(ClosedArrivals, AreTheFirstCallOfEachCaller) {
  Scenario scenario = Models({"a", "b"});
  scenario.process = ArrivalProcess::kClosed;
  scenario.callers = 5;
  scenario.think_ms = 20;
  for (const auto& instants : Instants(scenario, 5)) {
    ASSERT_EQ(instants.size(), 5u);
    EXPECT_TRUE(std::ranges::is_sorted(instants));
    EXPECT_LE(instants.back(), 0.021);
  }
  EXPECT_FALSE(CheckOpenLoop(scenario));
  EXPECT_TRUE(CheckOpenLoop(Models({"a"})));
}

class TraceArrivalsTest : public ::testing::Test {
 protected:
  Scenario Trace(const char* text) {
    std::ofstream(path_) << text;
    Scenario scenario = Models({"a", "b"});
    scenario.process = ArrivalProcess::kTrace;
    scenario.trace = path_;
    scenario.popularity = Popularity::kRatio;
    return scenario;
  }
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "trace.csv";
};

// Five instants in a turn of 10 s (a mean gap closes it) are 0.5 r/s; stretched to 2 r/s a turn
// takes 2.5 s.
TEST_F(TraceArrivalsTest, IsStretchedToItsRateAndRepeated) {
  Scenario scenario = Trace("# comment\nt_s,tokens\n100,7\n101,7\n102,7\n103,7\n108,7\n");
  scenario.models[0].ratio = 1;
  scenario.models[1].ratio = 0;
  scenario.rate_rps = 2;
  const auto instants = Instants(scenario, 5)[0];
  const std::vector<double> wanted = {0, 0.25, 0.5, 0.75, 2.0, 2.5, 2.75, 3.0, 3.25, 4.5};
  ASSERT_EQ(instants.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(instants[i], wanted[i], 1e-6);
}

TEST_F(TraceArrivalsTest, IsSplitAmongModelsByTheirShares) {
  Scenario scenario = Trace("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  scenario.models[0].ratio = 3;
  scenario.rate_rps = 1000;
  const auto instants = Instants(scenario, 20);
  EXPECT_EQ(instants[0].size() + instants[1].size(), 20000u);
  EXPECT_NEAR(static_cast<double>(instants[0].size()) / 20000, 0.75, 0.02);
}

TEST_F(TraceArrivalsTest, ReportsWhatIsNoTrace) {
  for (const auto& [text, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"0\n2\n1\n", ":3: must be an instant"},
           {"t\nu\n", ":2: must be an instant"},
           {"0\n-1\n", ":2: must be an instant"},
           {"5\n", "at least two"},
           {"5\n5\n", "at least two"},
           {"", "is empty"}}) {
    const auto streams = MakeArrivals(Trace(text), kStart + Seconds(1));
    ASSERT_FALSE(streams) << text;
    EXPECT_THAT(streams.error().message, ::testing::HasSubstr(message));
  }
  Scenario scenario = Trace("0\n1\n");
  scenario.trace = "/no/such/trace";
  EXPECT_EQ(MakeArrivals(scenario, kStart).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tactus
