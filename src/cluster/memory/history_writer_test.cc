// Without these a knowledge base that is away, slow, full or another leader's could hold up a
// controller, or lose what it was to keep; and what it kept could be of no use to the next one.
#include "cluster/memory/history_writer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/memory/memory_case_test.h"
#include "cluster/memory/plan_text.h"
#include "cluster/memory/recollection.h"
#include "fleet/two_nodes_test.h"

namespace tactus {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::chrono::milliseconds kPatience{60'000};

// A leader of two nodes, its writer, and UTC beside the leader's own time.
class HistoryWriterTest : public ::testing::Test {
 protected:
  void Begin(std::unique_ptr<knowledge::StoreWriter> store, const LeaderOptions& options = {},
             LeaderKept kept = {}) {
    End();
    HistoryWriterOptions writing;
    writing.flush_within = kPatience;
    writing.retry = {std::chrono::milliseconds(1), std::chrono::milliseconds(2)};
    writing.utc = [this] { return kMemoryNoon + Microseconds(); };
    writer = std::make_unique<HistoryWriter>(
        std::move(store), TwoNodes::Fleet(), "first",
        [this](const std::string& line) { lines.push_back(line); }, writing);
    nodes.Connect();
    leader = std::make_unique<FleetLeader>(TwoNodes::Fleet(), TwoNodes::OnTheFirst, options, kept,
                                           nodes.now, &writer->history());
  }
  void End() {
    leader.reset();
    writer.reset();
  }
  // Ticks each second, without waiting for the store.
  void Pass(int time) {
    for (int i = 0; i < time; ++i) {
      nodes.Pass(*leader, Seconds(1));
      writer->Tick();
    }
  }
  bool Flushed() { return writer->Flush(kPatience); }
  std::chrono::microseconds Microseconds() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(nodes.now.time_since_epoch());
  }
  knowledge::UtcTime utc() const { return kMemoryNoon + Microseconds(); }
  knowledge::Window All() const { return {kMemoryNoon, utc() + seconds(1)}; }
  std::unique_ptr<ScriptedStore> Scripted() { return std::make_unique<ScriptedStore>(script); }
  // Waits until the store was asked so often.
  void AwaitAttempts(int count) {
    std::unique_lock lock(script.mutex);
    ASSERT_TRUE(script.changed.wait_for(lock, kPatience, [&] { return script.attempts >= count; }));
  }
  void Set(bool hangs, bool fails, ErrorCode error = ErrorCode::kUnavailable) {
    const std::scoped_lock lock(script.mutex);
    script.hangs = hangs;
    script.fails = fails;
    script.error = error;
    script.changed.notify_all();
  }
  std::vector<std::string> EventsIn(knowledge::Store& store) {
    std::vector<std::string> said;
    const auto events = store.Events(All());
    EXPECT_TRUE(events);
    for (const knowledge::Event& each : *events) said.push_back(each.kind + " " + each.subject);
    return said;
  }

