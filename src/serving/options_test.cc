// What options make of a server before anything runs: which go together, and what they become.
#include <array>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>

#include "base/temporary_folder_test.h"
#include "platform/processors.h"
#include "serving/auto_lanes.h"
#include "serving/device.h"
#include "serving/front_end.h"
#include "serving/isolation.h"
#include "serving/peer_port.h"
#include "serving/plans.h"
#include "serving/runtime_options.h"

namespace tactus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Log Unread() { return std::make_shared<spdlog::logger>("test"); }

std::string TextOf(const Status& status) { return status ? "" : status.error().message; }

ServeOptions Planned() {
  ServeOptions o;
  o.policy = "planned";
  o.planner = "gpulet";
  o.on_share = {"100=whole.json"};
  return o;
}

// Otherwise the server starts and goes by a plan that nothing reads, or splits what it never
// measured.
TEST(PlanOptionsTest, WhatDoesNotGoWithAPlanIsRefused) {
  EXPECT_TRUE(CheckPlanOptions({}));
  EXPECT_TRUE(CheckPlanOptions(Planned()));
  ServeOptions alone;
  alone.on_share = {"50=half.json"};
  EXPECT_THAT(TextOf(CheckPlanOptions(alone)), StartsWith("--on-share: nothing splits"));
  alone = {};
  alone.device_memory_mb = 1;
  EXPECT_THAT(TextOf(CheckPlanOptions(alone)), StartsWith("--device-memory-mb: nothing splits"));
  ServeOptions o = Planned();
  o.policy = "horizon";
  EXPECT_THAT(TextOf(CheckPlanOptions(o)), StartsWith("--planner requires --policy planned"));
  o.planner.clear();
  o.plan = "plan.json";
  EXPECT_THAT(TextOf(CheckPlanOptions(o)), StartsWith("--plan requires --policy planned"));
  o = Planned();
  o.planner = "gpulets";
  EXPECT_THAT(TextOf(CheckPlanOptions(o)), StartsWith("--planner: "));
  o.planner = "gpulet:perod=3";
  EXPECT_THAT(TextOf(CheckPlanOptions(o)), HasSubstr("there is no option 'perod'"));
  o.planner = "gpulet:period=0.5";
  EXPECT_THAT(TextOf(CheckPlanOptions(o)), StartsWith("--planner: "));
  o = Planned();
  o.on_share.clear();
  EXPECT_THAT(TextOf(CheckPlanOptions(o)), HasSubstr("give the latencies on the shares"));
}

TEST(PlanOptionsTest, TheTextSaysWhoSplits) {
  ServeOptions o = Planned();
  o.planner = "gpulet:period=3";
  EXPECT_EQ(SplitText(o), "by gpulet as the load changes");
  o.plan = "a.json";
  EXPECT_EQ(SplitText(o), "at first as a.json says, then by gpulet as the load changes");
  o.planner.clear();
  EXPECT_EQ(SplitText(o), "as a.json says");
}

// Otherwise a crash of one batch would be laid on another, or a process be started for nothing.
TEST(IsolationTest, DoesNotGoWithDevicesSlotsOrEmulation) {
  ServeOptions o;
  o.isolate = true;
  EXPECT_TRUE(CheckIsolation(o));
  for (const auto& change : std::array<void (*)(ServeOptions&), 3>{
           [](ServeOptions& p) { p.device = "cuda:0"; }, [](ServeOptions& p) { p.slots = 2; },
           [](ServeOptions& p) { p.engine = "emulated"; }}) {
    ServeOptions other = o;
    change(other);
    EXPECT_THAT(TextOf(CheckIsolation(other)), StartsWith("--isolate: "));
    other.isolate = false;
    EXPECT_TRUE(CheckIsolation(other));
  }
}

// Otherwise a lane whose process died would stay dead, or be killed by a watchdog that is off.
TEST(IsolationTest, LanesComeBackAndTheWatchdogEndsProcesses) {
  ServeOptions o;
  RuntimeOptions runtime;
  EngineOptions engines;
  Isolate(o, runtime);
  Isolate(o, engines);
  EXPECT_EQ(runtime.revive_after, RuntimeOptions{}.revive_after);
  EXPECT_FALSE(engines.isolation);
  o.isolate = true;
  o.watchdog_s = 3;
  Isolate(o, runtime);
  Isolate(o, engines);
  EXPECT_GT(runtime.revive_after, Duration{});
  EXPECT_GT(runtime.revive_longest, runtime.revive_after);
  EXPECT_EQ(engines.isolation->stop_grace, Seconds(3));
  o.watchdog_multiple = 0;
  Isolate(o, engines);
  EXPECT_EQ(engines.isolation->stop_grace, Duration{});
}

