// What a journal has kept, simulated again: under its own setting it is what was, and under another
// what a simulation of that setting says.
#include "experiment/recorded.h"

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

class Recorded : public ::testing::Test {
 protected:
  Recorded() {
    profile_.models = {AffineModelOf("a", Millis(2), Millis(1), 8),
                       AffineModelOf("b", Millis(4), Millis(2), 8)};
    for (ProfiledModel& model : profile_.models) {
      ProfiledExit early = model.exits[0];
      early.name = "early";
      for (ProfileCell& cell : early.cells) cell = Constant(FromMillis(cell.mean_ms / 3));
      model.exits.insert(model.exits.begin(), early);
    }
    scenario_ = ScenarioOf(profile_, 4500, 2);
    scenario_.policy = "horizon";
    scenario_.expiry = "unmeetable";
    scenario_.lanes = 2;
    for (ScenarioModel& model : scenario_.models) model.slo_ms = 25;
  }

  // Simulated under the policy, and kept in a journal where there is a path.
  RunReport Run(const std::string& policy_text, const std::filesystem::path& path = {}) {
    scenario_.policy = policy_text;
    auto policy = MakePolicy(policy_text);
    EXPECT_TRUE(policy) << policy.error().message;
    SimulationOptions options;
    std::unique_ptr<JournalWriter> writer;
    if (!path.empty()) {
      writer = *JournalWriter::Create(path,
                                      {.policy = policy_text,
                                       .source = "simulated",
                                       .options = MakeDispatcherOptions(scenario_),
                                       .lanes = SimulatedLanes(scenario_, **policy, nullptr)},
                                      WhenFull::kWrite, 1000);
      options.journal = writer.get();
    }
    const auto result = Simulate(scenario_, profile_, **policy, options);
    EXPECT_TRUE(result) << result.error().message;
    if (writer != nullptr) EXPECT_TRUE(writer->Close());
    return MakeReport(scenario_, profile_, *result);
  }
  RecordedRun Read(std::optional<Duration> last = std::nullopt) {
    auto run = ReadRecorded(*LoadJournal(path_), "journal", last);
    EXPECT_TRUE(run) << run.error().message;
    return *std::move(run);
  }
  static void ExpectAlike(const RunReport& a, const RunReport& b) {
    EXPECT_EQ(a.all.requests, b.all.requests);
    EXPECT_EQ(a.all.outcomes, b.all.outcomes);
    EXPECT_NEAR(a.all.p50_ms, b.all.p50_ms, 1e-6);
    EXPECT_NEAR(a.all.p99_ms, b.all.p99_ms, 1e-6);
    EXPECT_NEAR(a.all.accuracy, b.all.accuracy, 1e-9);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "journal";
  ProfileFile profile_;
  Scenario scenario_;
};

TEST_F(Recorded, UnderItsOwnSettingItIsWhatItWas) {
  const RunReport was = Run("horizon", path_);
  const RecordedRun run = Read();
  ExpectAlike(run.happened, was);
  const auto again = SimulateRecorded(run);
  ASSERT_TRUE(again) << again.error().message;
  ExpectAlike(*again, was);
  EXPECT_GT(was.all.bad_ratio, 0.005) << "past its capacity, else nothing is shown";
}

TEST_F(Recorded, UnderAnotherPolicyItIsWhatThatPolicyWouldHaveDone) {
  Run("horizon", path_);
  RecordedRun run = Read();
  for (const char* policy : {"all-final", "fifo", "edgeserving"}) {
    run.experiment.scenario.policy = policy;
    const auto other = SimulateRecorded(run);
    ASSERT_TRUE(other) << other.error().message;
    ExpectAlike(*other, Run(policy));
  }
}

TEST_F(Recorded, MoreLanesAndALooserSloAreTried) {
  Run("all-final", path_);
  RecordedRun run = Read();
  const double bad = run.happened.all.bad_ratio;
  run.experiment.scenario.lanes = 8;
  EXPECT_LT(SimulateRecorded(run)->all.bad_ratio, 0.5 * bad);
  run.experiment.scenario.lanes = 2;
  for (ScenarioModel& model : run.experiment.scenario.models) model.slo_ms = 2000;
  EXPECT_LT(SimulateRecorded(run)->all.bad_ratio, bad);
}

TEST_F(Recorded, ThePartAtTheEndIsTaken) {
  Run("horizon", path_);
  const RecordedRun run = Read(Seconds(1));
  EXPECT_NEAR(static_cast<double>(run.happened.all.requests), 4500, 400);
  ExpectAlike(*SimulateRecorded(run), run.happened);
}

// Without this, a server that loaded a model in another's place has no what-if any more.
TEST_F(Recorded, AModelInAnothersPlaceIsAnother) {
  const RunReport was = Run("horizon", path_);
  JournalFile journal = *LoadJournal(path_);
  auto served = std::make_shared<ServedModels>(
      *std::get<std::shared_ptr<const ServedModels>>(journal.changes.front().to));
  served->models[0].name = "c";
  journal.changes.push_back({journal.records.size() / 2, served});
  const auto run = ReadRecorded(journal, "journal", std::nullopt);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->happened.all.requests, was.all.requests);
  std::vector<std::string> names;
  std::uint64_t requests = 0;
  for (const ModelSummary& model : run->happened.models) {
    names.push_back(model.name);
    requests += model.figures.requests;
    EXPECT_GT(model.figures.requests, was.all.requests / 5) << model.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(requests, was.all.requests);
  EXPECT_EQ(SimulateRecorded(*run)->all.requests, was.all.requests);
}

// Without this, `busy` of what was and of what is simulated are two measures.
TEST_F(Recorded, ALaneIsBusyFromADecisionToItsEnd) {
  Run("horizon", path_);
  JournalFile journal = *LoadJournal(path_);
  for (JournalRecord& record : journal.records) {
    if (record.kind == JournalRecord::Kind::kFinish) record.deadline += Micros(300);
  }
  const auto run = ReadRecorded(journal, "journal", std::nullopt);
  ASSERT_TRUE(run) << run.error().message;
  const auto again = SimulateRecorded(*run);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_NEAR(BusyRatio(run->happened), BusyRatio(*again), 0.01);
}

TEST_F(Recorded, WhatCannotBeSimulatedIsRefused) {
  scenario_.lane_kinds = {{.name = "only a", .count = 1, .models = {"a"}}};
  Run("horizon", path_);
  const auto run = ReadRecorded(*LoadJournal(path_), "journal", std::nullopt);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("its lanes differ"));
}

}  // namespace
}  // namespace tactus
