// ./run bench gpu: lanes on an NVIDIA device, from the engine by itself to policies behind the
// whole server. All it needs is NVIDIA's driver: kernels are PTX in this program, and nets are made
// of them (device/kernel_net.h), so neither a CUDA toolkit nor ONNX Runtime has to be there.
//
// Without a device it says so in one line and ends with 77. --fake runs all of it on a device that
// is not there (device/fake_gpu.h): whether the benchmark runs, and no figure.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "device/fake_gpu.h"
#include "device/parts.h"
#include "engines/cuda/cuda_engine.h"
#include "engines/cuda/device_facts.h"
#include "engines/cuda/power_limit.h"
#include "program.h"

namespace tactus {
namespace {

constexpr int kSkipped = 77;
constexpr const char* kProgram = "bench gpu";

struct Options {
  int device = 0;
  bool fake = false;
  bool processor = false;
  bool list = false;
  std::vector<std::string> only;
  std::string json;
  BenchOptions bench;
};

struct Part {
  const char* name;
  const char* what;
  Status (*measure)(const Bench&);
  double seconds;  // that it takes, of which ...
  double runs;     // ... so many are runs of --seconds
};

// The seconds are an estimate; an H200 took no longer for those parts that ran there
// (docs/results/gpu).
constexpr Part kParts[] = {
    {"parts", "on which SMs lanes with shares run", MeasureParts, 2, 0},
    {"priorities", "how long urgent work waits", MeasurePriorities, 4, 0},
    {"engine", "the engine beside a raw loop", MeasureEngine, 4, 0},
    {"uses", "what the device counts of its own work", MeasureUses, 8, 0},
    {"interference", "what batches at once cost each other", MeasureInterference, 10, 10},
    {"strait", "Strait and its rivals, Figure 5", MeasureStrait, 25, 16},
    {"shares", "gpu-lets: parts and time sharing, Table 5", MeasureShares, 100, 6},
    {"deferred", "Symphony: deferred and eager batches", MeasureDeferred, 10, 6},
    {"exits", "EdgeServing, Figure 4", MeasureExits, 25, 16},
    {"resnets", "the same on ResNets with early exits", MeasureResNets, 40, 16},
    {"twin", "the simulator beside the device", MeasureTwin, 30, 4},
};

double EstimateOf(const Part& part, const Options& options) {
  return part.seconds + part.runs * (options.bench.seconds + 0.5);
}

// On the processor there are only those that serve models.
bool Chosen(const Part& part, const Options& options) {
  if (options.processor) return part.measure == MeasureResNets;
  return options.only.empty() || std::ranges::find(options.only, part.name) != options.only.end();
}

int List(const Options& options) {
  double sum = 0;
  for (const Part& part : kParts) {
    const double seconds = EstimateOf(part, options);
    sum += seconds;
    fmt::print("{:<13} about {:>4.0f} s  {}\n", part.name, seconds, part.what);
  }
  fmt::print("{:<13} about {:>4.0f} s; --only a,b runs some of them\n", "all", sum);
  return 0;
}

// What was measured without a device is kept nowhere where results are.
Status CheckPlace(const Options& options) {
  if (!(options.fake || options.processor) || options.json.empty()) return {};
  const auto path = std::filesystem::weakly_canonical(std::filesystem::absolute(options.json));
  for (const auto& folder : path) {
    if (folder != "docs") continue;
    return InvalidArgument(
        fmt::format("--json {}: figures without a device are no results, and docs is for "
                    "results; write them elsewhere",
                    options.json));
  }
  return {};
}

Options Quick(Options options) {
  if (!options.bench.quick) return options;
  options.bench.seconds = std::min(options.bench.seconds, 0.5);
  options.bench.repetitions = 3;
  options.bench.rounds = 2;
  options.bench.batches = 5;
  return options;
}

// A part that cannot be measured keeps none of the others from being: time on a device is dear.
Status RunParts(const Options& options, const Bench& bench) {
  Status all;
  for (const Part& part : kParts) {
    if (!Chosen(part, options)) continue;
    fmt::print("{}: {}{}\n", part.name, bench.device.mark(), part.what);
    std::fflush(stdout);
    const auto begin = BenchClock::now();
    if (Status ran = part.measure(bench); !ran) {
      all = Fail(ran.error().code, fmt::format("{}: {}", part.name, ran.error().message));
      fmt::print(stderr, "{}: could not be measured: {}\n", kProgram, all.error().message);
    }
    fmt::print("  took {:.0f} s\n", NanosSince(begin) / 1e9);
  }
  return all;
}

// What the parts run on, and what keeps it.
struct Opened {
  std::unique_ptr<FakeGpu> fake;
  BenchDevice device;
};

// kNotFound: there is no device.
Expected<Opened> OpenDevice(const Options& options) {
  Opened opened;
  BenchDevice& device = opened.device;
  device.ordinal = options.device;
  device.fake = options.fake;
  device.processor = options.processor;
  if (options.processor) {
    device.facts.name = "the PROCESSOR";
    return opened;
  }
  if (options.fake) {
    opened.fake = std::make_unique<FakeGpu>(FakeGpu::Time::kReal);
    device.driver = opened.fake->driver();
    device.power_limit = [](const std::string&) { return 0; };
    device.nvml = opened.fake->nvml();
  } else {
    auto driver = OpenCudaDriver();
    if (!driver) return std::unexpected(driver.error());
    device.driver = *std::move(driver);
    device.power_limit = [](const std::string& uuid) { return PowerLimitWatts(uuid); };
  }
  auto facts = ReadFacts(*device.driver, device.ordinal, device.power_limit);
  if (!facts) return std::unexpected(facts.error());
  device.facts = *std::move(facts);
  return opened;
}

std::string Where(const BenchDevice& device) {
  const DeviceFacts& known = device.facts;
  if (device.processor) return device.mark() + known.name;
  return fmt::format("{}{}, {} SMs, CUDA {}.{}, {} W", device.mark(), known.name,
                     known.multiprocessors, known.driver / 1000, known.driver % 1000 / 10,
                     known.power_limit_watts);
}

int Main(const Options& options) {
  if (options.list) return List(options);
  if (Status place = CheckPlace(options); !place) return CannotRun(kProgram, place.error());
  const auto opened = OpenDevice(options);
  if (!opened && opened.error().code == ErrorCode::kNotFound) {
    fmt::print(stderr, "{}: skipped: {}\n", kProgram, opened.error().message);
    return kSkipped;
  }
  if (!opened) return CannotRun(kProgram, opened.error());
  const std::string where = Where(opened->device);
  fmt::print("{}\n", where);
  Report report;
  const Options chosen = Quick(options);
  const Status ran = RunParts(chosen, {opened->device, chosen.bench, report});
  // A figure that is kept says what it was taken on.
  for (Check& check : report.checks) check.what = where + ": " + check.what;
  const int code = Conclude(kProgram, report, options.json);
  return ran ? code : 2;
}

CLI::Validator PartName() {
  return {[](const std::string& name) {
            for (const Part& part : kParts) {
              if (name == part.name) return std::string();
            }
            return fmt::format("there is no part '{}'; --list names them", name);
          },
          "", "PartName"};
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  using tactus::Options;
  CLI::App app("Lanes on an NVIDIA device, with kernels whose work is known", "./run bench gpu");
  Options options;
  app.add_option("--device", options.device, "As the driver counts")->capture_default_str();
  app.add_flag("--list", options.list, "The parts of the benchmark and how long each takes");
  app.add_option("--only", options.only, "Only these parts: a,b")
      ->delimiter(',')
      ->check(tactus::PartName());
  app.add_option("--seconds", options.bench.seconds, "Of arrivals in each run of the server")
      ->check(CLI::Range(0.2, 600.0))
      ->capture_default_str();
  app.add_option("--rounds", options.bench.rounds, "Of urgent work")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--batches", options.bench.batches, "Of each turn beside the raw loop")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.bench.seed, "Of arrivals and inputs")->capture_default_str();
  app.add_option("--resnets", options.bench.resnets, "The models that models/resnets.py wrote");
  auto* fake =
      app.add_flag("--fake", options.fake, "On a device that is not there: no figure is a result");
  app.add_flag("--processor", options.processor,
               "The ResNets alone, on the processor: whether they run, and no figure of a device")
      ->excludes(fake);
  app.add_flag("--quick", options.bench.quick, "One of each kind: whether it runs, and no figure");
  app.add_option("--json", options.json, "Write the runs and the checks to this file");
  CLI11_PARSE(app, argc, argv);
  return tactus::Main(options);
}
