// The open loop and the closed loop against a transport that answers in the caller's thread.
#include "load/load_run.h"

#include <atomic>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

// Answers at once, or never, by its script.
class ScriptedTransport final : public Transport {
 public:
  std::string_view name() const override { return "script"; }
  Expected<DescribedModel> Describe(const std::string& model) override {
    if (model == "absent") return NotFound("no model 'absent'");
    DescribedModel served;
    served.model.name = model;
    served.model.slo = Seconds(100);
    served.model.exits = {{"1", 0.5}, {"2", 0.75}};
    served.inputs = {{"x", DataType::kFp32, {-1, 2}}};
    served.emulated = emulated_ && model == "b";
    return served;
  }
  Status Prepare(std::span<const PreparedInputs> inputs, AnswerSink& sink) override {
    models_ = inputs.size();
    sink_ = &sink;
    return {};
  }
  void Send(const Call& call) override {
    EXPECT_LT(call.model, models_);
    const std::int64_t n = sent_++;
    models_sent_ |= 1U << call.model;
    if (silent_every_ > 0 && n % silent_every_ == 0) return;
    Answer answer;
    answer.token = call.token;
    answer.kind = refuse_ ? Answered::kShed : Answered::kServed;
    answer.received = std::chrono::steady_clock::now();
    answer.exit = call.model == 0 ? "1" : "2";
    answer.batch = 1;
    answer.error = refuse_ ? "full" : "";
    sink_->OnAnswer(answer);
  }
  void Stop() override { stopped_ = true; }

  std::atomic<std::int64_t> sent_{0};
  std::atomic<std::uint32_t> models_sent_{0};  // a bit for each
  std::int64_t silent_every_ = 0;
  bool refuse_ = false;
  bool emulated_ = false;
  bool stopped_ = false;
  std::size_t models_ = 0;
  AnswerSink* sink_ = nullptr;
};

LoadOptions Short() {
  LoadOptions options;
  options.scenario.name = "short";
  options.scenario.duration_s = 0.2;
  options.scenario.rate_rps = 1000;
  options.scenario.process = ArrivalProcess::kUniform;
  options.scenario.popularity = Popularity::kRatio;
  options.scenario.models = {{.name = "a", .profile_as = "a", .ratio = 3},
                             {.name = "b", .profile_as = "b", .ratio = 1}};
  options.slo_from_server = true;
  options.drain = std::chrono::milliseconds(0);
  return options;
}

TEST(RunLoad, SendsEveryArrivalOfTheScenario) {
  ScriptedTransport transport;
  const auto result = RunLoad(transport, Short(), {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(transport.stopped_);
  // 1000 a second for 0.2 s, however late this machine was in sending them.
  EXPECT_NEAR(static_cast<double>(result->sent), 200, 2);
  EXPECT_EQ(result->sent, transport.sent_);
  EXPECT_EQ(result->unanswered, 0);
  EXPECT_EQ(result->unexpected, 0);
  EXPECT_EQ(result->report.source, "load script");
  EXPECT_EQ(result->report.all.requests, result->sent);
  EXPECT_DOUBLE_EQ(result->report.all.bad_ratio, 0);
  ASSERT_EQ(result->report.models.size(), 2U);
  EXPECT_NEAR(static_cast<double>(result->report.models[0].figures.requests), 150, 2);
  EXPECT_DOUBLE_EQ(result->report.models[1].figures.accuracy, 0.75);
  EXPECT_FALSE(result->accuracy_measured) << "these models take no labelled images";
  for (std::size_t i = 1; i < result->records.size(); ++i) {
    EXPECT_LE(result->records[i - 1].arrival, result->records[i].arrival);
  }
}

TEST(RunLoad, ARunThatCouldNotBeReportedSendsNothing) {
  LoadOptions warm = Short();
  warm.scenario.warmup_s = warm.scenario.duration_s;
  LoadOptions large = Short();
  large.scenario.rate_rps = 1e9;
  for (const auto& [options, says] :
       {std::pair(warm, "shorten --warmup"), std::pair(large, "lower --rate or --duration")}) {
    ScriptedTransport transport;
    const auto result = RunLoad(transport, options, {});
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find(says), std::string::npos) << result.error().message;
    EXPECT_EQ(transport.sent_, 0);
  }
}

// A report of an emulated device that does not say so is a made-up figure.
TEST(RunLoad, SaysWhereOneOfTheModelsIsEmulated) {
  ScriptedTransport transport;
  transport.emulated_ = true;  // the second of the two
  const auto result = RunLoad(transport, Short(), {});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->emulated);
  EXPECT_EQ(result->report.source, "load script, emulated");
}

