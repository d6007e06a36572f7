#include "server/kserve/traced_service.h"

#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/temporary_folder_test.h"
#include "service/plain_service_test.h"

namespace tactus {
namespace {

using std::chrono::nanoseconds;
using Stamps = std::vector<std::pair<std::string, std::int64_t>>;

// Keeps calls until they are answered.
class KeptCalls final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view, std::int64_t) const override {
    return NotFound("none");
  }
  CallId Infer(InferCall&& call) override {
    calls_.push_back(std::move(call));
    return calls_.size();
  }
  Status ModelReady(std::string_view, std::int64_t) const override {
    return Fail(ErrorCode::kUnavailable, "no worker serves it");
  }
  void Answer(InferReply reply) {
    const InferCall call = std::move(calls_.front());
    calls_.erase(calls_.begin());
    call.reply(std::move(reply));
  }
  std::size_t size() const { return calls_.size(); }

 private:
  std::vector<InferCall> calls_;
};

class TracedServiceTest : public testing::Test {
 protected:
  TracedServiceTest() {
    auto file = TraceFile::Create(path_, [](const std::string&) {});
    EXPECT_TRUE(file.has_value());
    file_ = *std::move(file);
    traced_ = std::make_unique<TracedService>(kept_, settings_, *file_, [this] { return now_; });
    model_->name = "m";
    model_->version = 3;
    EXPECT_TRUE(
        settings_.Set("", {{"trace_level", {"TIMESTAMPS"}}, {"trace_rate", {"1"}}}).has_value());
  }

  InferCall Call(std::string_view id = {}) {
    InferCall call;
    call.model = model_;
    call.id = id;
    call.received = At(1000);
    call.reply = [this](InferReply&& reply) { replies_.push_back(std::move(reply)); };
    return call;
  }
  static Trace::Instant At(std::int64_t ns) { return Trace::Instant(nanoseconds(ns)); }

  // What the file says: of the last trace, its first object and its times.
  nlohmann::json Objects() {
    file_->Flush();
    std::ifstream file(path_);
    return nlohmann::json::parse(file);
  }
  Stamps LastStamps() {
    Stamps stamps;
    const nlohmann::json objects = Objects();
    for (const auto& stamp : objects.back().at("timestamps")) {
      stamps.emplace_back(stamp.at("name"), stamp.at("ns"));
    }
    return stamps;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "t.json";
  Trace::Instant now_ = At(0);
  std::shared_ptr<ModelSpec> model_ = std::make_shared<ModelSpec>();
  KeptCalls kept_;
  TraceSettings settings_{path_};
  std::unique_ptr<TraceFile> file_;
  std::unique_ptr<TracedService> traced_;
  std::vector<InferReply> replies_;
};

TEST_F(TracedServiceTest, WritesWhenEachPartOfACallBegan) {
  now_ = At(3000);
  EXPECT_EQ(traced_->Infer(Call("call 7")), 1u);
  now_ = At(90'000);
  kept_.Answer({.served = {.outcome = Outcome::kLate,
                           .exit = "final",
                           .batch = 4,
                           .queue_us = 10,
                           .execution_us = 50}});
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_EQ(replies_[0].served.batch, 4);
  EXPECT_EQ(Objects().front(),
            nlohmann::json::parse(R"({"id":1,"model_name":"m","model_version":3,)"
                                  R"("request_id":"call 7","outcome":"late","batch":4,)"
                                  R"("exit":"final"})"));
  EXPECT_EQ(LastStamps(), (Stamps{{"REQUEST_START", 1000},
                                  {"QUEUE_START", 3000},
                                  {"COMPUTE_START", 11'000},
                                  {"COMPUTE_END", 61'000},
                                  {"REQUEST_END", 90'000}}));
}

// The service says whole microseconds, rounded down: 0.4 us after the arrival is 0.
TEST_F(TracedServiceTest, TimesAreInOrderThoughTheyAreRounded) {
  now_ = At(1300);
  traced_->Infer(Call());
  now_ = At(1900);
  kept_.Answer({.served = {.batch = 1, .queue_us = 0, .execution_us = 0}});
  EXPECT_EQ(LastStamps(), (Stamps{{"REQUEST_START", 1000},
                                  {"QUEUE_START", 1300},
                                  {"COMPUTE_START", 1300},
                                  {"COMPUTE_END", 1300},
                                  {"REQUEST_END", 1900}}));
}

TEST_F(TracedServiceTest, OnlyWhatIsKnownIsWritten) {
  const Stamps known{{"REQUEST_START", 1000}, {"QUEUE_START", 2000}, {"REQUEST_END", 5000}};
  now_ = At(2000);
  traced_->Infer(Call());
  now_ = At(5000);
  kept_.Answer(
      {.status = Fail(ErrorCode::kUnavailable, "shed"), .served = {.outcome = Outcome::kShed}});
  EXPECT_EQ(LastStamps(), known);
  EXPECT_FALSE(Objects().front().contains("request_id"));
  EXPECT_FALSE(Objects().front().contains("batch"));

  // A pipeline's times are sums over its steps, not instants.
  model_->platform = "ensemble";
  now_ = At(2000);
  traced_->Infer(Call());
  now_ = At(5000);
  kept_.Answer({.served = {.batch = 2, .queue_us = 1, .execution_us = 1}});
  EXPECT_EQ(LastStamps(), known);
}

TEST_F(TracedServiceTest, StepsOfOtherNodesAreNotTraced) {
  InferCall granted = Call();
  granted.granted = GrantedPart{.term = 1, .batch = 2, .exit = 0, .rows = 1};
  InferCall step = Call();
  step.step = StepName{"p", "s"};
  for (InferCall* const call : {&granted, &step}) {
    traced_->Infer(std::move(*call));
    kept_.Answer({});
  }
  EXPECT_EQ(replies_.size(), 2u);
  EXPECT_TRUE(Objects().empty());
}

TEST_F(TracedServiceTest, TracesWhatTheSettingsChoose) {
  ASSERT_TRUE(settings_.Set("m", {{"trace_rate", {"2"}}, {"trace_count", {"1"}}}).has_value());
  for (int i = 0; i < 6; ++i) traced_->Infer(Call());
  while (kept_.size() > 0) kept_.Answer({});
  EXPECT_EQ(replies_.size(), 6u);
  EXPECT_EQ(Objects().size(), 2u);  // two objects: one trace
}

TEST_F(TracedServiceTest, AModelIsReadyWhereItsServiceSaysSo) {
  EXPECT_EQ(traced_->ModelReady("m", -1).error().message, "no worker serves it");
}

TEST_F(TracedServiceTest, ALongNameOfACallIsCut) {
  const std::string id(1000, 'x');
  traced_->Infer(Call(id));
  kept_.Answer({});
  EXPECT_EQ(Objects().front().at("request_id"), std::string(256, 'x'));
}

}  // namespace
}  // namespace tactus
