// A graph that is not what was declared would run stages too early, or never.
#include "pipeline/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StageId Stage(StageId::rep place) { return StageId{place}; }

TEST(PipelineGraph, FansOutAndJoins) {
  // Declared against the order in which they run.
  const std::vector<StageDeclaration> stages = {
      {"join", {"left", "right"}}, {"left", {"first"}}, {"right", {"first"}}, {"first"}};
  const auto graph = PipelineGraph::Make(stages);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(graph->order(), ElementsAre(Stage(3), Stage(1), Stage(2), Stage(0)));
  EXPECT_THAT(graph->before(Stage(0)), ElementsAre(Stage(1), Stage(2)));
  EXPECT_THAT(graph->next(Stage(0)), IsEmpty());
  EXPECT_THAT(graph->before(Stage(3)), IsEmpty());
  EXPECT_THAT(graph->next(Stage(3)), ElementsAre(Stage(1), Stage(2)));
}

TEST(PipelineGraph, SaysWhatIsWrongAndWhatWouldBeRight) {
  const struct {
    std::vector<StageDeclaration> stages;
    const char* message;
  } cases[] = {
      {{}, "it has no stages; give it at least one"},
      {std::vector<StageDeclaration>(65, {"a"}), "it has 65 stages, 64 at most"},
      {{{""}}, "a stage has no name; give it one"},
      {{{"a"}, {"a"}}, "stage 'a' is there twice; give one of them another name"},
      {{{"a"}, {"b", {"c"}}}, "stage 'b' is after 'c': there is no stage 'c'; there are: a, b"},
      {{{"a"}, {"b", {"a", "a"}}}, "stage 'b' is after 'a' twice; once is enough"},
      {{{"a", {"a"}}}, "in a circle: 'a' is after 'a'; leave out one of these"},
      {{{"a"}, {"b", {"a", "d"}}, {"c", {"b"}}, {"d", {"c"}}, {"e", {"d"}}},
       "in a circle: 'b' is after 'd' is after 'c' is after 'b'; leave out one of these"},
  };
  for (const auto& c : cases) {
    const auto graph = PipelineGraph::Make(c.stages);
    ASSERT_FALSE(graph) << c.message;
    EXPECT_THAT(graph.error().message, HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace tactus
