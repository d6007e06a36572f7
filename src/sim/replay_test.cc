// A simulation's journal must lead a new dispatcher to the same decisions.
#include "dispatch/replay.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "policies/registry.h"
#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;
using Kind = JournalRecord::Kind;

ProfileFile TwoModels() {
  ProfileFile profile;
  profile.models = {AffineModelOf("a", Millis(2), Millis(1), 8),
                    AffineModelOf("b", Millis(4), Millis(2), 8)};
  for (ProfiledModel& model : profile.models) {
    ProfiledExit early = model.exits[0];
    early.name = "early";
    for (ProfileCell& cell : early.cells) cell = Constant(FromMillis(cell.mean_ms / 3));
    model.exits.insert(model.exits.begin(), early);
    for (ProfileCell& cell : model.exits[1].cells) {
      cell.repetitions = 50;
      cell.max_ms = 2 * cell.p99_ms;
    }
    for (ProfiledExit& exit : model.exits) {
      for (ProfileCell& cell : exit.cells) {
        cell.transfer_ms = 0.1;
        cell.throughput = {0.2, 0.4, 0.6, 0.7, 0.1};
      }
    }
  }
  return profile;
}

class ReplayTest : public ::testing::Test {
 protected:
  // Devices that are split anew as the load changes: every two seconds, and lanes take their time.
  JournalFile RecordReplans() {
    ProfileFile profile = TwoModels();
    Scenario scenario = ScenarioOf(TwoModels(), 60, 20);
    scenario.lanes = 2;
    scenario.plan_shares = {20, 40, 50, 60, 80};
    scenario.plan_planner = "gpulet";
    scenario.plan_period_s = 2;
    scenario.plan_make_least_s = 0.1;
    scenario.plan_make_most_s = 0.5;
    for (ScenarioModel& model : scenario.models) model.slo_ms = 60;
    for (ProfiledModel& model : profile.models) model.resources_source = "a test";
    const std::string schedule = folder_ / "rates.csv";
    std::ofstream(schedule) << "at_s,a,b\n0,1,1\n7,0.2,2\n14,2,0.2\n";
    scenario.schedule = schedule;
    return Write(scenario, profile, "planned");
  }
  JournalFile Record(const std::string& policy_text, const char* expiry = "unmeetable",
                     bool share = false, bool faults = false, const char* follow = "auto") {
    ProfileFile profile = TwoModels();
    Scenario scenario = ScenarioOf(TwoModels(), 600, 3);
    scenario.lanes = 2;
    scenario.follow = follow;
    if (scenario.follow != "auto") {
      scenario.drift_from_s = 1;
      scenario.drift_factor = 1.4;
      scenario.drift_stall_ms = 20;
      scenario.drift_every_ms = 300;
    }
    scenario.expiry = expiry;
    scenario.queue_capacity = 64;
    for (ScenarioModel& model : scenario.models) model.slo_ms = 25;
    if (faults) {
      scenario.lane_kinds = {{.name = "only a", .count = 1, .speed = 2, .models = {"a"}}};
      for (int i = 1; i < 6; ++i) {
        scenario.lane_faults.push_back({.lane = i % 2, .at_s = 0.4 * i, .back_s = 0.4 * i + 0.3});
      }
    }
    if (share) {
      scenario.slots = 3;
      scenario.capacity = {1, 1, 1, 1, 1};
      scenario.models[1].priority = 2;
      profile.models[0].resources_source = profile.models[1].resources_source = "a test";
    }
    return Write(scenario, profile, policy_text);
  }
  JournalFile Write(const Scenario& scenario, const ProfileFile& profile,
                    const std::string& policy_text) {
    auto policy = MakePolicy(policy_text);
    EXPECT_TRUE(policy) << policy.error().message;
    auto writer = JournalWriter::Create(path_,
                                        {.policy = policy_text,
                                         .source = "simulated",
                                         .options = MakeDispatcherOptions(scenario),
                                         .lanes = SimulatedLanes(scenario, **policy, nullptr)},
                                        WhenFull::kWrite, 1000);
    EXPECT_TRUE(writer);
    const auto result = Simulate(scenario, profile, **policy, {.journal = writer->get()});
    EXPECT_TRUE(result) << result.error().message;
    EXPECT_TRUE((*writer)->Close());
    auto journal = LoadJournal(path_);
    EXPECT_TRUE(journal) << journal.error().message;
    return std::move(*journal);
  }
  static Expected<ReplayResult> Again(const JournalFile& journal) {
    return Replay(journal, **MakePolicy(journal.header.policy));
  }
  static std::size_t Find(const JournalFile& journal, Kind kind, std::size_t from) {
    while (journal.records[from].kind != kind) ++from;
    return from;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "journal";
};

TEST_F(ReplayTest, EveryPolicyDecidesTheSameAgain) {
  for (const PolicyInfo& info : Policies()) {
    for (const char* expiry : {"never", "unmeetable"}) {
      const JournalFile journal = Record(info.name, expiry);
      const auto result = Again(journal);
      ASSERT_TRUE(result) << info.name << ": " << result.error().message;
      EXPECT_FALSE(result->difference) << info.name << ": " << *result->difference;
      EXPECT_EQ(result->events + result->decisions, journal.records.size());
      EXPECT_GT(result->decisions, 1000u);
    }
  }
}

// Policies that learn from measured uploads and know what batches use decide the same again, so the
// journal holds both.
TEST_F(ReplayTest, EveryPolicyDecidesTheSameAgainWhereBatchesShareLanes) {
  for (const PolicyInfo& info : Policies()) {
    const JournalFile journal = Record(info.name, "never", true);
    const auto served = std::get<std::shared_ptr<const ServedModels>>(journal.changes[0].to);
    EXPECT_EQ(served->profile.Use(ModelId{0}, ExitId{1}, 8, LaneClass{0}),
              (ResourceUse{{0.2, 0.4, 0.6, 0.7, 0.1}, FromMillis(0.1)}));
    EXPECT_GT(journal.records[Find(journal, Kind::kFinish, 0)].upload, Duration{});
    const auto result = Again(journal);
    ASSERT_TRUE(result) << info.name << ": " << result.error().message;
    EXPECT_FALSE(result->difference) << info.name << ": " << *result->difference;
  }
}

// What a policy does not decide by itself but is given is in the journal too. Without its plans, or
// without the shares of its lanes, such a run would be decided otherwise.
TEST_F(ReplayTest, PlansThatChangeAreDecidedTheSameAgain) {
  const JournalFile journal = RecordReplans();
  const auto result = Again(journal);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->difference) << *result->difference;
  EXPECT_GT(result->plans, 2u);
  EXPECT_GT(result->decisions, 1000u);

