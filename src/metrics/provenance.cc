// Where figures come from: the commit and the machine.
#include <algorithm>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "metrics/report.h"

namespace tactus {

extern const char kBuildCommit[];  // in the generated build_commit.cc

std::string BuildCommit() { return kBuildCommit; }

std::string CpuName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::string MachineKind() {
  return fmt::format("{}, {} cores", CpuName(), std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace tactus
