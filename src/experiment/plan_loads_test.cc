#include "experiment/plan_loads.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using testing::HasSubstr;

// Otherwise a table of another scenario would be planned for, column by column.
TEST(PlanLoadsTest, AColumnForEachModelAndARateInEachRow) {
  const TemporaryFolder folder;
  const std::string path = (folder / "loads.csv").string();
  PlanInput input;
  input.models = {{.name = "a"}, {.name = "b"}};
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return ReadLoads(path, input);
  };
  const auto loads = read("b,a\n1,2\n0.5,0\n");
  ASSERT_TRUE(loads) << loads.error().message;
  ASSERT_EQ(loads->size(), 2u);
  EXPECT_EQ((*loads)[0].models[0].rate_rps, 2);
  EXPECT_EQ((*loads)[0].models[1].rate_rps, 1);
  EXPECT_EQ((*loads)[1].models[1].rate_rps, 0.5);
  EXPECT_THAT(read("a\n1\n").error().message, HasSubstr("has no column 'b'"));
  EXPECT_THAT(read("a,b,c\n1,2,3\n").error().message, HasSubstr("has 3 columns for 2 models"));
  EXPECT_THAT(read("a,b\n1,2\n1,-2\n").error().message, HasSubstr(":3: '-2' is no rate"));
  EXPECT_THAT(read("a,b\n").error().message, HasSubstr("no row says a load"));
}

}  // namespace
}  // namespace tactus
