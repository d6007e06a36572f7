// A stage that starts before all it waits for is answered works on what is not there.
#include "pipeline/item_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/made_pipeline_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Pipeline Make(std::vector<StageDeclaration> stages) {
  return PipelineOf({.name = "p", .slo = Millis(100), .stages = std::move(stages)}, Millis(1));
}

// left (2 runs) and right start with the request, the join after both.
Pipeline TwoAndAJoin() {
  return Make({{.name = "left", .count = 2}, {.name = "right"}, {"join", {"left", "right"}}});
}

// detect has rows; each is cropped, then read in two ways and voted on; the join has all of them.
Pipeline Read() {
  return Make({{.name = "detect", .demultiply = true, .demultiply_most = 3},
               {.name = "crop", .after = {"detect"}},
               {.name = "read", .after = {"crop"}, .count = 2},
               {.name = "vote", .after = {"read", "detect"}},
               {.name = "join", .after = {"vote", "detect"}, .gather = "detect"}});
}

StageRun RunOf(StageId::rep stage, std::uint32_t item = 0) { return {StageId{stage}, item}; }

// Plays the driver.
struct Driver {
  explicit Driver(const Pipeline& pipeline) { progress.Begin(pipeline, ready); }

  std::vector<StageRun> Answer(StageRun run, int rows = 1) {
    ready.clear();
    progress.Answer(run, rows, ready);
    return ready;
  }
  std::vector<StageRun> Lose(StageRun run) {
    ready.clear();
    started.clear();
    progress.Lose(run, ready, started);
    return ready;
  }

  ItemProgress progress;
  std::vector<StageRun> ready;
  std::vector<StageRun> started;
};

TEST(ItemProgress, AJoinWaitsForEveryRunOfEveryStage) {
  const Pipeline pipeline = TwoAndAJoin();
  Driver driver(pipeline);
  for (int again = 0; again < 2; ++again) {  // a second request begins where the first did
    EXPECT_THAT(driver.ready, ElementsAre(RunOf(0, 0), RunOf(0, 1), RunOf(1)));
    EXPECT_THAT(driver.Answer(RunOf(0, 1)), IsEmpty());
    EXPECT_THAT(driver.Answer(RunOf(1)), IsEmpty());
    EXPECT_THAT(driver.Answer(RunOf(0, 0)), ElementsAre(RunOf(2)));
    EXPECT_FALSE(driver.progress.complete());
    EXPECT_THAT(driver.Answer(RunOf(2)), IsEmpty());
    EXPECT_TRUE(driver.progress.complete());
    driver.ready.clear();
    driver.progress.Begin(pipeline, driver.ready);
  }
}

TEST(ItemProgress, EachRowGoesItsOwnWayUntilAllAreGathered) {
  const Pipeline pipeline = Read();
  Driver driver(pipeline);
  EXPECT_THAT(driver.Answer(RunOf(0), 2), ElementsAre(RunOf(1, 0), RunOf(1, 1)));
  EXPECT_THAT(driver.Answer(RunOf(1, 1)), ElementsAre(RunOf(2, 2), RunOf(2, 3)));
  EXPECT_THAT(driver.Answer(RunOf(2, 3)), IsEmpty());
  EXPECT_THAT(driver.Answer(RunOf(2, 2)), ElementsAre(RunOf(3, 1)));
  EXPECT_THAT(driver.Answer(RunOf(3, 1)), IsEmpty());
  EXPECT_THAT(driver.Answer(RunOf(1, 0)), ElementsAre(RunOf(2, 0), RunOf(2, 1)));
  EXPECT_THAT(driver.Answer(RunOf(2, 0)), IsEmpty());
  EXPECT_THAT(driver.Answer(RunOf(2, 1)), ElementsAre(RunOf(3, 0)));
  EXPECT_THAT(driver.Answer(RunOf(3, 0)), ElementsAre(RunOf(4)));
  driver.Answer(RunOf(4));
  EXPECT_TRUE(driver.progress.complete());
  EXPECT_EQ(driver.progress.items(), 2);
}

// Whoever asks for the votes alone pays for no join.
TEST(ItemProgress, StagesThatNobodyWantsNeverStart) {
  const Pipeline pipeline = Read();
  const StageMask wanted = pipeline.graph.WithAllBefore(StageMask{1} << 2);  // read
  EXPECT_EQ(wanted, 0b00111u);
  for (const int rows : {2, 0}) {
    Driver driver(pipeline);
    driver.ready.clear();
    driver.progress.Begin(pipeline, driver.ready, wanted);
    EXPECT_THAT(driver.ready, ElementsAre(RunOf(0)));
    driver.Answer(RunOf(0), rows);
    for (std::uint32_t row = 0; row < static_cast<std::uint32_t>(rows); ++row) {
      EXPECT_FALSE(driver.progress.complete());
      EXPECT_THAT(driver.Answer(RunOf(1, row)),
                  ElementsAre(RunOf(2, 2 * row), RunOf(2, 2 * row + 1)));
      EXPECT_THAT(driver.Answer(RunOf(2, 2 * row)), IsEmpty());
      EXPECT_THAT(driver.Answer(RunOf(2, 2 * row + 1)), IsEmpty());
    }
    EXPECT_TRUE(driver.progress.complete());
  }
}

