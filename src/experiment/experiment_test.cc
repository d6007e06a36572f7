// What all commands share: were a setting read wrongly, or a file lost, every command would do so.
#include "experiment/experiment.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "base/temporary_folder_test.h"
#include "experiment/kept_files.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::string kScenario = SourcePath("scenarios/three-resnets.toml");

TEST(Experiment, SplitsASettingAtItsFirstEqualsSign) {
  EXPECT_THAT(*SplitSetting("policy=timeout:k=5"), Pair("policy", "timeout:k=5"));
  EXPECT_THAT(*SplitSetting("seed="), Pair("seed", ""));
  for (const char* text : {"seed", "=3", ""}) {
    EXPECT_THAT(SplitSetting(text).error().message, HasSubstr("write KEY=VALUE")) << text;
  }
}

TEST(Experiment, GivesAPolicyTheOptionsThatCommasParted) {
  EXPECT_THAT(
      JoinPolicyOptions({"timeout:k=5", "batch=4", "fifo", "symphony:published", "when=eager"}),
      ElementsAre("timeout:k=5,batch=4", "fifo", "symphony:published,when=eager"));
}

TEST(Experiment, NamesThePolicyThatCannotBeMade) {
  const std::vector<std::string> policies = {"fifo", "fifo:k=5"};
  EXPECT_THAT(CheckPolicies(policies).error().message, HasSubstr("'fifo:k=5'"));
  EXPECT_TRUE(CheckPolicies(std::span(policies).first(1)));
}

TEST(Experiment, LoadsAScenarioWithItsSettingsAndItsProfile) {
  const auto loaded = LoadExperiment(kScenario, {"rate_rps=100", "seed=7"});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->scenario.rate_rps, 100);
  EXPECT_EQ(loaded->scenario.seed, 7u);
  EXPECT_EQ(loaded->profile.models.size(), 3u);
  EXPECT_EQ(LanesOf(loaded->scenario), "1 lane");
  EXPECT_THAT(LoadExperiment(kScenario, {"sed=7"}).error().message, HasSubstr("--set sed"));
  EXPECT_THAT(LoadExperiment("/nowhere.toml", {}).error().message, HasSubstr("/nowhere.toml"));
}

TEST(Experiment, RunsOneAndSaysWhatItWas) {
  const auto loaded = LoadExperiment(kScenario, {"rate_rps=100", "duration_s=5"});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto run = RunSimulated(*loaded);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->source, "simulated");
  EXPECT_GT(run->all.outcomes[static_cast<std::size_t>(Outcome::kMet)], 100);
  EXPECT_THAT(Heading(*run), HasSubstr("three-resnets"));
}

// A trace that a run reads must outlive the report that it writes.
TEST(KeptFiles, RefusesToWriteWhatIsRead) {
  const TemporaryFolder folder;
  const std::string trace = (folder / "trace.csv").string();
  std::ofstream(trace) << "0,a\n";
  EXPECT_THAT(KeepFiles("s.toml", {trace}, {"", trace}).error().message,
              HasSubstr("s.toml reads this file, which would be lost"));
  std::filesystem::create_hard_link(trace, folder / "link.csv");
  EXPECT_FALSE(KeepFiles("s.toml", {trace}, {(folder / "link.csv").string()}));
  EXPECT_TRUE(KeepFiles("s.toml", {trace, ""}, {(folder / "other.csv").string()}));
  EXPECT_TRUE(KeepFiles("s.toml", {"/dev/null"}, {"/dev/null"})) << "no regular file";
}

// A scenario that leaves its lanes open would have none.
TEST(Experiment, ChoosesLanesWhereTheScenarioLeavesThemOpen) {
  const auto loaded = LoadExperiment(kScenario, {"lanes.count=auto", "processors=8"});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->scenario.lanes, 7);
  EXPECT_THAT(loaded->chosen_lanes, HasSubstr("7 lanes of 1 thread on 8 processors"));
  const auto stated = LoadExperiment(kScenario, {"lanes.count=3", "processors=8"});
  ASSERT_TRUE(stated) << stated.error().message;
  EXPECT_EQ(stated->scenario.lanes, 3);
  EXPECT_EQ(stated->chosen_lanes, "");
  EXPECT_THAT(LoadExperiment(kScenario, {"lanes.count=auto"}).error().message,
              HasSubstr("processors = 16"));
  EXPECT_THAT(LoadExperiment(kScenario, {"lanes.count=most"}).error().message,
              HasSubstr("must be a whole number from 1 to 4096, or auto"));
  EXPECT_THAT(
      LoadExperiment(kScenario, {"lanes.count=auto", "processors=8", "autoscale.interval_s=1"})
          .error()
          .message,
      HasSubstr("leave out [[lane_kinds]]"));
}

}  // namespace
}  // namespace tactus