TEST(RunLoad, UnansweredCallsAreErrorsAfterTheDrain) {
  ScriptedTransport transport;
  transport.silent_every_ = 10;
  const auto result = RunLoad(transport, Short(), {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->unanswered, (result->sent + 9) / 10);
  EXPECT_EQ(result->report.all.outcomes[static_cast<int>(Outcome::kError)], result->unanswered);
  EXPECT_THAT(result->first_error, ::testing::HasSubstr("no answer"));
}

TEST(RunLoad, StopsSendingWhenTold) {
  ScriptedTransport transport;
  LoadOptions options = Short();
  options.scenario.duration_s = 3600;
  std::stop_source stop;
  const auto result = RunLoad(
      transport, options, [&](const LoadProgress&) { stop.request_stop(); }, stop.get_token());
  ASSERT_TRUE(result);
  EXPECT_GT(result->sent, 0);
  EXPECT_LT(result->sent, 3'600'000);
}

TEST(RunLoad, AModelThatTheServerLacksIsAnError) {
  ScriptedTransport transport;
  LoadOptions options = Short();
  options.scenario.models[1].name = "absent";
  const auto result = RunLoad(transport, options, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "no model 'absent'");
  EXPECT_EQ(transport.sent_, 0);
}

TEST(LoadProgressText, SaysHowFarAndHowWell) {
  EXPECT_EQ(ToText(LoadProgress{12.34, 20, 1480, 5, 120.4, 0.0021, false}),
            "12.3/20.0 s  sent 1480  in flight 5  120 req/s  violations 0.21 %");
}

ClosedLoopOptions Closed(int concurrency) {
  return {.models = {{.name = "a", .weight = 3}, {.name = "b", .weight = 1}},
          .concurrency = concurrency,
          .retry_after = Millis(1),
          .warmup = std::chrono::milliseconds(0),
          .duration = std::chrono::milliseconds(30)};
}

TEST(RunClosedLoop, CallersThatAreRefusedComeBackLater) {
  ScriptedTransport transport;
  transport.refuse_ = true;
  const auto result = RunClosedLoop(transport, Closed(4));
  ASSERT_TRUE(result);
  ASSERT_EQ(result->models.size(), 2u);
  for (const ClosedLoopResult::OfModel& of : result->models) {
    EXPECT_EQ(of.answered, 0);
    EXPECT_GT(of.refused, 0);
  }
  EXPECT_EQ(result->unanswered, 0);
  EXPECT_EQ(result->first_error, "full");
}

// The loop ends although all its callers wait to call again; and whatever the weights, each model
// is called.
TEST(RunClosedLoop, NobodyWaitsForACallerThatWaits) {
  ScriptedTransport transport;
  transport.refuse_ = true;
  auto options = Closed(2);
  options.models[0].weight = 1000;
  options.retry_after = Seconds(1000);
  options.drain = std::chrono::hours(1);
  const auto result = RunClosedLoop(transport, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->unanswered, 0);
  EXPECT_EQ(transport.models_sent_, 0b11U);
}

TEST(RunClosedLoop, ACallWithoutAnAnswerIsReported) {
  ScriptedTransport transport;
  transport.silent_every_ = 1;
  auto options = Closed(2);
  options.models.resize(1);
  options.drain = std::chrono::milliseconds(1);
  const auto result = RunClosedLoop(transport, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->unanswered, 2);
}

TEST(RunClosedLoop, EachModelNeedsACaller) {
  ScriptedTransport transport;
  const auto result = RunClosedLoop(transport, Closed(1));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "1 callers are too few for 2 models: each needs one at least");
}

}  // namespace
}  // namespace tactus
