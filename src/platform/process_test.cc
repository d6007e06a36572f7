// Without these an agent could take a process of the same number for its worker.
#include "platform/process.h"

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"

namespace tactus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Process, IsKnownByMoreThanItsNumberAndStops) {
  const TemporaryFolder folder;
  const auto started =
      StartProcess({"/bin/sh", "-c", "echo begun; exec sleep 600"}, folder / "log");
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_TRUE(Runs(*started));
  EXPECT_FALSE(Runs({started->pid, started->started + 1}));
  EXPECT_FALSE(EndsWithin(*started, milliseconds(10)));
  StopProcess(*started, seconds(30));
  EXPECT_FALSE(Runs(*started));
  EXPECT_EQ(ReadWhole(folder / "log", "log"), "begun\n");
}

TEST(Process, WhatCannotStartSaysWhy) {
  const TemporaryFolder folder;
  const auto started = StartProcess({"/nowhere/at/all"}, folder / "log");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "/nowhere/at/all: No such file or directory");
}

TEST(FolderLock, OneAtATimeHoldsAFolder) {
  const TemporaryFolder folder;
  {
    const auto first = FolderLock::Take(folder / "state");
    ASSERT_TRUE(first);
    EXPECT_EQ(FolderLock::Take(folder / "state").error().code, ErrorCode::kAlreadyExists);
  }
  EXPECT_TRUE(FolderLock::Take(folder / "state"));
}

}  // namespace
}  // namespace tactus
