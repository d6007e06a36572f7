// Without these a loader would take what it cannot read for a file with nothing in it, or a run
// that was cut off would leave half a profile.
#include "base/whole_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::EndsWith;

class WholeFileTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
};

TEST_F(WholeFileTest, IsReadAsItWasWritten) {
  const std::string text("one\r\n\0two\n", 10);
  const auto path = folder_ / "a";
  ASSERT_TRUE(WriteWhole("an older, longer text", path, "text"));
  ASSERT_TRUE(WriteWhole(text, path, "text"));
  const auto read = ReadWhole(path, "text");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, text);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.new"));
}

TEST_F(WholeFileTest, WhatCannotBeReadIsNamedWithTheRemedy) {
  const auto missing = ReadWhole(folder_ / "x", "profile", "; make one");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message,
              EndsWith("/x: cannot read this profile (No such file or directory); make one"));
  const auto folder = ReadWhole(folder_.path(), "profile", "; make one");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(folder.error().message, EndsWith(": is a directory, not a profile; make one"));
  std::ofstream(folder_ / "empty").close();
  const auto empty = ReadWhole(folder_ / "empty", "plan");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(empty.error().message, EndsWith("/empty: this plan is empty"));
}

TEST_F(WholeFileTest, WhatCannotBeWrittenLeavesWhatWasThere) {
  const auto written = WriteWhole("x", folder_ / "no" / "such", "plan");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, EndsWith("cannot write this plan; is the folder there, and "
                                                "writable?"));
  std::filesystem::create_directory(folder_ / "taken");
  std::ofstream(folder_ / "taken" / "x").close();
  EXPECT_FALSE(WriteWhole("x", folder_ / "taken", "plan"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "taken" / "x"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "taken.new"));
}

}  // namespace
}  // namespace tactus
