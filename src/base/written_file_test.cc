#include "base/written_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/small_files_test.h"
#include "base/temporary_folder_test.h"
#include "base/whole_file.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

// A file that is cut short without a word is taken for the whole.
TEST(WriteFileText, SaysWhyItCannot) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileText("text", folder / "a", "report"));
  EXPECT_EQ(ReadWhole(folder / "a", "report").value(), "text");
  ASSERT_TRUE(WriteFileText("", folder / "a", "report"));
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), 0u);
  const auto none = WriteFileText("text", folder / "no" / "a", "report");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no/a: cannot write the report: No such file"));
  const auto full = WriteFileText("text", "/dev/full", "plan");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message,
            "/dev/full: cannot write the plan: No space left on device; make room there");
  const SmallFiles small(4096);
  const auto long_one = WriteFileText(std::string(100'000, 'x'), folder / "b", "report");
  ASSERT_FALSE(long_one);
  EXPECT_THAT(long_one.error().message, HasSubstr("(ulimit -f)"));
}

}  // namespace
}  // namespace tactus