  const auto without = [&](auto is_left_out) {
    JournalFile changed = journal;
    std::erase_if(changed.changes, is_left_out);
    EXPECT_LT(changed.changes.size(), journal.changes.size());
    const auto replayed = Again(changed);
    EXPECT_TRUE(replayed) << replayed.error().message;
    return replayed && replayed->difference;
  };
  EXPECT_TRUE(without([](const JournalFile::Change& change) {
    return std::holds_alternative<std::shared_ptr<const Plan>>(change.to);
  }));
  EXPECT_TRUE(without([](const JournalFile::Change& change) {
    return std::holds_alternative<LaneShare>(change.to);
  }));
}

// Lanes that die and come back, models that are pinned to some of them: all of it is in the
// journal.
TEST_F(ReplayTest, LanesThatDieAreDecidedTheSameAgain) {
  for (const PolicyInfo& info : Policies()) {
    const JournalFile journal = Record(info.name, "unmeetable", false, true);
    EXPECT_FALSE(journal.header.lanes[0].serves.all());
    const auto lost = std::ranges::count_if(journal.records, [](const JournalRecord& record) {
      return record.kind == Kind::kFinish &&
             record.detail == static_cast<std::uint8_t>(BatchStatus::kLost);
    });
    EXPECT_GT(lost, 0);
    const auto result = Again(journal);
    ASSERT_TRUE(result) << info.name << ": " << result.error().message;
    EXPECT_FALSE(result->difference) << info.name << ": " << *result->difference;
  }
}

// A share of a lane that serves was never given.
TEST_F(ReplayTest, RefusesAShareForALaneThatServes) {
  JournalFile journal = RecordReplans();
  const auto share = std::ranges::find_if(journal.changes, [](const JournalFile::Change& change) {
    return std::holds_alternative<LaneShare>(change.to);
  });
  ASSERT_NE(share, journal.changes.end());
  JournalFile::Change again = *share;
  again.at = Find(journal, Kind::kStep, journal.records.size() / 2);
  for (std::uint32_t lane = 0; lane < journal.header.lanes.size(); ++lane) {
    std::get<LaneShare>(again.to).lane = LaneId{lane};
    JournalFile changed = journal;
    std::erase_if(changed.changes, [&](const auto& change) { return change.at >= again.at; });
    changed.changes.push_back(again);
    if (const auto result = Again(changed); !result) {
      EXPECT_THAT(result.error().message, HasSubstr("gets another share"));
      return;
    }
  }
  ADD_FAILURE() << "no lane served half-way";
}

