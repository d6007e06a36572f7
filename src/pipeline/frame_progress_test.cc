// A stage that starts before all it waits for is answered works on what is not there.
#include "pipeline/frame_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr StageId kLeft{0};
constexpr StageId kRight{1};
constexpr StageId kJoin{2};

// left (2 requests) and right start with the frame, the join after both.
Pipeline TwoAndAJoin() {
  Pipeline pipeline;
  const std::vector<StageDeclaration> stages = {{"left"}, {"right"}, {"join", {"left", "right"}}};
  pipeline.graph = *PipelineGraph::Make(stages);
  pipeline.stages = {{.name = "left", .count = 2}, {.name = "right"}, {.name = "join"}};
  return pipeline;
}

TEST(FrameProgress, AJoinWaitsForEveryRequestOfEveryStage) {
  const Pipeline pipeline = TwoAndAJoin();
  FrameProgress frame;
  for (int again = 0; again < 2; ++again) {  // a second frame begins where the first did
    std::vector<StageId> ready;
    frame.Begin(pipeline, ready);
    EXPECT_THAT(ready, ElementsAre(kLeft, kRight));
    ready.clear();
    EXPECT_FALSE(frame.Answer(kLeft, ready));
    EXPECT_FALSE(frame.Answer(kRight, ready));
    EXPECT_THAT(ready, IsEmpty());
    EXPECT_FALSE(frame.Answer(kLeft, ready));
    EXPECT_THAT(ready, ElementsAre(kJoin));
    EXPECT_TRUE(frame.Answer(kJoin, ready));
    EXPECT_THAT(ready, ElementsAre(kJoin));
  }
}

TEST(FrameProgressDeathTest, AnAnswerToNothingIsAMistakeOfTheDriver) {
  const Pipeline pipeline = TwoAndAJoin();
  FrameProgress frame;
  std::vector<StageId> ready;
  frame.Begin(pipeline, ready);
  EXPECT_DEATH(frame.Answer(kJoin, ready), "has not sent");
  frame.Answer(kRight, ready);
  EXPECT_DEATH(frame.Answer(kRight, ready), "has not sent");
}

}  // namespace
}  // namespace tactus
