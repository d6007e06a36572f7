// Without these a request with a priority of its own could be taken for one of another level.
#include "core/priority_levels.h"

#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(PriorityLevels, CountsThoseThatServedModelsHave) {
  const std::vector<Model> models = {
      {.priority = 200}, {.priority = 3}, {.priority = 200}, {.priority = 50, .loaded = false}};
  PriorityLevels levels(models);
  EXPECT_EQ(levels.LevelOf(3), 0);
  EXPECT_EQ(levels.LevelOf(200), 1);
  levels.Prepare(std::vector<Model>{{.priority = 1}, {.priority = 50}, {.priority = 200}});
  EXPECT_EQ(levels.LevelOf(200), 2) << "anew, not beside the others";
}

// A request's own.
TEST(PriorityLevels, APriorityThatNoModelHasGoesWithTheNextLowerOne) {
  const std::vector<Model> models = {{.priority = 3}, {.priority = 200}};
  const PriorityLevels levels(models);
  EXPECT_EQ(levels.LevelOf(1), 0);
  EXPECT_EQ(levels.LevelOf(4), 1);
  EXPECT_EQ(levels.LevelOf(201), 2) << "one below all of them";
  EXPECT_EQ(levels.LevelOf(1'000'000), 2);
}

}  // namespace
}  // namespace tactus