// What was learnt of the machine is learnt again, so policies are told the same.
TEST_F(ReplayTest, EveryPolicyDecidesTheSameAgainOnAMachineThatIsFollowed) {
  for (const PolicyInfo& info : Policies()) {
    if (!(*MakePolicy(info.name))->traits().planner.empty()) continue;
    const JournalFile journal = Record(info.name, "unmeetable", false, false, "stalls");
    EXPECT_GT(Find(journal, Kind::kRatio, 0), 0u);
    EXPECT_GT(Find(journal, Kind::kReserve, 0), 0u);
    const auto result = Again(journal);
    ASSERT_TRUE(result) << info.name << ": " << result.error().message;
    EXPECT_FALSE(result->difference) << info.name << ": " << *result->difference;
  }
}

// A changed decision, a changed input and another policy: each is found where it first shows.
TEST_F(ReplayTest, ReportsTheFirstDifference) {
  const JournalFile journal = Record("edgeserving");
  const std::size_t place = Find(journal, Kind::kDispatch, journal.records.size() / 2);

  JournalFile changed = journal;
  changed.records[place].count += 1;
  auto result = Again(changed);
  ASSERT_TRUE(result && result->difference);
  EXPECT_THAT(*result->difference, HasSubstr("at record " + std::to_string(place)));
  EXPECT_THAT(*result->difference, HasSubstr("-> [" + std::to_string(place) + "] dispatch model"));
  EXPECT_THAT(*result->difference, HasSubstr("the replay had: dispatch model"));

  changed = journal;
  changed.records[Find(journal, Kind::kArrive, place)].deadline -= Millis(30);
  result = Again(changed);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->difference);

  changed = journal;
  changed.header.policy = "all-early";
  result = Again(changed);
  ASSERT_TRUE(result && result->difference);

  changed = journal;
  changed.records.erase(changed.records.begin() + static_cast<std::ptrdiff_t>(place));
  result = Again(changed);
  ASSERT_TRUE(result && result->difference);
}

// The beginning of a journal replays as far as it goes, even when it ends inside a step.
TEST_F(ReplayTest, AcceptsAnIncompleteJournal) {
  JournalFile journal = Record("edgeserving");
  const std::size_t place = Find(journal, Kind::kDispatch, journal.records.size() / 2);
  journal.records.resize(place);
  EXPECT_TRUE(Again(journal)->difference) << "a complete journal cannot end before a decision";
  journal.complete = false;
  const auto result = Again(journal);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->difference);
}

// Events that no dispatcher could have seen are an error of the file, not a crash.
TEST_F(ReplayTest, RefusesEventsThatMakeNoSense) {
  const JournalFile journal = Record("fifo");
  const auto error = [&](Kind kind, auto change) {
    JournalFile changed = journal;
    change(changed.records[Find(journal, kind, journal.records.size() / 2)]);
    const auto result = Again(changed);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(error(Kind::kFinish, [](JournalRecord& r) { r.id += 1000; }),
              HasSubstr("does not run on this lane"));
  EXPECT_THAT(error(Kind::kFinish, [](JournalRecord& r) { r.lane = 99; }),
              HasSubstr("does not run on this lane"));
  EXPECT_THAT(error(Kind::kFinish, [](JournalRecord& r) { r.detail = 200; }),
              HasSubstr("no such status"));
  EXPECT_THAT(error(Kind::kArrive, [](JournalRecord& r) { r.id = 0; }), HasSubstr("ids must rise"));
  EXPECT_THAT(error(Kind::kStep, [](JournalRecord& r) { r.at = kStart; }), HasSubstr("backwards"));
  // Sums of them with latencies and deadlines would leave 64 bits.
  const TimePoint beyond = kStart + Nanos(std::int64_t{1} << 62);
  for (const Kind kind : {Kind::kArrive, Kind::kFinish, Kind::kStep}) {
    EXPECT_THAT(error(kind, [&](JournalRecord& r) { r.at = beyond; }), HasSubstr("20 years"));
  }
  EXPECT_THAT(error(Kind::kArrive, [&](JournalRecord& r) { r.deadline = beyond - Nanos(1); }),
              AllOf(HasSubstr("record "), HasSubstr("20 years")));
  EXPECT_THAT(
      error(Kind::kArrive, [&](JournalRecord& r) { r.deadline = kStart - Nanos(1L << 62); }),
      HasSubstr("20 years"));
  EXPECT_THAT(error(Kind::kFinish, [&](JournalRecord& r) { r.ended = beyond; }),
              HasSubstr("20 years"));
  EXPECT_THAT(error(Kind::kStep, [](JournalRecord& r) { r = {.kind = Kind::kLane, .lane = 7}; }),
              HasSubstr("no such lane"));
}

}  // namespace
}  // namespace tactus
