// How many processors this process may use: those that its affinity allows, and no more than the
// quotas of the cgroups that it is in, which hold also in a container. What the machine has does
// not matter to it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tactus {

struct Processors {
  int allowed = 1;              // by the affinity
  std::optional<double> quota;  // processors' worth of time; none: no cgroup limits it
  // Whole ones, at least 1: a fraction would be shared, and what is shared is late.
  int usable() const;

  bool operator==(const Processors&) const = default;
};

// "4 processors (16 by the affinity, 4.5 by the cgroup quota)".
std::string Text(const Processors& found);

// The least quota of the process's cgroups and those above them, of version 2 and of version 1;
// none where there are none, or nothing can be read. `root` is / but in tests.
std::optional<double> CgroupQuota(const std::filesystem::path& root = "/");

Processors FindProcessors();

}  // namespace tactus
