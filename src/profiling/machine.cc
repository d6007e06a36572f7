#include "profiling/machine.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "metrics/report.h"

namespace tactus {
namespace {

std::string OperatingSystem() {
  std::ifstream release("/etc/os-release");
  constexpr std::string_view kKey = "PRETTY_NAME=";
  for (std::string line; std::getline(release, line);) {
    if (!line.starts_with(kKey)) continue;
    line.erase(0, kKey.size());
    std::erase(line, '"');
    return line;
  }
  return "unknown";
}

// FNV-1a: stable between builds and machines, which std::hash is not.
std::string Hash(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

std::string Threads(int threads) {
  return fmt::format("{} thread{} a batch", threads, threads == 1 ? "" : "s");
}

std::string Describe(const Machine& machine) {
  return fmt::format("{}, {} cores, {}", machine.cpu, machine.cores, machine.engine);
}

}  // namespace

Machine ThisMachine(const std::string& engine, int threads) {
  Machine machine;
  machine.cpu = CpuName();
  machine.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  machine.os = OperatingSystem();
  machine.engine = engine;
  machine.threads = threads;
  std::string decisive = fmt::format("{}|{}|{}", machine.cpu, machine.cores, engine);
  if (threads > 1) decisive += fmt::format("|{} threads", threads);
  machine.fingerprint = Hash(decisive);
  return machine;
}

std::string MachineDifference(const ProfileFile& profile, const Machine& machine) {
  if (profile.machine.fingerprint == machine.fingerprint) return "";
  const bool alike = Describe(profile.machine) == Describe(machine);
  if (alike && profile.machine.threads != machine.threads) {
    return fmt::format("this profile was measured with {} and the lanes here run {}",
                       Threads(profile.machine.threads), Threads(machine.threads));
  }
  if (alike && !profile.machine.fingerprint.empty()) {
    return fmt::format(
        "only the fingerprint of this profile's machine differs: {}, here {}, both of {}; the "
        "profile was changed by hand, or another version of tactus wrote it",
        profile.machine.fingerprint, machine.fingerprint, Describe(machine));
  }
  const std::string where =
      profile.machine.fingerprint.empty()
          ? fmt::format("was not measured here ({})", profile.provenance)
          : fmt::format("was measured on another machine ({})", Describe(profile.machine));
  return fmt::format("this profile {}; this machine is {}", where, Describe(machine));
}

Status CheckMachine(const ProfileFile& profile, const Machine& machine, bool allow) {
  const std::string difference = MachineDifference(profile, machine);
  if (allow || difference.empty()) return {};
  const std::string threads =
      machine.threads == 1 ? "" : fmt::format(" --threads {}", machine.threads);
  return InvalidArgument(
      fmt::format("{}. Its latencies would be wrong here: measure them with `tactus profile{}`, or "
                  "allow it with --allow-other-machine",
                  difference, threads));
}

}  // namespace tactus
