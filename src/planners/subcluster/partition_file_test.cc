// Without these a mistake in the file would become a wrong plan, or an error that names no place.
#include "planners/subcluster/partition_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGood = R"([cluster]
sub_clusters = 2
memory_mb = 1000
rate_rps = 5e3
memory_weight = 0.5
[[models]]
name = "a"
rate_rps = 100
static_mb = 400.5
dynamic_mb = 30
move_cost = 2
[[models]]
name = "b"
rate_rps = 200
static_mb = 300
)";

TEST(PartitionFile, ReadsEveryKey) {
  const auto problem = ParsePartitionProblem(kGood, "p.toml");
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->sub_clusters, 2);
  EXPECT_EQ(problem->most_memory_mb, 1000);
  EXPECT_EQ(problem->most_rate_rps, 5000);
  EXPECT_EQ(problem->memory_weight, 0.5);
  ASSERT_EQ(problem->models.size(), 2u);
  EXPECT_EQ(problem->models[0].name, "a");
  EXPECT_EQ(problem->models[0].static_mb, 400.5);
  EXPECT_EQ(problem->models[0].dynamic_mb, 30);
  EXPECT_EQ(problem->models[0].move_cost, 2);
  EXPECT_EQ(problem->models[1].rate_rps, 200);
  EXPECT_EQ(problem->models[1].move_cost, 1);
}

TEST(PartitionFile, LimitsAreThereWhenWritten) {
  const auto problem = ParsePartitionProblem(
      "[cluster]\nsub_clusters = 1\n[[models]]\nname = 'a'\nrate_rps = 1\nstatic_mb = 1e9\n", "p");
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->most_memory_mb, kNoLimit);
  EXPECT_EQ(problem->most_rate_rps, kNoLimit);
}

TEST(PartitionFile, NamesThePlaceOfAMistake) {
  const struct {
    const char* replace;
    const char* by;
    const char* says;
  } cases[] = {
      {"sub_clusters = 2", "sub_clusters = 0", "p.toml:2:16: sub_clusters: must be a whole number"},
      {"sub_clusters = 2", "", "p.toml:1:1: [cluster]: needs sub_clusters"},
      {"memory_mb = 1000", "memory_mb = '1 GB'", "p.toml:3:13: memory_mb: must be a number from 0"},
      {"memory_mb", "memory", "p.toml:3:10: memory: unknown; there are sub_clusters, memory_mb"},
      {"rate_rps = 100", "rate_rps = -1", "p.toml:8:12: rate_rps: must be a number from 0"},
      {"rate_rps = 100", "rate_rps = nan", "p.toml:8:12: rate_rps: must be a number from 0"},
      {"rate_rps = 100", "", "p.toml:6:1: model 'a': needs rate_rps"},
      {"name = \"b\"", "name = \"a\"", "p.toml:12:1: model 'a' is there twice"},
      {"name = \"b\"", "", "p.toml:12:1: [[models]]: needs a name"},
      {"name = \"b\"", "name = 3", "p.toml:13:8: name: must be a string"},
      {"[cluster]", "[clusters]", "clusters: unknown; there are [cluster] and [[models]]"},
      {"[cluster]", "[cluster", "not valid TOML"},
      {"memory_mb = 1000", "memory_mb = 420",
       "p.toml: model 'a' needs 430.5 MB (static 400.5 + dynamic 30) and a backend has 420 MB"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.by);
    std::string text = kGood;
    text.replace(text.find(c.replace), std::string(c.replace).size(), c.by);
    const auto problem = ParsePartitionProblem(text, "p.toml");
    ASSERT_FALSE(problem);
    EXPECT_THAT(problem.error().message, HasSubstr(c.says));
  }
  EXPECT_THAT(ParsePartitionProblem("", "p.toml").error().message,
              HasSubstr("p.toml: needs a [cluster]"));
  EXPECT_THAT(ParsePartitionProblem("[cluster]\nsub_clusters = 1\n", "p.toml").error().message,
              HasSubstr("p.toml: there is no model to place"));
  EXPECT_THAT(LoadPartitionProblem("/nowhere.toml").error().message,
              HasSubstr("/nowhere.toml: cannot read"));
}

TEST(PartitionFile, KeepsThePlacesThatStillExist) {
  auto problem = ParsePartitionProblem(kGood, "p.toml");
  ASSERT_TRUE(problem);
  ASSERT_TRUE(ParsePreviousPartition(R"({"models": {"b": 1, "gone": 0}})", "q.json", *problem));
  EXPECT_EQ(problem->previous, (Partition{kNowhere, 1}));
  ASSERT_TRUE(ParsePreviousPartition(R"({"models": {"a": 0, "b": 2}})", "q.json", *problem));
  EXPECT_EQ(problem->previous, (Partition{0, kNowhere})) << "there is no sub-cluster 2 any more";
}

TEST(PartitionFile, RefusesWhatIsNoPartition) {
  auto problem = ParsePartitionProblem(kGood, "p.toml");
  ASSERT_TRUE(problem);
  for (const char* text : {"", "[1, 2]", "{\"models\": [0, 1]}", "{\"runs\": []}", "{\"models\""}) {
    const auto read = ParsePreviousPartition(text, "q.json", *problem);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr("q.json: holds no partition"));
  }
  for (const char* place : {"-1", "1.5", "\"0\"", "null"}) {
    const auto read = ParsePreviousPartition(std::string(R"({"models": {"a": )") + place + "}}",
                                             "q.json", *problem);
    ASSERT_FALSE(read) << place;
    EXPECT_THAT(read.error().message, HasSubstr("q.json: model 'a' is in no sub-cluster"));
  }
}

}  // namespace
}  // namespace tactus
