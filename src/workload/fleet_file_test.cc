// A fleet as people write it. A number that is read wrongly, or a name that is taken for another,
// plans for a fleet that is not there.
#include "workload/fleet_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFleet = R"([[devices]]
name = "server"
kind = "gpu"
site = "rack"
accelerators = 2
streams = 4
memory_mb = 8000
server = true
[[devices]]
name = "camera"
kind = "small"
site = "street"
memory_mb = 1000
[[links]]
sites = ["rack", "street"]
mbps = 20
rtt_ms = 8
loss = 0.02
[[costs]]
model = "detect"
kind = "gpu"
batches = [1, 2]
infer_ms = [4, 6]
use = [0.2, 0.3]
[[pipelines]]
name = "p"
slo_ms = 200
source = "camera"
rate_rps = 15
[[pipelines.stages]]
name = "detect"
in_kb = 100
[[pipelines.stages]]
name = "again"
model = "detect"
after = ["detect"]
items = 2.5
)";

std::string Broken(const std::string& what, const std::string& by) {
  std::string text = kFleet;
  text.replace(text.find(what), what.size(), by);
  const auto fleet = ParseFleet(text, "f.toml");
  return fleet ? "" : fleet.error().message;
}

TEST(FleetFile, ReadsDevicesLinksCostsAndPipelines) {
  const auto fleet = ParseFleet(kFleet, "f.toml");
  ASSERT_TRUE(fleet) << fleet.error().message;
  ASSERT_EQ(fleet->devices.size(), 2u);
  EXPECT_EQ(fleet->devices[0].streams, 4);
  EXPECT_EQ(fleet->links[0].rtt, Millis(8));
  EXPECT_EQ(fleet->links[0].loss, 0.02);
  EXPECT_EQ(fleet->CostOf(ModelId{0}, KindId{0})->batches[1].infer, Millis(6));
  EXPECT_EQ(fleet->CostOf(ModelId{0}, KindId{1}), nullptr);
  const FleetPipeline& pipeline = fleet->pipelines[0];
  EXPECT_EQ(pipeline.source, DeviceId{1});
  EXPECT_EQ(pipeline.stages[1].model, ModelId{0}) << "a stage without a model has its name";
  EXPECT_EQ(fleet->RateOf(FleetPipelineId{0}, FleetStageId{1}), 37.5);
  EXPECT_DOUBLE_EQ(CoefficientOf(pipeline.stages[1]), std::sqrt(1.5));
}

TEST(FleetFile, NamesTheLineAndTheRemedy) {
  EXPECT_THAT(Broken("mbps = 20", "mpbs = 20"),
              HasSubstr("mpbs: unknown in [[links]]; it may hold sites, mbps, rtt_ms, loss"));
  EXPECT_THAT(Broken("mbps = 20", "mpbs = 20"), HasSubstr("f.toml:16:"));
  EXPECT_THAT(Broken("mbps = 20", "mbps = -1"), HasSubstr("mbps: must be a number from 0"));
  EXPECT_THAT(Broken("mbps = 20", "mbps = nan"), HasSubstr("mbps: must be a number from 0"));
  EXPECT_THAT(Broken("loss = 0.02", "loss = 1"), HasSubstr("loss is a part of its packets"));
  EXPECT_THAT(Broken("\"rack\", \"street\"", "\"rack\", \"moon\""),
              HasSubstr("no device is at 'moon'"));
  EXPECT_THAT(Broken("source = \"camera\"", "source = \"cam\""),
              HasSubstr("source: no device is called 'cam'"));
  EXPECT_THAT(Broken("after = [\"detect\"]", "after = [\"again\"]"),
              HasSubstr("after: no earlier stage is called 'again'"));
  EXPECT_THAT(Broken("[4, 6]", "[4]"), HasSubstr("infer_ms: must be a list of 2 numbers"));
  EXPECT_THAT(Broken("batches = [1, 2]", "batches = [2, 1]"), HasSubstr("batches must ascend"));
  EXPECT_THAT(Broken("slo_ms = 200", "slo_ms = \"x\""), HasSubstr("slo_ms: must be a number"));
  EXPECT_THAT(Broken("name = \"again\"", "name = \"detect\""),
              HasSubstr("pipeline 'p': two stages are called 'detect'; rename one"));
  EXPECT_THAT(ParseFleet("= 3", "f.toml").error().message, HasSubstr("f.toml:1:1"));
  EXPECT_THAT(ParseFleet("", "f.toml").error().message, HasSubstr("a fleet needs devices"));
}

TEST(FleetFile, TheShippedFleetsCanBeRead) {
  const auto fleet = LoadFleet(SourcePath("scenarios/fleets/testbed.toml"));
  ASSERT_TRUE(fleet) << fleet.error().message;
  EXPECT_EQ(fleet->devices.size(), 10u);
  EXPECT_EQ(fleet->pipelines.size(), 9u);
}

}  // namespace
}  // namespace tactus
