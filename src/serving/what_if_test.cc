// The live page's minute, simulated again: under its own setting it is what was, and under another
// what a run of that setting says.
#include "serving/what_if.h"

#include <algorithm>
#include <future>
#include <unordered_map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/temporary_folder_test.h"
#include "dispatch/replay.h"
#include "metrics/recorder.h"
#include "policies/registry.h"
#include "sim/sim_testing.h"

namespace tactus {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// What the page would note of a run.
class Notes final : public ReplayWatch {
 public:
  void Configured(std::shared_ptr<const ServedModels> served) override { this->served = served; }
  void Launched(const Batch& batch) override { running_.emplace(batch.id.value(), batch); }
  void Finished(BatchId id, const BatchReport& report) override {
    const Batch& batch = running_.at(id.value());
    kept.batches.push_back({.model = batch.model.value(),
                            .lane = static_cast<std::uint16_t>(batch.lane.value()),
                            .exit = static_cast<std::uint16_t>(batch.exit.value()),
                            .rows = static_cast<std::uint16_t>(batch.requests.size()),
                            .decided = batch.start,
                            .started = report.started,
                            .ended = report.ended,
                            .learnt = report.ended});
  }
  void Answered(const Batch& batch, const BatchReport& report) override {
    recorder_.Complete(batch, report, report.ended);
  }
  void GivenUp(ModelId model, const Request& request, DropReason reason, TimePoint now) override {
    recorder_.Reject(model, request, reason, now);
  }
  // As if the server had run for `uptime` before.
  LiveMinute::Kept Minute(Duration uptime) {
    for (const Model& model : served->models) kept.models.push_back(model.name);
    for (const RequestRecord& record : recorder_.records()) {
      kept.answers.push_back({.model = record.model, .record = record});
    }
    for (auto& answer : kept.answers) {
      for (TimePoint* at : {&answer.record.arrival, &answer.record.deadline, &answer.record.started,
                            &answer.record.ended}) {
        *at += uptime;
      }
      kept.to = std::max(kept.to, answer.record.ended);
    }
    for (auto& batch : kept.batches) {
      for (TimePoint* at : {&batch.decided, &batch.started, &batch.ended, &batch.learnt}) {
        *at += uptime;
      }
    }
    kept.from = kStart + uptime;
    return kept;
  }

  LiveMinute::Kept kept;
  std::shared_ptr<const ServedModels> served;

 private:
  std::unordered_map<std::uint64_t, Batch> running_;
  Recorder recorder_{1000};
};

class WhatIfTest : public ::testing::Test {
 protected:
  WhatIfTest() {
    profile_.models = {AffineModelOf("a", Millis(2), Millis(1), 8),
                       AffineModelOf("b", Millis(4), Millis(2), 8)};
    scenario_ = ScenarioOf(profile_, 1300, 6);
    scenario_.expiry = "unmeetable";
    scenario_.lanes = 2;
    for (ScenarioModel& model : scenario_.models) model.slo_ms = 25;
  }

  JournalHeader Setting(const std::string& policy) {
    scenario_.policy = policy;
    return {.policy = policy,
            .source = "simulated",
            .options = MakeDispatcherOptions(scenario_),
            .lanes = SimulatedLanes(scenario_, **MakePolicy(policy), nullptr)};
  }
  RunReport Run(const std::string& policy, Notes* notes = nullptr) {
    const TemporaryFolder folder;
    auto writer = JournalWriter::Create(folder / "j", Setting(policy), WhenFull::kWrite);
    auto first = MakePolicy(policy);
    const auto result = Simulate(scenario_, profile_, **first, {.journal = writer->get()});
    EXPECT_TRUE(result) << result.error().message;
    EXPECT_TRUE((*writer)->Close());
    if (notes != nullptr) {
      auto again = MakePolicy(policy);
      EXPECT_TRUE(Replay(*LoadJournal(folder / "j"), **again, notes));
    }
    return MakeReport(scenario_, profile_, *result);
  }
  WhatIf::Parts PartsOf(Notes& notes, const std::string& policy) {
    return {.setting = Setting(policy),
            .served = [&] { return notes.served; },
            .minute = [kept = notes.Minute(Seconds(1'000'000))] { return kept; },
            .busy = [this] { return busy_; }};
  }
  static Expected<std::string> Ask(WhatIf& asked, const std::string& question) {
    std::promise<Expected<std::string>> reply;
    asked.Ask(question, [&](auto answer) { reply.set_value(std::move(answer)); });
    return reply.get_future().get();
  }
  static void ExpectAlike(const json& said, const RunReport& run) {
    EXPECT_EQ(said["requests"], run.all.requests);
    EXPECT_NEAR(said["in_time_percent"].get<double>(), 100 * (1 - run.all.bad_ratio), 0.5);
    EXPECT_NEAR(said["p50_ms"].get<double>(), run.all.p50_ms, 0.02 * run.all.p50_ms);
    EXPECT_NEAR(said["p95_ms"].get<double>(), run.all.p95_ms, 0.02 * run.all.p95_ms);
  }

