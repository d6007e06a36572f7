#include "profiling/profile_text.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace tactus {
namespace {

bool SaysDeviceTimes(const ProfileFile& profile) {
  return std::ranges::any_of(profile.models, [](const ProfiledModel& model) {
    return std::ranges::any_of(model.exits, [](const ProfiledExit& exit) {
      return std::ranges::any_of(exit.cells,
                                 [](const ProfileCell& cell) { return cell.device.has_value(); });
    });
  });
}

std::string DeviceColumns(const ProfileCell& cell) {
  if (!cell.device) return fmt::format(" {:>8} {:>10} {:>8}", "-", "-", "-");
  return fmt::format(" {:>8.3f} {:>10.3f} {:>8.3f}", cell.device->upload_ms,
                     cell.device->kernels_ms, cell.device->download_ms);
}

std::string Row(const ProfiledModel& model, const ProfiledExit& exit, std::size_t batch,
                bool device) {
  const ProfileCell& cell = exit.cells[batch - 1];
  std::string row = fmt::format("{:<12} {:<6} {:>6} {:>8} {:>9.3f} {:>9.3f} {:>9.3f} {:>6.3f}",
                                model.name, exit.name, batch, cell.repetitions, cell.mean_ms,
                                cell.p95_ms, cell.p99_ms, cell.cv);
  if (device) row += DeviceColumns(cell);
  if (batch == exit.cells.size()) {
    row += fmt::format("  {:.3f} + {:.3f} ({:.0f} %)", exit.alpha_ms, exit.beta_ms,
                       100 * exit.fit_error);
  }
  return row + "\n";
}

}  // namespace

std::string ToTable(const ProfileFile& profile) {
  const bool device = SaysDeviceTimes(profile);
  std::string text = fmt::format("{:<12} {:<6} {:>6} {:>8} {:>9} {:>9} {:>9} {:>6}", "model",
                                 "exit", "batch", "runs", "mean ms", "P95 ms", "P99 ms", "cv");
  if (device) text += fmt::format(" {:>8} {:>10} {:>8}", "up ms", "kernels ms", "down ms");
  text += "  fit: ms a row + ms a batch (error)\n";
  for (const ProfiledModel& model : profile.models) {
    for (const ProfiledExit& exit : model.exits) {
      if (exit.cells.size() > 1) text += Row(model, exit, 1, device);
      text += Row(model, exit, exit.cells.size(), device);
    }
  }
  return text;
}

}  // namespace tactus
