// Where figures come from: the commit and the machine.
#include <algorithm>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "metrics/report.h"

namespace tactus {

extern const char kBuildCommit[];  // in the generated build_commit.cc

std::string BuildCommit() { return kBuildCommit; }

std::string MachineKind() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string cpu = "unknown CPU";
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    cpu = line.substr(colon + 2);
    break;
  }
  return fmt::format("{}, {} cores", cpu, std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace tactus
