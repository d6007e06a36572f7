// Without these an agent could take a process of the same number for its worker.
#include "platform/process.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <sys/resource.h>

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

// Else a controller of a thousand agents would take no more of them where a shell gives 1,024.
TEST(Process, MayHaveAsManyDescriptorsAsTheSystemAllows) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{std::min<rlim_t>(256, before.rlim_max), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(RaiseDescriptorLimit(), before.rlim_max);
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
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
