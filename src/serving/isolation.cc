#include "serving/isolation.h"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

#include "engines/isolated/process_host.h"
#include "serving/device.h"
#include "serving/idle_memory.h"

namespace tactus {
namespace {

// From a lane's death to the first attempt to bring it back; one that dies soon after it came back
// waits longer.
constexpr Duration kReviveAfter = Millis(10);
constexpr Duration kReviveLongest = Seconds(1);
constexpr std::chrono::milliseconds kLook{100};  // for processes that died idle
constexpr std::string_view kOperators = "op";

}  // namespace

Status CheckIsolation(const ServeOptions& options) {
  if (!options.isolate) return {};
  if (OnDevices(options)) {
    return InvalidArgument(
        "--isolate: engines on devices run in the server's process; leave --device or --isolate "
        "out");
  }
  if (options.slots > 1) {
    return InvalidArgument(
        "--isolate: a lane's process runs one batch at a time, so that a crash can be attributed "
        "to it; give --lanes instead of --slots");
  }
  if (options.engine == "emulated") {
    return InvalidArgument("--isolate: the emulated engine runs no graph; leave --isolate out");
  }
  constexpr rlim_t kLeast = rlim_t{64} << 20;
  rlimit files{};
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < kLeast) {
    return InvalidArgument(
        fmt::format("--isolate: files may have {} bytes here (ulimit -f), and the memory that is "
                    "shared with engines' processes is files: allow {} or more",
                    files.rlim_cur, kLeast));
  }
  return {};
}

void Isolate(const ServeOptions& options, EngineOptions& engines) {
  if (!options.isolate) return;
  const bool watched = options.watchdog_multiple > 0;
  engines.isolation =
      IsolationOptions{.stop_grace = watched ? FromSeconds(options.watchdog_s) : Duration{}};
}

void Isolate(const ServeOptions& options, RuntimeOptions& runtime) {
  if (!options.isolate) return;
  runtime.revive_after = kReviveAfter;
  runtime.revive_longest = kReviveLongest;
  runtime.revivers = runtime.lanes;  // a process that hangs while it starts holds up its own lane
}

void AddEngines(const EngineShelf& engines, RuntimeReading& reading) {
  reading.arenas = engines.arenas();
  for (const EngineProcessReading& process : engines.processes()) {
    reading.processes.push_back(
        {process.engine, process.lane, process.starts, process.resident_bytes});
  }
}

std::unique_ptr<RepeatedTask> WatchProcesses(const ServeOptions& options,
                                             const EngineShelf& engines, Runtime& device,
                                             HostLanes* host) {
  if (!options.isolate) return nullptr;
  // Each death is told of once; a dead process may be the lane's as long as no model needs it. A
  // lane may have processes of several engines; one that was silent stays so while one is dead.
  using Lanes = std::map<std::pair<Runtime*, LaneId>, bool>;
  const auto look = [&engines, &device, host, told = std::set<int>(), silent = Lanes()]() mutable {
    Lanes now;
    for (const EngineProcessReading& process : engines.processes()) {
      const bool operators = host != nullptr && process.engine == kOperators;
      Runtime& runtime = operators ? host->runtime() : device;
      const LaneId lane{static_cast<LaneId::rep>(process.lane)};
      bool& lane_now = now[{&runtime, lane}];
      lane_now |= process.runs ? process.silent : silent[{&runtime, lane}];
      if (process.runs || !told.insert(process.pid).second) continue;
      runtime.LaneDied(lane, {ErrorCode::kUnavailable, "the engine's " + process.ending});
    }
    for (const auto& [lane, is_silent] : now) {
      if (std::exchange(silent[lane], is_silent) == is_silent) continue;
      lane.first->SetLaneSilent(lane.second, is_silent);
    }
  };
  return std::make_unique<RepeatedTask>("processes", Every(kLook, look), kLook);
}

void RunIfEngineProcess(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != kEngineProcess) return;
  KeepFreedMemory();
  RunEngineProcess(argc, argv, [](const std::string& engine, const std::string& library) {
    EngineOptions options;
    options.onnxruntime_library = library;
    return MakeEngine(engine, options);
  });
}

}  // namespace tactus
