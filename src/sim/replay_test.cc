// A simulation's journal must lead a new dispatcher to the same decisions.
#include "dispatch/replay.h"

#include <filesystem>

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
  JournalFile Record(const std::string& policy_text, const char* expiry = "hopeless",
                     bool share = false) {
    ProfileFile profile = TwoModels();
    Scenario scenario = ScenarioOf(TwoModels(), 600, 3);
    scenario.lanes = 2;
    scenario.expiry = expiry;
    scenario.queue_capacity = 64;
    for (ScenarioModel& model : scenario.models) model.slo_ms = 25;
    if (share) {
      scenario.slots = 3;
      scenario.capacity = {1, 1, 1, 1, 1};
      scenario.models[1].priority = 2;
      profile.models[0].resources_source = profile.models[1].resources_source = "a test";
    }
    auto writer = JournalWriter::Create(path_,
                                        {.policy = policy_text,
                                         .source = "simulated",
                                         .options = MakeDispatcherOptions(scenario),
                                         .lanes = MakeLanes(scenario)},
                                        WhenFull::kWrite, 1000);
    EXPECT_TRUE(writer);
    auto policy = MakePolicy(policy_text);
    EXPECT_TRUE(policy) << policy.error().message;
    EXPECT_TRUE(Simulate(scenario, profile, **policy, {.journal = writer->get()}));
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
    // A journal holds no plans; the simulator refuses to write one for a policy that reads them.
    if (!(*MakePolicy(info.name))->planner().empty()) continue;
    for (const char* expiry : {"never", "hopeless"}) {
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
    if (!(*MakePolicy(info.name))->planner().empty()) continue;
    const JournalFile journal = Record(info.name, "never", true);
    const Deployment& served = *journal.deployments[0].deployment;
    EXPECT_EQ(served.profile.Use(ModelId{0}, ExitId{1}, 8, LaneClass{0}),
              (ResourceUse{{0.2, 0.4, 0.6, 0.7, 0.1}, FromMillis(0.1)}));
    EXPECT_GT(journal.records[Find(journal, Kind::kFinish, 0)].count, 0u);
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
  EXPECT_THAT(error(Kind::kStep, [](JournalRecord& r) { r = {.kind = Kind::kLane, .lane = 7}; }),
              HasSubstr("no such lane"));
}

}  // namespace
}  // namespace tactus
