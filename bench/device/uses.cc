// What the device counts of its own work beside what the kernels are known to do: profiles of
// models rest on those counters.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "device/parts.h"
#include "profiling/profiler.h"
#include "program.h"

namespace tactus {

Status MeasureUses(const Bench& bench) {
  struct Subject {
    const char* net;
    Resource resource;  // that it keeps busiest
  };
  constexpr std::array<Subject, 2> kSubjects = {
      {{"wide", Resource::kFma}, {"stream", Resource::kDram}}};
  const auto peaks = PeaksOf(bench.device);
  if (!peaks) return std::unexpected(peaks.error());
  auto engine = MakeNetEngine(bench.device, {});
  if (!engine) return std::unexpected(engine.error());
  ProfilerOptions how{.repetitions = bench.options.repetitions,
                      .least = std::min(bench.options.repetitions, 5),
                      .budget = Millis(200),
                      .max_batch = bench.options.quick ? 2 : 8,
                      .pin = false};
  how.share = 1;
  Profiler profiler(**engine, how);
  for (const Subject& subject : kSubjects) {
    if (Status added = profiler.Add(SpecOf(NetNamed(subject.net), subject.net)); !added) {
      return std::unexpected(added.error());
    }
  }
  if (Status ran = profiler.Run([](const ProfilerProgress&) { return true; }); !ran) return ran;
  std::vector<ProfiledModel> models = profiler.Result();
  for (const std::string& warning : profiler.AddDeviceUses(nullptr, models)) {
    fmt::print("  {}\n", warning);
  }
  for (std::size_t s = 0; s < kSubjects.size(); ++s) {
    const Subject& subject = kSubjects[s];
    const ProfiledModel& model = models[s];
    if (model.resources_source.empty()) {
      return Fail(ErrorCode::kUnimplemented, "the device counts nothing of what it does");
    }
    const auto resource = static_cast<std::size_t>(subject.resource);
    double most = 0;
    for (std::size_t b = 0; b < model.exits[0].cells.size(); ++b) {
      const ProfileCell& cell = model.exits[0].cells[b];
      const double ms = cell.device ? cell.device->kernels_ms : cell.p50_ms;
      const double known = ResourceShares(NetNamed(subject.net), 0, static_cast<int>(b) + 1,
                                          ms / 1e3, *peaks, bench.device.facts)[resource];
      most = std::max(most, std::abs(cell.throughput[resource] - known));
      fmt::print("  {} x {}: {} counted {:.2f}, known {:.2f}\n", subject.net, b + 1,
                 kResourceNames[resource], cell.throughput[resource], known);
    }
    bench.Add(AtMost(fmt::format("uses: share of {} of '{}', counted off what its kernels do",
                                 kResourceNames[resource], subject.net),
                     most, kMostUncertainty));
  }
  fmt::print("  {}\n", models[0].resources_source);
  return {};
}

}  // namespace tactus