  TwoNodes nodes;
  ScriptedStore::Script script;
  std::vector<std::string> lines;
  std::unique_ptr<HistoryWriter> writer;
  std::unique_ptr<FleetLeader> leader;
};

TEST_F(HistoryWriterTest, WhatALeaderSeesAndDoesIsInTheStore) {
  const SqliteFolder folder;
  Begin(OpenedLater(folder.where()));
  nodes.edge.Measure({{"find", 8}});
  nodes.edge.MeasureLinks({{"server0", {.mbps = 12, .rtt = Millis(30)}}});
  Pass(15);
  ASSERT_TRUE(Flushed());
  const auto store = folder.Open();
  EXPECT_THAT(EventsIn(*store), ElementsAre("node-alive server0", "node-alive edge0",
                                            "leader term 1", "plan-adopted 1.1"));
  const auto plans = store->Plans(All());
  ASSERT_TRUE(plans);
  ASSERT_EQ(plans->size(), 1u);
  EXPECT_EQ(plans->at(0).fate, knowledge::PlanFate::kAdopted);
  EXPECT_THAT(plans->at(0).plan, HasSubstr("\"planner\""));
  const auto input = ParseInput(plans->at(0).input, TwoNodes::Fleet());
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_THAT(input->devices, ElementsAre("server0", "edge0"));
  // 8 items of "find" a second reached the nodes, and one stage has it.
  const auto arrivals = store->Arrivals(All());
  ASSERT_FALSE(arrivals->empty());
  EXPECT_EQ(arrivals->back().stage, "find");
  EXPECT_EQ(arrivals->back().rate_rps, 8);
  EXPECT_EQ(*store->LinkBandwidth("street0", "rack", All()), 12);
}

TEST_F(HistoryWriterTest, TheNextControllerTakesUpThePlanAndTheLinks) {
  const SqliteFolder folder;
  Begin(OpenedLater(folder.where()));
  nodes.edge.MeasureLinks({{"server0", {.mbps = 12, .rtt = Millis(30)}}});
  Pass(15);
  ASSERT_TRUE(Flushed());
  const auto store = folder.Open();
  const auto recollection = Recollect(*store, TwoNodes::Fleet(), "first", utc());
  ASSERT_TRUE(recollection) << recollection.error().message;
  EXPECT_EQ(recollection->highest, (LeaderKept{.term = 1, .epoch = 1}));
  ASSERT_EQ(recollection->remembered.links.size(), 1u);
  EXPECT_EQ(recollection->remembered.links.at(0).mbps, 12);

  LeaderOptions options;
  options.remembered = recollection->remembered;
  Begin(OpenedLater(folder.where()), options, recollection->highest);
  Pass(15);
  ASSERT_TRUE(Flushed());
  EXPECT_EQ(leader->serving(), (PlanId{1, 1}));
  EXPECT_EQ(store->Plans(All())->size(), 1u) << "the plan is unchanged";
  EXPECT_THAT(EventsIn(*store), Contains("plan-kept 1.1"));

  // Another planner's, or another fleet's, is not taken up.
  EXPECT_THAT(Recollect(*store, TwoNodes::Fleet(), "other", utc())->remembered.plans, IsEmpty());
  FleetInput other = TwoNodes::Fleet();
  other.pipelines.at(0).rate_rps *= 2;
  EXPECT_THAT(Recollect(*store, other, "first", utc())->remembered.plans, IsEmpty());
}

// Else nobody could tell why a plan was made that no link and no node had called for, and a
// controller that takes over could not go on from it.
TEST_F(HistoryWriterTest, APlanOfTheAutoScalerSaysSoAndIsKnownWholeToTheNextController) {
  const SqliteFolder folder;
  FleetPlan served;
  LeaderOptions options;
  options.scaling = [&](const FleetInput& input, FleetPlan& plan, TimePoint) -> std::string {
    if (!served.instances.empty()) return "";
    plan.instances.clear();
    for (FleetStageId::rep s = 0; s < 2; ++s) {
      plan.instances.push_back({.pipeline = FleetPipelineId{0},
                                .stage = FleetStageId{s},
                                .device = DeviceId{0},
                                .cycle = Millis(100)});
    }
    plan.routes = RoutesOf(plan.instances);
    plan.latency = {Millis(90)};
    EXPECT_EQ(FaultOf(plan, input), "");
    served = plan;
    return "camera0/more 0 -> 1 instances (busy 0.90)";
  };
  Begin(OpenedLater(folder.where()), options);
  Pass(60);
  ASSERT_TRUE(Flushed());
  const auto store = folder.Open();
  EXPECT_THAT(EventsIn(*store), Contains("plan-scaled 1.2"));
  const auto plans = store->Plans(All());
  ASSERT_EQ(plans->size(), 2u);
  EXPECT_EQ(plans->at(0).why + "|" + plans->at(1).why,
            "|AutoScaler: camera0/more 0 -> 1 instances (busy 0.90)");
  const auto recollection = Recollect(*store, TwoNodes::Fleet(), "first", utc());
  ASSERT_TRUE(recollection) << recollection.error().message;
  ASSERT_EQ(recollection->remembered.plans.size(), 1u);
  const RememberedPlan& remembered = recollection->remembered.plans.at(0);
  EXPECT_EQ(remembered.id, (PlanId{1, 2}));
  ASSERT_TRUE(remembered.plan);
  EXPECT_EQ(remembered.plan->instances, served.instances);
  EXPECT_EQ(remembered.plan->routes, served.routes);
}

TEST_F(HistoryWriterTest, WhatAControllerMeasuredWhoseClockIsAnHourAheadIsKnownToTheNext) {
  const SqliteFolder folder;
  const auto store = folder.Open();
  knowledge::Batch batch{.term = 4};
  batch.network.push_back({.at = kMemoryNoon + std::chrono::hours(1),
                           .from_site = "street0",
                           .to_site = "rack",
                           .mbps = 12});
  ASSERT_TRUE(store->Commit(batch));
  const auto recollection = Recollect(*store, TwoNodes::Fleet(), "first", kMemoryNoon);
  ASSERT_EQ(recollection->remembered.links.size(), 1u);
  EXPECT_EQ(recollection->remembered.links.at(0).mbps, 12);
}

// Its controller was killed between the plan's adoption and its record.
TEST_F(HistoryWriterTest, APlanWithoutAVerdictIsRememberedAsOne) {
  const SqliteFolder folder;
  const auto store = folder.Open();
  knowledge::Batch batch{.term = 4};
  batch.plans.push_back(
      {.epoch = 9,
       .term = 4,
       .made = kMemoryNoon,
       .input = InputJson(TwoNodes::Fleet(), FleetMark(TwoNodes::Fleet(), "first"), "first")});
  ASSERT_TRUE(store->Commit(batch));
  const auto recollection = Recollect(*store, TwoNodes::Fleet(), "first", utc());
  ASSERT_EQ(recollection->remembered.plans.size(), 1u);
  EXPECT_FALSE(recollection->remembered.plans.at(0).adopted);
  EXPECT_EQ(recollection->remembered.plans.at(0).id, (PlanId{4, 9}));
}

TEST_F(HistoryWriterTest, AStoreThatHangsHoldsNobodyUpAndHasAllWhenItIsBack) {
  Set(true, false);
  Begin(Scripted());
  nodes.edge.Measure({{"find", 8}});
  Pass(2);
  AwaitAttempts(1);
  Pass(300);  // the leader goes on
  EXPECT_EQ(leader->serving(), (PlanId{1, 1}));
  EXPECT_GT(writer->counts()->waiting, 10u);
  Set(false, false);
  ASSERT_TRUE(Flushed());
  EXPECT_EQ(writer->counts()->dropped, 0u);
  EXPECT_EQ(script.written.size(), script.written.back().sequence) << "each once, in order";
}

TEST_F(HistoryWriterTest, AfterTenMinutesSamplesAreLostAndCountedAndPlansAreNot) {
  Set(false, true);
  Begin(Scripted());
  nodes.edge.Measure({{"find", 8}});
  Pass(2);
  AwaitAttempts(2);  // the first has failed
  Pass(898);
  EXPECT_GT(writer->counts()->dropped, 0u);
  EXPECT_THAT(lines, Contains(HasSubstr("kept here for ten minutes")));
  EXPECT_THAT(lines, Contains(HasSubstr("the oldest samples are lost")));
  Set(false, false);
  ASSERT_TRUE(Flushed());
  Pass(1);
  EXPECT_THAT(lines, Contains(HasSubstr("the store is back; " +
                                        std::to_string(writer->counts()->dropped) + " records")));
  std::size_t plans = 0, verdicts = 0;
  for (const knowledge::Batch& each : script.written) {
    plans += each.plans.size();
    verdicts += each.verdicts.size();
  }
  EXPECT_EQ(plans, 1u);
  EXPECT_EQ(verdicts, 1u);
}

TEST_F(HistoryWriterTest, AFullDiskIsWaitedFor) {
  Set(false, true, ErrorCode::kResourceExhausted);
  Begin(Scripted());
  Pass(5);
  AwaitAttempts(3);
  Set(false, false);
  ASSERT_TRUE(Flushed());
  EXPECT_EQ(writer->counts()->refused, 0u);
  EXPECT_EQ(writer->counts()->waiting, 0u);
}

TEST_F(HistoryWriterTest, AControllerWhoseTermIsOverWritesNothingMore) {
  const SqliteFolder folder;
  const auto store = folder.Open();
  knowledge::Batch later{.term = 8};
  later.events.push_back({.at = kMemoryNoon, .kind = "leader", .subject = "term 8"});
  ASSERT_TRUE(store->Commit(later));
  Begin(OpenedLater(folder.where()));
  Pass(5);
  ASSERT_TRUE(Flushed());
  Pass(1);
  EXPECT_TRUE(writer->counts()->superseded);
  EXPECT_THAT(lines, Contains(HasSubstr("writes no history any more")));
  EXPECT_EQ(store->Events(All())->size(), 1u);
  EXPECT_THAT(*store->Plans(All()), IsEmpty());
}

// What a plan's leader knows in the second before it is killed is what the next one needs.
TEST_F(HistoryWriterTest, PlansDoNotWaitForTheirSecond) {
  HistoryWriterOptions writing;
  writing.write_every = std::chrono::hours(1);
  writer = std::make_unique<HistoryWriter>(
      Scripted(), TwoNodes::Fleet(), "first", [](const std::string&) {}, writing);
  writer->Start();
  leader = std::make_unique<FleetLeader>(TwoNodes::Fleet(), TwoNodes::OnTheFirst, LeaderOptions{},
                                         LeaderKept{}, nodes.now, &writer->history());
  nodes.PassSeconds(*leader, 5);
  const auto has_verdict = [&] {
    return std::ranges::any_of(script.written, [](const auto& b) { return !b.verdicts.empty(); });
  };
  {
    std::unique_lock lock(script.mutex);
    EXPECT_TRUE(script.changed.wait_for(lock, kPatience, has_verdict));
  }
  End();
}

TEST_F(HistoryWriterTest, TroubleIsAnEventWhenItComesAndWhenItGoes) {
  Begin(Scripted());
  Pass(3);
  nodes.edge.WorkerDown("killed by signal 9", false);
  Pass(2);
  nodes.edge.WorkerUp({}, "", "");
  Pass(2);
  ASSERT_TRUE(Flushed());
  std::vector<std::string> kinds;
  for (const knowledge::Batch& each : script.written) {
    for (const knowledge::Event& event : each.events) kinds.push_back(event.kind + event.text);
  }
  EXPECT_THAT(kinds, Contains("troublekilled by signal 9"));
  EXPECT_THAT(kinds, Contains("trouble-over"));
}

TEST(PlanText, WhatIsNoInputIsRefusedWithAReason) {
  const FleetInput fleet = TwoNodes::Fleet();
  for (const char* text : {"", "{", "[]", "{\"fleet\": 1}", "{\"fleet\":\"x\",\"devices\":[1]}"}) {
    const auto input = ParseInput(text, fleet);
    ASSERT_FALSE(input) << text;
    EXPECT_THAT(input.error().message, HasSubstr("not taken up"));
  }
  FleetInput other = fleet;
  other.sites.at(0) = "elsewhere";
  const auto unknown = ParseInput(InputJson(fleet, "m", "p"), other);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("'rack'"));
  EXPECT_NE(FleetMark(fleet, "a"), FleetMark(fleet, "b"));
  EXPECT_NE(FleetMark(fleet, "a"), FleetMark(other, "a"));
}

}  // namespace
}  // namespace tactus
