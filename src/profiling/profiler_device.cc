// What batches use of a device.
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "profiling/profiler.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kL2 = static_cast<std::size_t>(Resource::kL2);
constexpr auto kDram = static_cast<std::size_t>(Resource::kDram);

// As those of a processor whose cores have no cache of their own: what a kernel of a device reads
// has passed L2, and what its L1 caches pass is not measured.
MachinePeaks AsOfMachine(const DevicePeaks& device) {
  MachinePeaks peaks;
  peaks.operations = 2 * device.fmas;
  peaks.l1 = std::numeric_limits<double>::infinity();
  peaks.l2 = device.l2_bytes;
  peaks.beyond = device.memory_bytes;
  peaks.l1_bytes = 0;
  peaks.l2_bytes = device.cache_bytes;
  return peaks;
}

std::string SourceOf(const DevicePeaks& peaks) {
  return fmt::format(
      "estimated: operations and bytes of each kernel of the same graph, by the trace of a "
      "processor, over the kernels' mean time; as shares of what the device reaches, measured: fma "
      "{:.3g} multiply-adds/s, whatever unit does them; l2 {:.3g} B/s of operands; dram {:.3g} B/s "
      "of operands beyond {} KiB; l1 not known: 0",
      peaks.fmas, peaks.l2_bytes, peaks.memory_bytes, peaks.cache_bytes >> 10);
}

std::string Joined(const std::string& counted, const std::string& estimated) {
  if (counted.empty() || estimated.empty()) return counted + estimated;
  return counted + "; the others " + estimated;
}

// Of a device the mean alone is known, where Strait would have the 95th percentile.
void TakeTransfers(ProfiledModel& model) {
  for (ProfiledExit& exit : model.exits) {
    for (ProfileCell& cell : exit.cells) {
      if (cell.device) cell.transfer_ms = cell.device->upload_ms;
    }
  }
}

}  // namespace

Status Profiler::Estimate(std::size_t s, Engine& examiner, const DevicePeaks& peaks,
                          ProfiledModel& model) {
  ModelSpec spec = subjects_[s]->spec;
  const auto handle = examiner.Load(spec, {.placement = CpuPlacement{}});
  if (!handle) return std::unexpected(handle.error());
  Status found;
  for (std::size_t e = 0; e < model.exits.size() && found; ++e) {
    found = AddUse(s, examiner, *handle, static_cast<int>(e), AsOfMachine(peaks), model.exits[e]);
  }
  examiner.Unload(*handle);
  return found;
}

// Batches one behind the other, as long as the counters need. They count the time between two
// batches too, in which nothing runs.
Expected<DeviceCounters::Reading> Profiler::CountCell(const Cell& cell, DeviceCounters& counters) {
  if (Status begun = counters.Begin(); !begun) return std::unexpected(begun.error());
  const auto begin = Clock::now();
  Duration busy{};
  do {
    const auto run = RunOnce(cell);
    if (!run) return std::unexpected(run.error());
    busy += run->device ? run->device->kernels : run->took;
  } while (Clock::now() - begin < counters.least());
  const Duration passed = Clock::now() - begin;
  auto reading = counters.Read();
  if (!reading) return reading;
  const double idle = busy > Duration{} ? std::max(1.0, ToSeconds(passed) / ToSeconds(busy)) : 1;
  for (std::optional<double>& share : *reading) {
    if (share) share = std::min(1.0, idle * *share);
  }
  return reading;
}

Status Profiler::Count(std::size_t s, DeviceCounters& counters,
                       const std::optional<DevicePeaks>& peaks, ProfiledModel& model) {
  for (const Cell& cell : cells_) {
    if (cell.subject != s) continue;
    const auto reading = CountCell(cell, counters);
    if (!reading) return std::unexpected(reading.error());
    Throughput& use = model.exits[static_cast<std::size_t>(cell.exit)]
                          .cells[static_cast<std::size_t>(cell.batch) - 1]
                          .throughput;
    for (std::size_t r = 0; r < kResources; ++r) use[r] = (*reading)[r].value_or(use[r]);
    // All that the memory gives passes L2.
    if (!peaks || !(*reading)[kDram] || peaks->l2_bytes <= 0) continue;
    use[kL2] =
        std::min(1.0, std::max(use[kL2], use[kDram] * peaks->memory_bytes / peaks->l2_bytes));
  }
  return {};
}

std::vector<std::string> Profiler::AddDeviceUses(Engine* examiner,
                                                 std::vector<ProfiledModel>& models) {
  std::vector<std::string> warnings;
  auto* const meter = dynamic_cast<DeviceMeter*>(&engine_);
  if (meter == nullptr) return {"this engine tells nothing of its device"};
  std::optional<DevicePeaks> peaks;
  if (auto measured = meter->MeasurePeaks()) {
    peaks = *measured;
  } else {
    warnings.push_back(
        fmt::format("the device's peaks could not be measured: {}", measured.error().message));
  }
  auto counters = meter->OpenCounters();
  if (!counters) {
    warnings.push_back(
        fmt::format("what batches use of the device is not counted: {}{}", counters.error().message,
                    examiner != nullptr && peaks ? "; it is estimated instead" : ""));
  }
  for (std::size_t s = 0; s < subjects_.size(); ++s) {
    if (&subjects_[s]->engine != &engine_) continue;  // it runs on the processor
    ProfiledModel& model = models[s];
    // On copies: what failed half way leaves nothing.
    ProfiledModel tried = model;
    Status estimated = Fail(ErrorCode::kUnimplemented, "nobody knows what its kernels do");
    if (examiner != nullptr && peaks) estimated = Estimate(s, *examiner, *peaks, tried);
    if (estimated) model = tried;
    tried = model;
    const Status counted =
        counters ? Count(s, **counters, peaks, tried) : Status(std::unexpected(counters.error()));
    if (counted) model = std::move(tried);
    if (counters && !counted) {
      warnings.push_back(fmt::format("model '{}': what its batches use is not counted: {}",
                                     model.name, counted.error().message));
    }
    model.resources_source =
        Joined(counted ? (*counters)->source() : "", estimated ? SourceOf(*peaks) : "");
    if (model.resources_source.empty()) {
      warnings.push_back(fmt::format("model '{}' gets no resource figures: {}", model.name,
                                     estimated.error().message));
    } else {
      TakeTransfers(model);
    }
  }
  return warnings;
}

}  // namespace tactus
