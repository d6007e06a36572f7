// A stage on the wrong level would run too often or too seldom, or be given another row's answer.
#include "pipeline/levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr LevelId kRoot = PipelineLevels::kRoot;

Expected<PipelineLevels> Levels(const std::vector<StageDeclaration>& stages) {
  const auto graph = PipelineGraph::Make(stages);
  EXPECT_TRUE(graph) << graph.error().message;
  return PipelineLevels::Make(*graph, stages);
}

TEST(PipelineLevels, StagesRunOncePerRowUntilTheyAreGathered) {
  const auto levels = Levels({{.name = "detect", .demultiply = true, .demultiply_most = 8},
                              {.name = "crop", .after = {"detect"}},
                              {.name = "read", .after = {"crop"}, .demultiply = true},
                              {.name = "letter", .after = {"read", "detect"}},
                              {.name = "word", .after = {"letter"}, .gather = "read"},
                              {.name = "join", .after = {"word"}, .gather = "detect"}});
  ASSERT_TRUE(levels) << levels.error().message;
  const LevelId boxes = levels->opened_by(StageId{0});
  const LevelId letters = levels->opened_by(StageId{2});
  EXPECT_EQ(levels->of(StageId{0}), kRoot);
  EXPECT_EQ(levels->of(StageId{1}), boxes);
  EXPECT_EQ(levels->of(StageId{3}), letters);
  EXPECT_EQ(levels->of(StageId{4}), boxes);
  EXPECT_EQ(levels->of(StageId{5}), kRoot);
  EXPECT_THAT(levels->path(letters), ElementsAre(kRoot, boxes, letters));
  EXPECT_THAT(levels->stages(boxes), ElementsAre(StageId{1}, StageId{2}, StageId{4}));
  EXPECT_THAT(levels->beneath(letters), ElementsAre(StageId{3}));
  EXPECT_EQ(levels->Meeting(StageId{3}, StageId{4}), boxes);
  EXPECT_EQ(levels->most(boxes), 8);
  EXPECT_EQ(levels->fixed(boxes), 0);
  EXPECT_TRUE(levels->IsOfRows(StageId{3}));
  EXPECT_FALSE(levels->IsOfRows(StageId{5}));
}

TEST(PipelineLevels, ACountIsGatheredByWhoeverIsAfterIt) {
  const auto levels =
      Levels({{.name = "a", .count = 3}, {.name = "b", .after = {"a"}, .count = 2}});
  ASSERT_TRUE(levels) << levels.error().message;
  EXPECT_EQ(levels->Meeting(StageId{0}, StageId{1}), kRoot);
  EXPECT_EQ(levels->fixed(levels->of(StageId{0})), 3);
  EXPECT_EQ(levels->fixed(levels->of(StageId{1})), 2);
  EXPECT_THAT(levels->stages(kRoot), IsEmpty());
  EXPECT_FALSE(levels->IsOfRows(StageId{0}));
}

TEST(PipelineLevels, SaysWhatCannotBeJoined) {
  const struct {
    std::vector<StageDeclaration> stages;
    const char* message;
  } cases[] = {
      {{{.name = "cars", .demultiply = true},
        {.name = "faces", .demultiply = true},
        {.name = "join", .after = {"cars", "faces"}}},
       "stage 'join' is after 'cars' and 'faces', which run once per row of two stages that have "
       "nothing to do with each other; gather one of them first"},
      {{{.name = "a", .demultiply = true}, {.name = "b", .after = {"a"}, .gather = "c"}},
       "stage 'b' gathers 'c': there is no stage 'c'; there are: a, b"},
      {{{.name = "a"}, {.name = "b", .after = {"a"}, .gather = "a"}},
       "stage 'b' gathers 'a', which is not a stage with rows before it"},
      {{{.name = "a", .demultiply = true}, {.name = "b", .gather = "a"}},
       "stage 'b' gathers the rows of 'a' but is after no stage that runs once for each"},
      {{{.name = "a", .count = 2, .demultiply = true}},
       "stage 'a' has a count of 2 and rows; leave out one of them"},
      {{{.name = "a", .demultiply = true, .demultiply_most = 1000},
        {.name = "b", .after = {"a"}, .count = 100}},
       "stage 'b': it may come to 100000 items in one request, 65536 at most"},
      {{{.name = "a", .noun = "step"},
        {.name = "b", .after = {"a"}, .gather = "a", .noun = "step"}},
       "step 'b' gathers 'a', which is not a step with rows before it"},
  };
  for (const auto& c : cases) {
    const auto levels = Levels(c.stages);
    ASSERT_FALSE(levels) << c.message;
    EXPECT_THAT(levels.error().message, HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace tactus
