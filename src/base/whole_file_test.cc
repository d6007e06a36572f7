// Without these a loader would take what it cannot read for a file with nothing in it, or a run
// that was cut off would leave half a profile.
#include "base/whole_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_files_test.h"
#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

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

// Without this a pipe in place of a file held the thread that opened it, and the stop that joins
// it.
TEST_F(WholeFileTest, APipeThatNobodyWritesIsRefusedAndNotWaitedFor) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto whole = ReadWhole(pipe, "profile", "; make one");
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(whole.error().message,
              EndsWith("is no regular file but a pipe, a socket or a device, not a profile; make "
                       "one"));
  for (const std::filesystem::path& other : {pipe, std::filesystem::path("/dev/zero")}) {
    const auto regular = ReadRegular(other, 10);
    ASSERT_FALSE(regular);
    EXPECT_THAT(regular.error().message, EndsWith("but a pipe, a socket or a device"));
  }
}

TEST_F(WholeFileTest, APipeThatWasGivenOpenIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    EXPECT_EQ(write(ends[1], "one ", 4), 4);
    std::this_thread::yield();
    EXPECT_EQ(write(ends[1], "two", 3), 3);
    close(ends[1]);
  });
  const auto read = ReadWhole("/dev/fd/" + std::to_string(ends[0]), "scenario");
  writer.join();
  close(ends[0]);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, "one two");
}

TEST_F(WholeFileTest, ARegularFileIsReadUpToItsLimit) {
  ASSERT_TRUE(WriteWhole("12345", folder_ / "a", "text"));
  EXPECT_EQ(ReadRegular(folder_ / "a", 5), "12345");
  const auto larger = ReadRegular(folder_ / "a", 4);
  ASSERT_FALSE(larger);
  EXPECT_THAT(larger.error().message, EndsWith("/a: larger than 4 bytes: the wrong file?"));
  EXPECT_EQ(ReadRegular(folder_ / "none", 4).error().code, ErrorCode::kNotFound);
  std::ofstream(folder_ / "empty").close();
  EXPECT_EQ(ReadRegular(folder_ / "empty", 4), "");
}

TEST_F(WholeFileTest, AFileThatMayNotGrowIsToldFromAFolderThatIsMissing) {
  const auto path = folder_ / "a";
  ASSERT_TRUE(WriteWhole("short", path, "plan"));
  {
    const SmallFiles small(100);
    const auto written = WriteWhole(std::string(1000, 'x'), path, "plan");
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message, HasSubstr("larger than this process may write (ulimit"));
  }
  EXPECT_EQ(ReadWhole(path, "plan"), "short");
}

// A program that runs as root would else replace /dev/null by a file.
TEST_F(WholeFileTest, WhatIsNoFileStaysWhatItIs) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto written = WriteWhole("x", pipe, "plan");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("is no regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  ASSERT_EQ(mkfifo((folder_ / "a.new").c_str(), 0600), 0);  // which nobody reads
  ASSERT_TRUE(WriteWhole("x", folder_ / "a", "key", 0600));
  EXPECT_EQ(std::filesystem::status(folder_ / "a").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_directory(folder_ / "other");
  std::filesystem::create_symlink("other/target", folder_ / "link");
  ASSERT_TRUE(WriteWhole("x", folder_ / "link", "plan"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(ReadWhole(folder_ / "other" / "target", "plan"), "x");
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
