// Frames in virtual time, as transcripts: a stage that starts at the wrong instant, a frame that
// goes on after it was dropped or that is counted twice would make every figure of a pipeline
// wrong.
#include "sim/frames.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

// detect -> cars (2 requests), detect -> faces; 10, 30 and 30 ms.
Pipeline Traffic() {
  Pipeline pipeline;
  pipeline.name = "traffic";
  pipeline.slo = Millis(30);
  const std::vector<StageDeclaration> stages = {
      {"detect"}, {"cars", {"detect"}}, {"faces", {"detect"}}};
  pipeline.graph = *PipelineGraph::Make(stages);
  pipeline.stages = {
      {.name = "detect", .model = ModelId{0}, .deadline = Millis(10), .budget = Millis(10)},
      {.name = "cars", .model = ModelId{1}, .count = 2, .deadline = Millis(30)},
      {.name = "faces", .model = ModelId{2}, .deadline = Millis(30)}};
  return pipeline;
}

// Writes down what frames do, and plays the dispatcher, which refuses what it is told to.
class Script final : public FrameWorld {
 public:
  Script() : heap_(16), frames_({Traffic()}, *this, heap_) {}

  RequestId NextRequest() override { return RequestId{sent_.size()}; }
  void Send(ModelId, const Request& request) override {
    static constexpr const char* kStages[] = {"detect", "cars", "faces"};
    const std::string stage = kStages[(request.payload - 1) % PipelineGraph::kMostStages];
    sent_.push_back(request);
    Write("{} {} {} until {}", At(request.arrival), request.id.value(), stage,
          At(request.deadline));
    if (request.id == refused_) frames_.Refused(request, request.arrival);
  }
  void Cancel(ModelId, RequestId id) override {
    Write("cancel {}", id.value());
    frames_.Refused(sent_[id.value()], kStart);
  }

  void Arrive(int ms) { frames_.Arrive(0, kStart + Millis(ms)); }
  void Answer(std::uint64_t id, int ms) { frames_.Answered(sent_[id], kStart + Millis(ms)); }
  void Refuse(std::uint64_t id, int ms) { frames_.Refused(sent_[id], kStart + Millis(ms)); }
  // When it is sent.
  void RefuseAtOnce(std::uint64_t id) { refused_ = RequestId{id}; }
  bool Settle() { return frames_.Settle(); }
  // The stages that may start, at their instants.
  void StartStages() {
    while (!heap_.empty()) {
      const Event event = heap_.top();
      heap_.Pop();
      EXPECT_EQ(event.kind, EventClass::kStage);
      frames_.Start(event.subject, event.at);
    }
  }
  std::string End() {
    static constexpr const char* kEnds[] = {"on time", "late", "dropped"};
    for (const FrameRecord& frame : std::move(frames_).Take()) {
      Write("frame of {} ended {} at {}", At(frame.arrival), kEnds[int(frame.outcome)],
            At(frame.ended));
      if (frame.outcome == FrameOutcome::kDropped)
        transcript_ += fmt::format(" by {}", frame.stage);
    }
    return transcript_;
  }

 private:
  static std::string At(TimePoint at) { return fmt::format("{:g}", ToMillis(at - kStart)); }
  template <class... Parts>
  void Write(fmt::format_string<Parts...> format, Parts&&... parts) {
    transcript_ += "\n" + fmt::format(format, std::forward<Parts>(parts)...);
  }

  EventHeap heap_;
  std::vector<Request> sent_;
  RequestId refused_;
  std::string transcript_;
  Frames frames_;
};

TEST(Frames, StagesStartWhenWhatTheyWaitForIsAnswered) {
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
frame of 0 ended on time at 30
frame of 1 ended late at 33)");
}

TEST(Frames, AStageThatIsLateEndsTheFrameBeforeTheNextOne) {
  Script script;
  script.Arrive(0);
  script.Answer(0, 11);
  script.StartStages();
  EXPECT_FALSE(script.Settle());
  EXPECT_EQ(script.End(), R"(
0 0 detect until 10
frame of 0 ended dropped at 11 by 0)");
}

TEST(Frames, WhatIsLeftOfADroppedFrameIsCancelled) {
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
frame of 0 ended dropped at 20 by 1)");
}

TEST(Frames, NothingMoreIsSentOfAFrameThatIsRefusedAtOnce) {
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
frame of 0 ended dropped at 5 by 1
frame of 6 ended dropped at 7 by 0)");
}

}  // namespace
}  // namespace tactus
