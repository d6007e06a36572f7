#include "profiling/machine.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "base/fnv.h"
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

std::string Hash(std::string_view text) { return fmt::format("{:016x}", Fnv1a(text)); }

std::string Threads(int threads) {
  return fmt::format("{} thread{} a batch", threads, threads == 1 ? "" : "s");
}

// What decides latency of it, for the fingerprint.
std::string Decisive(const DeviceFacts& a) {
  return fmt::format("{}|{}|{}|{}|{}|{}", a.name, a.capability, a.multiprocessors, a.memory_bytes,
                     a.driver, a.power_limit_watts);
}

std::string CudaVersion(const DeviceFacts& a) {
  return fmt::format("{}.{}", a.driver / 1000, a.driver % 1000 / 10);
}

// What of two devices is not the same: "its power limit is 700 W, here 500 W".
std::string DeviceDifference(const DeviceFacts& profiled, const DeviceFacts& here) {
  std::string all;
  const auto add = [&](const char* what, const auto& there, const auto& now, const char* unit) {
    if (there == now) return;
    all += fmt::format("{}{} was {}{}, here it is {}{}", all.empty() ? "" : "; ", what, there, unit,
                       now, unit);
  };
  add("the device", profiled.name, here.name, "");
  add("the driver's CUDA", CudaVersion(profiled), CudaVersion(here), "");
  add("the power limit", profiled.power_limit_watts, here.power_limit_watts, " W");
  add("the number of SMs", profiled.multiprocessors, here.multiprocessors, "");
  add("the memory", profiled.memory_bytes >> 20, here.memory_bytes >> 20, " MiB");
  add("the compute capability", profiled.capability / 10.0, here.capability / 10.0, "");
  return all;
}

// Profiles that were derived or imported leave out what nobody knows.
std::string Describe(const Machine& machine) {
  std::string text = machine.cpu.empty() ? "unknown processor" : machine.cpu;
  if (machine.cores > 0) text += fmt::format(", {} cores", machine.cores);
  if (!machine.engine.empty()) text += ", " + machine.engine;
  return text;
}

}  // namespace

Machine ThisMachine(const std::string& engine, int threads,
                    const std::optional<DeviceFacts>& device) {
  Machine machine;
  machine.cpu = CpuName();
  machine.cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  machine.os = OperatingSystem();
  machine.engine = engine;
  machine.threads = threads;
  std::string decisive = fmt::format("{}|{}|{}", machine.cpu, machine.cores, engine);
  if (threads > 1) decisive += fmt::format("|{} threads", threads);
  machine.device = device;
  if (device) decisive += "|" + Decisive(*device);
  machine.fingerprint = Hash(decisive);
  return machine;
}

Machine ThisMachine(const EngineTraits& engine, int threads, double share) {
  Machine machine = ThisMachine(engine.name, threads, engine.device);
  machine.share = share;
  if (share < 1) machine.fingerprint = Hash(fmt::format("{}|{:.3f}", machine.fingerprint, share));
  return machine;
}

std::string MachineDifference(const ProfileFile& profile, const Machine& machine) {
  if (profile.machine.fingerprint == machine.fingerprint) return "";
  if (profile.machine.device && machine.device) {
    const std::string other = DeviceDifference(*profile.machine.device, *machine.device);
    if (!other.empty()) {
      return fmt::format("this profile was measured on another device than serves: {}", other);
    }
  }
  if (profile.machine.share != machine.share) {
    return fmt::format(
        "this profile was measured on {:g} % of the device and the lane here has {:g} %",
        100 * profile.machine.share, 100 * machine.share);
  }
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
  std::string how = machine.threads == 1 ? "" : fmt::format(" --threads {}", machine.threads);
  if (machine.share < 1) how += fmt::format(" --share {:g}", 100 * machine.share);
  return InvalidArgument(
      fmt::format("{}. Its latencies would be wrong here: measure them with `tactus profile{}`, or "
                  "allow it with --allow-other-machine",
                  difference, how));
}

}  // namespace tactus
