// What a fleet's scenario says beside the fleet. A trace that is read wrongly makes links faster
// than they were.
#include "workload/fleet_scenario.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "base/temporary_folder_test.h"
#include "workload/fleet_traces.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTraced = R"([fleet]
duration_s = 30
traces = "links.csv"
counts = "objects.csv"
[[devices]]
name = "server"
kind = "gpu"
site = "rack"
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
trace = "a"
[[costs]]
model = "detect"
kind = "gpu"
batches = [1]
infer_ms = [4]
[[pipelines]]
name = "p"
slo_ms = 200
source = "camera"
rate_rps = 15
[[pipelines.stages]]
name = "detect"
[[pipelines.stages]]
name = "again"
model = "detect"
after = ["detect"]
items_from = "cars"
)";

class FleetScenarioTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  void SetUp() override {
    Write("links.csv", "# a remark\ntrace,t_s,mbps\na,0,10\na,5,0\nb,0,3\n");
    Write("objects.csv", "t_s,cars\n0,1\n1,4\n");
  }
  FleetScenario Read(std::vector<std::string> settings) {
    const auto read = ParseFleetScenario(kTraced, folder_ / "f.toml", settings);
    EXPECT_TRUE(read) << read.error().message;
    return *read;
  }
  std::string ErrorOf(std::vector<std::string> settings = {}, std::string text = kTraced) {
    const auto read = ParseFleetScenario(text, folder_ / "f.toml", settings);
    return read ? "none" : read.error().message;
  }

  const TemporaryFolder folder_;
};

TEST_F(FleetScenarioTest, ReadsTracesCountsAndSettings) {
  const std::vector<std::string> settings = {"planner=rim", "load_scale=2", "slo_less_ms=50",
                                             "latency_scale=0.5"};
  const auto read = ParseFleetScenario(kTraced, folder_ / "f.toml", settings);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->name, "f");
  EXPECT_THAT(read->link_rates, ElementsAre(ElementsAre(LinkSample{0, 10}, LinkSample{5, 0})));
  EXPECT_THAT(read->items[0][1], ElementsAre(1, 4));
  EXPECT_EQ(read->run.planner, "rim");
  EXPECT_EQ(read->run.duration_s, 30);
  EXPECT_EQ(read->input.pipelines[0].rate_rps, 30);
  EXPECT_EQ(read->input.pipelines[0].slo, Millis(150));
  EXPECT_EQ(read->input.costs[0].batches[0].infer, Millis(2));
}

TEST_F(FleetScenarioTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(ErrorOf({"speed=3"}), HasSubstr("speed: unknown in [fleet]; it may hold duration_s"));
  EXPECT_THAT(ErrorOf({"speed"}), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(ErrorOf({"slo_less_ms=200"}), HasSubstr("SLO above 0"));
  EXPECT_THAT(ErrorOf({"traces=none.csv"}), HasSubstr("none.csv"));
  std::string text = kTraced;
  text.replace(text.find("trace = \"a\""), 11, "trace = \"z\"");
  EXPECT_THAT(ErrorOf({}, text), HasSubstr("links.csv has no 'z'"));
  Write("links.csv", "trace,t_s,mbps\na,0,10\na,0,3\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("links.csv:3: the times of a trace begin with 0 and ascend"));
  Write("links.csv", "trace,t_s,mbps\na,0,-1\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("links.csv:2: '-1' must be a number"));
  Write("links.csv", "trace,t_s,mbps\na,0\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("links.csv:2: 2 cells where the header has 3"));
  Write("links.csv", "trace,t_s,mbps\na,0,1\n");
  Write("objects.csv", "t_s,cars\n0,1\n2,4\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("objects.csv:3: t_s must be 1"));
}

TEST_F(FleetScenarioTest, RefusesLinksOfNothingAndSourcesThatNobodyReaches) {
  std::string slow = kTraced;
  slow.replace(slow.find("mbps = 20"), 9, "mbps = 0");
  EXPECT_THAT(ErrorOf({}, slow), HasSubstr("mbps above 0"));
  std::string alone = kTraced;
  const std::size_t link = alone.find("[[links]]");
  alone.erase(link, alone.find("[[costs]]") - link);
  EXPECT_THAT(ErrorOf({}, alone), HasSubstr("no device that its source reaches runs 'detect'"));
}

TEST(FleetScenarios, OctopInfsTestbedCanBeRead) {
  for (const std::string traces : {"5g.csv", "lte.csv"}) {
    const auto read = LoadFleetScenario(SourcePath("scenarios/octopinf/testbed.toml"),
                                        std::vector<std::string>{"traces=" + traces});
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->input.devices.size(), 10u);
    EXPECT_EQ(read->input.pipelines.size(), 9u);
    for (const auto& rates : read->link_rates) EXPECT_GT(rates.size(), 10u) << traces;
    EXPECT_EQ(read->items[0][1].size(), 1800u) << "cars of traffic1, a row a second";
  }
}

TEST(FleetScenarios, KnowAFleetByItsDevices) {
  EXPECT_TRUE(IsFleet(kTraced));
  EXPECT_FALSE(IsFleet("[[models]]\nname = \"a\"\n"));
  EXPECT_FALSE(IsFleet("not toml at ] all"));
}

TEST_F(FleetScenarioTest, ReadsACurveOfObjects) {
  Write("day.csv", "t_s,times\n0,0.5\n3600,1.5\n");
  EXPECT_THAT(Read({"curve=day.csv"}).curve,
              ElementsAre(CurvePoint{0, 0.5}, CurvePoint{3600, 1.5}));
  Write("late.csv", "t_s,times\n5,0.5\n");
  EXPECT_THAT(ErrorOf({"curve=late.csv"}), HasSubstr("late.csv:2: times begin with 0"));
  EXPECT_THAT(ErrorOf({"curve=objects.csv"}), HasSubstr("the header must be t_s,times"));
}

TEST_F(FleetScenarioTest, GivesModelsOfAKindOfDeviceTheirExits) {
  Write("exits.csv", "kind,part,accuracy\ngpu,0.5,0.9\ngpu,1,1\n");
  const FleetScenario scenario = Read({"exits=exits.csv"});
  EXPECT_THAT(scenario.input.costs[0].exits, ElementsAre(FleetExit{0.5, 0.9}, FleetExit{1, 1}));
  Write("short.csv", "kind,part,accuracy\ngpu,0.5,0.9\n");
  EXPECT_THAT(ErrorOf({"exits=short.csv"}), HasSubstr("the last exit must be the whole model"));
  Write("other.csv", "kind,part,accuracy\ntpu,1,1\n");
  EXPECT_THAT(ErrorOf({"exits=other.csv"}), HasSubstr("other.csv:2: no device is of kind 'tpu'"));
}

}  // namespace
}  // namespace tactus
