// Pipeline requests in virtual time, as transcripts: a stage that starts at the wrong instant, a
// request that goes on after it was dropped or that is counted twice would make every figure of a
// pipeline wrong.
#include "sim/world/pipeline_requests.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/made_pipeline_test.h"

namespace tactus {
namespace {

// detect -> cars (2 runs), detect -> faces; 10, 30 and 30 ms.
Pipeline Traffic() {
  return PipelineOf(
      {.name = "traffic",
       .slo = Millis(30),
       .stages = {{.name = "detect", .budget = Millis(10)},
                  {.name = "cars", .after = {"detect"}, .count = 2, .budget = Millis(20)},
                  {.name = "faces", .after = {"detect"}, .budget = Millis(20)}}},
      Millis(1));
}

RowDraw NoRows() {
  Scenario scenario;
  scenario.pipelines = {{.name = "traffic", .stages = {{"detect"}, {"cars"}, {"faces"}}}};
  return RowDraw(scenario);
}

// Writes down what is sent, and plays the dispatcher, which refuses what it is told to.
class Script final : public PipelineWorld {
 public:
  Script() : heap_(16), requests_({Traffic()}, NoRows(), *this, heap_) {}

  RequestId NextRequest() override { return RequestId{sent_.size()}; }
  void Send(ModelId model, const Request& request) override {
    static constexpr const char* kStages[] = {"detect", "cars", "faces"};
    const std::string stage = kStages[model.value()];
    sent_.push_back(request);
    Write("{} {} {} until {}", At(request.arrival), request.id.value(), stage,
          At(request.deadline));
    if (request.id == refused_) Refuse(request, request.arrival);
  }
  void Cancel(ModelId, RequestId id) override {
    Write("cancel {}", id.value());
    requests_.Refused(sent_[id.value()], DropReason::kCancelled, kStart);
  }
  TimePoint PipelineEnded(std::uint32_t, std::uint32_t, bool, TimePoint at) override { return at; }

  void Arrive(int ms) {
    const TimePoint at = kStart + Millis(ms);
    requests_.Arrive(0, at, at + Millis(30), at);
  }
  void Answer(std::uint64_t id, int ms) { requests_.Answered(sent_[id], kStart + Millis(ms)); }
  void Refuse(std::uint64_t id, int ms) { Refuse(sent_[id], kStart + Millis(ms)); }
  // When it is sent.
  void RefuseAtOnce(std::uint64_t id) { refused_ = RequestId{id}; }
  bool Settle() { return requests_.Settle(kStart); }
  // The stages that may start, at their instants.
  void StartStages() {
    while (!heap_.empty()) {
      const Event event = heap_.top();
      heap_.Pop();
      EXPECT_EQ(event.kind, EventClass::kStage);
      requests_.Start(event.subject, event.at);
    }
  }
  std::string End() {
    static constexpr const char* kEnds[] = {"on time", "late", "dropped"};
    for (const PipelineRecord& record : std::move(requests_).Take(kStart)) {
      Write("request of {} ended {} at {}", At(record.arrival), kEnds[int(record.outcome)],
            At(record.ended));
      if (record.outcome == PipelineOutcome::kDropped)
        transcript_ += fmt::format(" by {}", record.stage);
    }
    return transcript_;
  }

 private:
  void Refuse(const Request& request, TimePoint now) {
    requests_.Refused(request, DropReason::kExpired, now);
  }
  static std::string At(TimePoint at) { return fmt::format("{:g}", ToMillis(at - kStart)); }
  template <class... Parts>
  void Write(fmt::format_string<Parts...> format, Parts&&... parts) {
    transcript_ += "\n" + fmt::format(format, std::forward<Parts>(parts)...);
  }

  EventHeap heap_;
  std::vector<Request> sent_;
  RequestId refused_;
  std::string transcript_;
  PipelineRequests requests_;
};

TEST(PipelineRequests, StagesStartWhenWhatTheyWaitForIsAnswered) {
  Script script;
  script.Arrive(0);
  script.Arrive(1);
  script.Answer(0, 7);
  script.StartStages();
  script.Answer(2, 20);  // cars
  script.Answer(4, 21);  // faces
  script.Answer(3, 30);  // cars, at the deadline
  script.Answer(1, 11);
  script.StartStages();
  script.Answer(5, 20);
  script.Answer(6, 32);  // late
  script.Answer(7, 33);  // which the others still wait for
  EXPECT_FALSE(script.Settle());
  EXPECT_EQ(script.End(), R"(
0 0 detect until 10
1 1 detect until 11
7 2 cars until 30
7 3 cars until 30
7 4 faces until 30
11 5 cars until 31
11 6 cars until 31
11 7 faces until 31
request of 0 ended on time at 30
request of 1 ended late at 33)");
}

TEST(PipelineRequests, AStageThatIsLateEndsTheRequestBeforeTheNextOne) {
  Script script;
  script.Arrive(0);
  script.Answer(0, 11);
  script.StartStages();
  EXPECT_FALSE(script.Settle());
  EXPECT_EQ(script.End(), R"(
0 0 detect until 10
request of 0 ended dropped at 11 by 0)");
}

TEST(PipelineRequests, WhatIsLeftOfADroppedRequestIsCancelled) {
  Script script;
  script.Arrive(0);
  script.Answer(0, 5);
  script.StartStages();
  script.Refuse(2, 20);
  script.Answer(3, 20);  // of the same instant: no longer of interest
  EXPECT_TRUE(script.Settle());
  EXPECT_FALSE(script.Settle());
  EXPECT_EQ(script.End(), R"(
0 0 detect until 10
5 1 cars until 30
5 2 cars until 30
5 3 faces until 30
cancel 1
request of 0 ended dropped at 20 by 1)");
}

TEST(PipelineRequests, NothingMoreIsSentOfARequestThatIsRefusedAtOnce) {
  Script script;
  script.RefuseAtOnce(1);
  script.Arrive(0);
  script.Answer(0, 5);
  script.StartStages();  // the first of cars is refused: no second one, and no face is sent
  EXPECT_FALSE(script.Settle());
  script.Arrive(6);  // takes the place of the first
  script.Refuse(2, 7);
  EXPECT_FALSE(script.Settle());
  EXPECT_EQ(script.End(), R"(
0 0 detect until 10
5 1 cars until 30
6 2 detect until 16
request of 0 ended dropped at 5 by 1
request of 6 ended dropped at 7 by 0)");
}

}  // namespace
}  // namespace tactus
