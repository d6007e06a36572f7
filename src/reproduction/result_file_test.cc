// A command of hours that was killed goes on from its file: a row that is lost is run again, and
// one of another origin would be taken for ours.
#include "reproduction/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ResultFileTest : public ::testing::Test {
 protected:
  auto Found(const std::string& origin, bool fresh = false) {
    return ResultFile::Open(path_, origin, {"x", "y"}, fresh)->found();
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "results.csv";
};

TEST_F(ResultFileTest, GoesOnWhereItWas) {
  ASSERT_TRUE(ResultFile::Open(path_, "a", {"x", "y"}, false)->Append({{"1", "2"}, {"3", "4"}}));
  EXPECT_THAT(Found("a"), ElementsAre(ElementsAre("1", "2"), ElementsAre("3", "4")));
}

TEST_F(ResultFileTest, DropsALineThatWasCutOff) {
  ASSERT_TRUE(ResultFile::Open(path_, "a", {"x", "y"}, false)->Append({{"1", "2"}}));
  std::ofstream(path_, std::ios::app) << "3,";
  EXPECT_THAT(Found("a"), ElementsAre(ElementsAre("1", "2")));
}

TEST_F(ResultFileTest, BeginsAnewForAnotherOriginOrWhenTold) {
  ASSERT_TRUE(ResultFile::Open(path_, "a", {"x", "y"}, false)->Append({{"1", "2"}}));
  EXPECT_THAT(Found("b"), IsEmpty());
  ASSERT_TRUE(ResultFile::Open(path_, "a", {"x", "y"}, false)->Append({{"1", "2"}}));
  EXPECT_THAT(Found("a", true), IsEmpty());
}

}  // namespace
}  // namespace tactus