// Otherwise one core of many serves, or an option that somebody gave is overruled.
TEST(LanesTest, AreChosenWhereNobodySaysThem) {
  const TemporaryFolder folder;
  ServeOptions o;
  o.models = {folder.path()};
  o.lanes = kUnsaid;
  o.threads = kUnsaid;
  o = WithFolders(o);
  const int processors = FindProcessors().usable();
  const ServeOptions chosen = WithLanes(o);
  EXPECT_EQ(chosen.lanes, processors > 2 ? processors - 1 : processors);
  EXPECT_EQ(chosen.threads, 1);
  ASSERT_EQ(chosen.chosen_lanes.size(), 3u);
  EXPECT_THAT(chosen.chosen_lanes[0], StartsWith("found "));
  EXPECT_THAT(chosen.chosen_lanes[1], HasSubstr("no profile says"));
  EXPECT_THAT(chosen.chosen_lanes[2], HasSubstr("--lanes N"));

  o.lanes = kAutoLanes;
  o.threads = processors + 1;
  EXPECT_EQ(WithLanes(o).lanes, 1);
  EXPECT_EQ(WithLanes(o).threads, processors + 1);
}

TEST(LanesTest, WhatIsSaidHoldsAndTheOtherIsOne) {
  ServeOptions o;
  o.lanes = kUnsaid;
  o.threads = 3;
  EXPECT_EQ(WithLanes(o).lanes, 1);
  EXPECT_EQ(WithLanes(o).threads, 3);
  o.lanes = 5;
  o.threads = kUnsaid;
  EXPECT_EQ(WithLanes(o).lanes, 5);
  EXPECT_EQ(WithLanes(o).threads, 1);
  EXPECT_TRUE(WithLanes(o).chosen_lanes.empty());
}

TEST(LanesTest, LanesOnNoProcessorAreNotChosen) {
  for (const auto& change :
       std::array<void (*)(ServeOptions&), 3>{[](ServeOptions& p) { p.engine = "emulated"; },
                                              [](ServeOptions& p) { p.device = "cuda:0"; },
                                              [](ServeOptions& p) { p.planner = "gpulet"; }}) {
    ServeOptions o;
    o.lanes = kAutoLanes;
    o.threads = kUnsaid;
    change(o);
    EXPECT_EQ(WithLanes(o).lanes, 1);
    EXPECT_EQ(WithLanes(o).threads, 1);
    EXPECT_TRUE(WithLanes(o).chosen_lanes.empty());
  }
}

// Latencies of one thread would be believed of two.
TEST(LanesTest, AProfileIsOfTheThreadsThatServeOrKnowsThem) {
  ProfiledModel model{.name = "m", .max_batch = 1};
  model.exits.push_back(
      {.name = "1", .cells = {{.mean_ms = 1}}, .by_threads = {{1, 1, 1}, {2, 1, 1}}});
  ProfileFile profile{.models = {model}};
  ServeOptions o;
  o.threads = 2;
  EXPECT_EQ(ThreadsOfProfile(o, profile), 2) << "they were given";
  o.chosen_lanes = {"chose"};
  EXPECT_EQ(ThreadsOfProfile(o, profile), 1);
  profile.models[0].exits[0].by_threads.clear();
  EXPECT_EQ(ThreadsOfProfile(o, profile), 2);
}

// Otherwise a device without a lane would serve nothing.
TEST(DeviceTest, EveryDeviceHasALane) {
  ServeOptions o;
  EXPECT_FALSE(OnDevices(o));
  EXPECT_EQ(WithALaneOnEach(o).lanes, 1);
  o.device = "cuda:0,cuda:2,cuda:1";
  EXPECT_TRUE(OnDevices(o));
  EXPECT_EQ(DeviceCount(o), 3);
  EXPECT_EQ(WithALaneOnEach(o).lanes, 3);
  o.lanes = 5;
  EXPECT_EQ(WithALaneOnEach(o).lanes, 5);
}

// Lanes that are emulated, on a device or of a plan need no cores of this machine.
TEST(DeviceTest, OnlyLanesOnCoresAreDoubted) {
  ServeOptions o;
  o.lanes = 2;
  o.slots = 2;
  o.threads = 2;
  EXPECT_FALSE(CoresDoubt(o, 8));
  EXPECT_TRUE(CoresDoubt(o, 7));
  for (const auto& change :
       std::array<void (*)(ServeOptions&), 4>{[](ServeOptions& p) { p.engine = "emulated"; },
                                              [](ServeOptions& p) { p.device = "cuda:0"; },
                                              [](ServeOptions& p) { p.plan = "plan.json"; },
                                              [](ServeOptions& p) { p.planner = "gpulet"; }}) {
    ServeOptions other = o;
    change(other);
    EXPECT_FALSE(CoresDoubt(other, 1));
  }
}

TEST(DeviceTest, AnEngineThatIsNotThereIsSaidOnce) {
  ServeOptions o;
  o.engine = "nosuch";
  EngineShelf shelf(o.engine, EngineOptionsOf(o));
  EXPECT_THAT(TextOf(CheckEngine(o, shelf)), StartsWith("--engine: "));
  ServeOptions two = Planned();
  two.engine = "identity";
  two.device = "cuda:0,cuda:1";
  EngineShelf forced(two.engine, {});
  EXPECT_THAT(TextOf(CheckEngine(two, forced)), HasSubstr("split one device; name one"));
}