// Whoever passes answers on must find the row of each run, and the runs of all rows but lost ones.
TEST(ItemProgress, KnowsWhichRowARunWorksOnAndWhoHasAnswered) {
  const Pipeline pipeline = Read();
  Driver driver(pipeline);
  driver.Answer(RunOf(0), 3);
  driver.Answer(RunOf(1, 2));
  driver.Answer(RunOf(1, 0));
  const PipelineLevels& levels = pipeline.levels;
  const LevelId rows = levels.of(StageId{1});
  EXPECT_EQ(driver.progress.RowOf(rows, 2), 2u);
  EXPECT_EQ(driver.progress.Around(rows, 2, 0), 0u);
  std::vector<StageRun> answered;
  driver.progress.AnsweredWithin(StageId{1}, 0, 0, answered);
  EXPECT_THAT(answered, ElementsAre(RunOf(1, 0), RunOf(1, 2)));
  driver.Lose(RunOf(3, 0));
  answered.clear();
  driver.progress.AnsweredWithin(StageId{1}, 0, 0, answered);
  EXPECT_THAT(answered, ElementsAre(RunOf(1, 2)));
}

TEST(ItemProgress, NoRowsLeaveTheJoinWithNothingAndTooManyAreCut) {
  const Pipeline pipeline = Read();
  Driver none(pipeline);
  EXPECT_THAT(none.Answer(RunOf(0), 0), ElementsAre(RunOf(4)));
  none.Answer(RunOf(4));
  EXPECT_TRUE(none.progress.complete());
  Driver many(pipeline);
  EXPECT_THAT(many.Answer(RunOf(0), 10'000), ElementsAre(RunOf(1, 0), RunOf(1, 1), RunOf(1, 2)));
  EXPECT_EQ(many.progress.rows_cut(), 9'997);
}

TEST(ItemProgress, ARowThatIsLostIsNotWaitedFor) {
  const Pipeline pipeline = Read();
  Driver driver(pipeline);
  driver.Answer(RunOf(0), 2);
  driver.Answer(RunOf(1, 0));
  driver.progress.SetStarted(RunOf(2, 0), true);
  driver.progress.SetStarted(RunOf(2, 1), true);
  // One of the two readings fails: the row is given up, and the other reading is not needed.
  driver.progress.SetStarted(RunOf(2, 0), false);
  EXPECT_THAT(driver.Lose(RunOf(2, 0)), IsEmpty());
  EXPECT_THAT(driver.started, ElementsAre(RunOf(2, 1)));
  EXPECT_FALSE(driver.progress.IsWanted(RunOf(2, 1)));
  EXPECT_THAT(driver.Lose(RunOf(1, 1)), ElementsAre(RunOf(4)));
  EXPECT_EQ(driver.progress.items_lost(), 2);
  driver.Answer(RunOf(4));
  EXPECT_TRUE(driver.progress.complete());
}

TEST(ItemProgress, WhatALostRowHadNotOpenedYetIsNotWaitedForEither) {
  const Pipeline pipeline = Make({{.name = "detect", .demultiply = true},
                                  {.name = "words", .after = {"detect"}, .demultiply = true},
                                  {.name = "read", .after = {"words"}},
                                  {.name = "join", .after = {"read"}, .gather = "detect"}});
  Driver driver(pipeline);
  driver.Answer(RunOf(0), 2);
  EXPECT_THAT(driver.Answer(RunOf(1, 0), 1), ElementsAre(RunOf(2, 0)));
  EXPECT_THAT(driver.Lose(RunOf(1, 1)), IsEmpty());
  EXPECT_THAT(driver.Answer(RunOf(2, 0)), ElementsAre(RunOf(3)));
}

TEST(ItemProgressDeathTest, AnAnswerToNothingIsAMistakeOfTheDriver) {
  const Pipeline pipeline = TwoAndAJoin();
  Driver driver(pipeline);
  EXPECT_DEATH(driver.Answer(RunOf(2)), "not under way");
  driver.Answer(RunOf(1));
  EXPECT_DEATH(driver.Answer(RunOf(1)), "not under way");
  EXPECT_DEATH(driver.Lose(RunOf(0)), "dropped, not lost");
}

}  // namespace
}  // namespace tactus
