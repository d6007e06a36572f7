#include "runtime/models/model_profile.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "runtime/harness_test.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spec_.name = "resnet";
    spec_.platform = "emulated";
    spec_.max_batch = 3;
    spec_.exits = {{"1", {}, 0}};
  }
  void Own(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    spec_.profile = folder_ / name;
  }
  // The latencies of all batches up to 8, as policies see them, or the error.
  std::vector<Duration> Latencies() {
    const auto known = FindProfile(spec_, common_);
    EXPECT_TRUE(known) << known.error().message;
    if (!known || !*known) return {};
    const auto rows = RowsOf(**known, spec_, 8, {});
    EXPECT_TRUE(rows) << rows.error().message;
    return rows ? rows->latency : std::vector<Duration>{};
  }
  std::string Problem() {
    const auto known = FindProfile(spec_, common_);
    return known ? "" : known.error().message;
  }

  const TemporaryFolder folder_;
  ModelSpec spec_;
  std::optional<ProfileFile> common_;
};

// A line of a paper's table is all that is needed to try a model on a device that is not there.
TEST_F(ModelProfileTest, ALineOfAlphaAndBetaMakesAllBatches) {
  Own("a100.csv", "model,alpha_ms,beta_ms\nResNet50,0.5,5\n");
  EXPECT_THAT(Latencies(), ElementsAre(Micros(5500), Micros(6000), Micros(6500)));
}

TEST_F(ModelProfileTest, ATableStatesEachBatch) {
  Own("table.csv",
      "model,exit,batch,latency_ms\nother,1,1,9\nresnet,final,1,2\nresnet,final,2,3\n");
  EXPECT_THAT(Latencies(), ElementsAre(Millis(2), Millis(3)));  // no batch of 3 is known
}

TEST_F(ModelProfileTest, AProfileOfTactusWillDo) {
  ProfileFile measured = testing::FlatProfile({"else", "resnet"}, 2, 1);
  ASSERT_TRUE(SaveProfile(measured, folder_ / "profile.json"));
  spec_.profile = folder_ / "profile.json";
  EXPECT_THAT(Latencies(), ElementsAre(Millis(1), Millis(1)));  // exit 1 of its two
}

TEST_F(ModelProfileTest, TheServersProfileIsForModelsThatBringNone) {
  EXPECT_THAT(Latencies(), ElementsAre());
  common_ = testing::FlatProfile({"resnet"}, 1, 4);
  EXPECT_THAT(Latencies(), ElementsAre(Millis(4)));
  Own("a100.csv", "model,alpha_ms,beta_ms\nResNet50,0,7\n");
  EXPECT_THAT(Latencies(), ElementsAre(Millis(7), Millis(7), Millis(7)));
}

TEST_F(ModelProfileTest, MistakesNameTheFileAndThePlace) {
  Own("a.csv", "model,alpha_ms,beta_ms\nresnet,x,5\n");
  EXPECT_THAT(Problem(), HasSubstr("a.csv:2: column alpha_ms: 'x' is not a number"));
  Own("b.csv", "model,exit,batch,latency_ms\nresnet,1,2,3\n");
  EXPECT_THAT(Problem(), HasSubstr("batch 1 of 1 to 2 is missing"));
  Own("c.csv", "model,alpha_ms,beta_ms\nx,1,1\ny,1,1\n");
  EXPECT_THAT(Problem(), HasSubstr("c.csv: holds 2 models, but not 'resnet'"));
  Own("d.json", "{");
  EXPECT_THAT(Problem(), HasSubstr("d.json:1:1: not valid JSON"));
  spec_.profile = folder_ / "none.csv";
  EXPECT_THAT(Problem(), HasSubstr("none.csv"));
}

TEST_F(ModelProfileTest, ExitsThatTheProfileLacksAreNamed) {
  common_ = testing::FlatProfile({"resnet"}, 1, 4);
  spec_.exits = {{"1", {}, 0}, {"deep", {}, 0}};
  const auto known = FindProfile(spec_, common_);
  ASSERT_TRUE(known && *known);
  const auto rows = RowsOf(**known, spec_, 1, {});
  ASSERT_FALSE(rows);
  EXPECT_THAT(rows.error().message, HasSubstr("'resnet' has no exit 'deep'"));
}

// Without this a server would assume that each batch uses half of everything, whatever its profile
// says.
TEST_F(ModelProfileTest, WhatBatchesUseComesWithTheirLatencies) {
  ProfiledModel model{.name = "resnet", .max_batch = 2, .resources_source = "counted by hand"};
  ProfiledExit& exit = model.exits.emplace_back();
  exit.name = "1";
  for (const double share : {0.25, 0.75}) {
    exit.cells.push_back({.mean_ms = 1,
                          .min_ms = 1,
                          .p50_ms = 1,
                          .p95_ms = 1,
                          .p99_ms = 1,
                          .max_ms = 1,
                          .transfer_ms = 0.5,
                          .throughput = {share, 0, 0, 0, share}});
  }
  const auto rows = RowsOf(model, spec_, 8, {});
  ASSERT_TRUE(rows) << rows.error().message;
  const ResourceUse small{{0.25, 0, 0, 0, 0.25}, Micros(500)};
  const ResourceUse large{{0.75, 0, 0, 0, 0.75}, Micros(500)};
  EXPECT_THAT(rows->use, ElementsAre(small, large));
  model.resources_source.clear();
  EXPECT_TRUE(RowsOf(model, spec_, 8, {})->use.empty());
}

}  // namespace
}  // namespace tactus