TEST(RuntimeOptionsTest, UnitsAndNamesBecomeTheRuntimes) {
  ServeOptions o;
  o.expiry = "never";
  o.follow = "stalls";
  o.pending_mb = 3;
  o.jitter_ms = 1.5;
  o.default_slo_ms = 20;
  RuntimeOptions r = RuntimeOptionsOf(o);
  EXPECT_EQ(r.expiry, Expiry::kNever);
  EXPECT_TRUE(r.follow.on && r.follow.stalls);
  EXPECT_EQ(r.follow.margin, Micros(1500));
  EXPECT_EQ(r.pending_bytes, std::size_t{3} << 20);
  EXPECT_EQ(r.default_slo, Millis(20));
  EXPECT_TRUE(r.pin);
  o.expiry = "passed";
  o.follow = "no";
  o.device = "cuda:0";
  r = RuntimeOptionsOf(o);
  EXPECT_EQ(r.expiry, Expiry::kPassed);
  EXPECT_FALSE(r.follow.on);
  EXPECT_FALSE(r.pin) << "a lane on a device keeps no core busy";
  EXPECT_EQ(RuntimeOptionsOf({}).expiry, Expiry::kUnmeetable);
}

TEST(RuntimeOptionsTest, ModelsAreNamedOnlyWhereNotAllAreLoaded) {
  ServeOptions o;
  o.load_models = {"a"};
  EXPECT_THAT(TextOf(CheckModels(o)), StartsWith("--load-model a: "));
  o.model_control = "explicit";
  EXPECT_TRUE(CheckModels(o));
}

// The repository of the test below: a model, an operator of the host, and an ensemble.
class RepositoryOptionsTest : public testing::Test {
 protected:
  RepositoryOptionsTest() {
    Write("model", "platform: \"identity\"\n");
    Write("operator", "platform: \"tactus_op\"\n");
    Write("pair", "platform: \"ensemble\"\nensemble_scheduling { }\n");
    o_.models = {folder_.path().string()};
  }
  void Write(const std::string& name, const std::string& config) {
    std::filesystem::create_directories(folder_ / name / "1");
    std::ofstream(folder_ / name / "config.pbtxt") << "name: \"" << name << "\"\n" << config;
  }
  std::vector<bool> Skipped() {
    const RepositoryOptions r = RepositoryOptionsOf(WithFolders(o_), Unread());
    return {r.skips(folder_ / "model"), r.skips(folder_ / "operator"), r.skips(folder_ / "pair")};
  }

  TemporaryFolder folder_;
  ServeOptions o_;
};

// Otherwise a model would be loaded twice, or by nobody.
TEST_F(RepositoryOptionsTest, TheDeviceLeavesOperatorsAndEnsemblesToOthers) {
  EXPECT_THAT(Skipped(), ElementsAre(false, true, true));
  o_.engine = "identity";  // which is the host's too
  EXPECT_THAT(Skipped(), ElementsAre(false, false, true));
}

TEST_F(RepositoryOptionsTest, EnsemblesThatAreNamedAreNotTheDevices) {
  o_.model_control = "explicit";
  o_.load_models = {"pair", "model", "*"};
  const RepositoryOptions r = RepositoryOptionsOf(WithFolders(o_), Unread());
  EXPECT_EQ(r.control, ModelControl::kExplicit);
  EXPECT_THAT(r.load, ElementsAre("model", "*"));
}

// Otherwise what is meant for the site would go to strangers, in the clear.
TEST(SchedulersTest, AreHostPortOnceAndNotInTheClearAbroad) {
  EXPECT_TRUE(CheckSchedulers("--site", {"127.0.0.1:1", "127.0.0.1:2"}, false));
  EXPECT_THAT(TextOf(CheckSchedulers("--site", {"127.0.0.1"}, true)),
              HasSubstr("--site: '127.0.0.1' is not HOST:PORT"));
  EXPECT_THAT(TextOf(CheckSchedulers("--site", {"a:1", "a:1"}, true)),
              HasSubstr("a:1 is in it twice"));
  EXPECT_THAT(TextOf(CheckSchedulers("--site", {"10.0.0.1:1"}, false)),
              HasSubstr("--site 10.0.0.1:1 is beyond this machine"));
  EXPECT_TRUE(CheckSchedulers("--site", {"10.0.0.1:1"}, true));
}

TEST(FrontEndOptionsTest, ANodeNeedsARepository) {
  EXPECT_TRUE(CheckFrontEndNode({}));
  ServeOptions o;
  o.load_models = {"a"};
  EXPECT_THAT(TextOf(CheckFrontEndNode(o)), StartsWith("--load-model needs --models"));
  o.model_control = "explicit";
  EXPECT_THAT(TextOf(CheckFrontEndNode(o)), StartsWith("--model-control-mode needs --models"));
  o.routes = "routes";
  EXPECT_THAT(TextOf(CheckFrontEndNode(o)), StartsWith("--routes needs --models"));
  o.models = {"models"};
  EXPECT_TRUE(CheckFrontEndNode(o));
}

}  // namespace
}  // namespace tactus
