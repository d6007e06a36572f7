#include "experiment/usage_columns.h"

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::size_t kUsageColumns = 6;

std::string BatchSizes(const Summary& figures) {
  return fmt::format("{:.1f} ({}/{}/{})", figures.mean_batch, BatchPercentile(figures, 10),
                     BatchPercentile(figures, 50), BatchPercentile(figures, 90));
}

}  // namespace

std::string Percent(double ratio) { return fmt::format("{:.1f}", 100 * ratio); }
std::string Rate(double rps) { return fmt::format("{:.{}f}", rps, rps < 100 ? 1 : 0); }

void AddUsageColumns(TextTable& table) {
  table.AddColumns(
      "batch [(P10/50/90)]~9|queue P50 [ms]~7|P99 [ms]~6|lanes [touched]~8|busy [%]~4|idle [%]~5");
}

std::vector<std::string> UsageCells(const std::vector<RunReport>& runs) {
  if (runs.empty()) return std::vector<std::string>(kUsageColumns, "-");
  const RunReport mean = Average(runs);
  return {BatchSizes(mean.all),
          fmt::format("{:.1f}", mean.all.queue_p50_ms.value_or(0)),
          fmt::format("{:.1f}", mean.all.queue_p99_ms.value_or(0)),
          fmt::format("{:.1f}", mean.lanes_touched),
          Percent(BusyRatio(mean)),
          Percent(IdleRatio(mean))};
}

}  // namespace tactus
