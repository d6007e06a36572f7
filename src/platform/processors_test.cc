// A server that believes in processors that it may not use has lanes that wait for each other.
#include "platform/processors.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

class FakeRoot {
 public:
  FakeRoot& With(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
    return *this;
  }
  std::optional<double> Quota() const { return CgroupQuota(folder_ / ""); }

 private:
  TemporaryFolder folder_;
};

TEST(Processors, NoGroupNoQuota) {
  EXPECT_EQ(FakeRoot().Quota(), std::nullopt);
  EXPECT_EQ(FakeRoot().With("proc/self/cgroup", "0::/a").Quota(), std::nullopt);
  EXPECT_EQ(FakeRoot()
                .With("proc/self/cgroup", "0::/a")
                .With("sys/fs/cgroup/a/cpu.max", "max 100000")
                .Quota(),
            std::nullopt);
}

TEST(Processors, TheLeastQuotaOfVersion2OnTheWayUp) {
  FakeRoot root;
  root.With("proc/self/cgroup", "0::/pod/box")
      .With("sys/fs/cgroup/pod/box/cpu.max", "max 100000")
      .With("sys/fs/cgroup/pod/cpu.max", "250000 100000");
  EXPECT_EQ(root.Quota(), 2.5);
  root.With("sys/fs/cgroup/pod/box/cpu.max", "50000 50000");
  EXPECT_EQ(root.Quota(), 1);
}

TEST(Processors, AContainerSeesItsGroupAtTheMount) {
  EXPECT_EQ(FakeRoot()
                .With("proc/self/cgroup", "0::/../../somewhere")
                .With("sys/fs/cgroup/cpu.max", "400000 100000")
                .Quota(),
            4);
  EXPECT_EQ(FakeRoot()
                .With("proc/self/cgroup", "5:cpuset:/docker/1\n4:cpu,cpuacct:/docker/1")
                .With("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000")
                .With("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
                .Quota(),
            1.5);
}

TEST(Processors, Version1OfTheGroupItself) {
  FakeRoot root;
  root.With("proc/self/cgroup", "4:cpu,cpuacct:/box")
      .With("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1")
      .With("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000");
  EXPECT_EQ(root.Quota(), std::nullopt);
  root.With("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "300000");
  EXPECT_EQ(root.Quota(), 3);
}

TEST(Processors, WholeOnesAndAtLeastOne) {
  EXPECT_EQ((Processors{.allowed = 16, .quota = 4.5}.usable()), 4);
  EXPECT_EQ((Processors{.allowed = 2, .quota = 4.5}.usable()), 2);
  EXPECT_EQ((Processors{.allowed = 8, .quota = 0.3}.usable()), 1);
  EXPECT_EQ((Processors{.allowed = 8}.usable()), 8);
  EXPECT_EQ(Text({.allowed = 16, .quota = 4.5}),
            "4 processors (16 by the affinity, 4.5 by the cgroup quota)");
  EXPECT_EQ(Text({.allowed = 1}), "1 processor (1 by the affinity, no cgroup quota)");
}

TEST(Processors, ThisProcessMayUseOne) { EXPECT_GE(FindProcessors().usable(), 1); }

}  // namespace
}  // namespace tactus
