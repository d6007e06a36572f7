#include "platform/processors.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "platform/cpu_affinity.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

void TakeLess(std::optional<double> quota, std::optional<double>& least) {
  if (quota && (!least || *quota < *least)) least = quota;
}

// cpu.max: "150000 100000" in microseconds, or "max 100000".
std::optional<double> QuotaOfTwo(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// A quota of -1 is none.
std::optional<double> QuotaOfOne(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us");
  std::ifstream period_file(group / "cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return std::nullopt;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// Of the group and all above it. A container may not see its own path, but the mount is then its
// group.
template <class QuotaOf>
void LeastOf(const fs::path& mount, fs::path group, QuotaOf quota_of,
             std::optional<double>& least) {
  group = group.lexically_normal().relative_path();
  while (!group.empty()) {
    TakeLess(quota_of(mount / group), least);
    group = group.parent_path();
  }
  TakeLess(quota_of(mount), least);
}

bool Lists(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == wanted) return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

int Processors::usable() const {
  const double most = std::min(static_cast<double>(allowed), quota.value_or(allowed));
  return std::max(1, static_cast<int>(std::floor(most + 1e-9)));
}

std::string Text(const Processors& found) {
  const int usable = found.usable();
  std::string text = std::to_string(usable) + (usable == 1 ? " processor (" : " processors (") +
                     std::to_string(found.allowed) + " by the affinity, ";
  if (!found.quota) return text + "no cgroup quota)";
  char quota[32];
  std::snprintf(quota, sizeof quota, "%.3g", *found.quota);
  return text + quota + " by the cgroup quota)";
}

// Lines are "0::/path" (version 2) and "4:cpu,cpuacct:/path" (version 1).
std::optional<double> CgroupQuota(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  const fs::path mounts = root / "sys/fs/cgroup";
  std::optional<double> least;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      LeastOf(mounts, path, QuotaOfTwo, least);
      LeastOf(mounts / "unified", path, QuotaOfTwo, least);
    } else if (Lists(controllers, "cpu")) {
      LeastOf(mounts / controllers, path, QuotaOfOne, least);
      LeastOf(mounts / "cpu", path, QuotaOfOne, least);
    }
  }
  return least;
}

Processors FindProcessors() {
  return {.allowed = std::max(1, static_cast<int>(AllowedCores().size())), .quota = CgroupQuota()};
}

}  // namespace tactus