  ProfileFile profile_;
  Scenario scenario_;
  double busy_ = 0;
};

TEST_F(WhatIfTest, TheSameIsWhatWasAndAnotherPolicyIsWhatItWouldHaveDone) {
  Notes notes;
  const RunReport was = Run("fifo", &notes);
  ASSERT_GT(was.all.bad_ratio, 0.05) << "past its capacity, else nothing is shown";
  WhatIf asked(PartsOf(notes, "fifo"));
  const auto answer = Ask(asked, R"({"set": ["policy=horizon"]})");
  ASSERT_TRUE(answer) << answer.error().message;
  const json said = json::parse(*answer);
  ExpectAlike(said["was"], was);
  ExpectAlike(said["same"], was);
  ExpectAlike(said["other"], Run("horizon"));
  EXPECT_EQ(said["other"]["policy"], "horizon");
  EXPECT_EQ(said["was"]["models"]["b"]["slo_ms"], 25);
  EXPECT_FALSE(json::parse(*Ask(asked, R"({"set": []})")).contains("other"));
}

TEST_F(WhatIfTest, WrongQuestionsSayWhatIsWrong) {
  Notes notes;
  Run("fifo", &notes);
  WhatIf asked(PartsOf(notes, "fifo"));
  for (const char* question :
       {"", "{", "[]", "{}", R"({"set": 1})", R"({"set": [1]})", R"({"set": [], "more": 1})"}) {
    EXPECT_THAT(Ask(asked, question).error().message, HasSubstr("the question must be"))
        << question;
  }
  const auto said = [&](const char* setting) {
    return Ask(asked, json{{"set", {setting}}}.dump()).error().message;
  };
  EXPECT_THAT(said("policy=none"), HasSubstr("none"));
  EXPECT_THAT(said("lanes"), HasSubstr("KEY=VALUE"));
  EXPECT_EQ(said("models.c.slo_ms=4"),
            "models.c.slo_ms=4: no call of a model 'c' is simulated; those are a, b. Of a pipeline "
            "it is the steps that are");
  EXPECT_THAT(said("duration_s=1"), HasSubstr("is no setting of a recorded run"));
  EXPECT_THAT(said("models.a.rate_rps=4"), HasSubstr("is no setting of a recorded run"));
}

TEST_F(WhatIfTest, NobodyWaitsForIt) {
  Notes notes;
  Run("fifo", &notes);
  WhatIf::Parts parts = PartsOf(notes, "fifo");
  std::promise<void> go_on;
  parts.busy = [this, go = go_on.get_future().share()] {
    go.wait();
    return busy_;
  };
  WhatIf asked(std::move(parts));
  std::promise<Expected<std::string>> first;
  asked.Ask(R"({"set": []})", [&](auto answer) { first.set_value(std::move(answer)); });
  EXPECT_THAT(Ask(asked, R"({"set": []})").error().message, HasSubstr("another what-if"));
  busy_ = 0.95;
  go_on.set_value();
  const auto answer = first.get_future().get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(answer.error().message, HasSubstr("the machine is 95 % busy"));
  busy_ = 0;
  EXPECT_TRUE(Ask(asked, R"({"set": []})"));
  asked.Stop();
  EXPECT_EQ(Ask(asked, R"({"set": []})").error().code, ErrorCode::kUnavailable);
}

// Without this a pipeline's call is said to be left out, and its steps to be calls.
TEST_F(WhatIfTest, OfPipelinesTheStepsAreSimulated) {
  Notes notes;
  Run("fifo", &notes);
  WhatIf::Parts parts = PartsOf(notes, "fifo");
  LiveMinute::Kept kept = parts.minute();
  for (auto& answer : kept.answers) answer.step = answer.model == 0;
  const std::size_t requests = kept.answers.size();
  kept.models.push_back("both");
  for (std::size_t i = 0; i < requests; ++i) {
    if (!kept.answers[i].step) continue;
    LiveMoments::Answer whole = kept.answers[i];
    whole.model = 2;
    whole.step = false;
    whole.pipeline = true;
    kept.answers.push_back(whole);
  }
  parts.minute = [&] { return kept; };
  WhatIf asked(std::move(parts));
  const json said = json::parse(*Ask(asked, R"({"set": []})"));
  EXPECT_EQ(said["steps"], kept.answers.size() - requests);
  EXPECT_EQ(said["left_out"], 0);
  EXPECT_EQ(said["was"]["requests"], requests);
}

// Without this, what a lane waits for looks like room that a simulated one does not have.
TEST_F(WhatIfTest, ALaneIsBusyFromADecisionUntilItIsFree) {
  Notes notes;
  Run("fifo", &notes);
  for (auto& batch : notes.kept.batches) {
    batch.started += Micros(300);
    batch.ended -= Micros(300);
  }
  WhatIf asked(PartsOf(notes, "fifo"));
  const json said = json::parse(*Ask(asked, R"({"set": []})"));
  EXPECT_NEAR(said["was"]["busy_percent"].get<double>(), said["same"]["busy_percent"].get<double>(),
              1);
}

TEST_F(WhatIfTest, AMinuteOfTwoSecondsIsNotEnough) {
  Notes notes;
  scenario_.duration_s = 2;
  Run("fifo", &notes);
  WhatIf asked(PartsOf(notes, "fifo"));
  EXPECT_THAT(Ask(asked, R"({"set": []})").error().message,
              HasSubstr("ask again when there are 3"));
}

}  // namespace
}  // namespace tactus
