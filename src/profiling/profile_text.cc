#include "profiling/profile_text.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "metrics/text_table.h"

namespace tactus {
namespace {

std::string MillisText(double ms) { return fmt::format("{:.3f}", ms); }

std::vector<std::string> Row(const ProfiledModel& model, const ProfiledExit& exit,
                             std::size_t batch) {
  const ProfileCell& cell = exit.cells[batch - 1];
  std::vector<std::string> row = {model.name,
                                  exit.name,
                                  fmt::format("{}", batch),
                                  fmt::format("{}", cell.repetitions),
                                  MillisText(cell.mean_ms),
                                  MillisText(cell.p95_ms),
                                  MillisText(cell.p99_ms),
                                  fmt::format("{:.0f}", 100 * cell.cv)};
  if (cell.device) {
    row.push_back(MillisText(cell.device->upload_ms));
    row.push_back(MillisText(cell.device->kernels_ms));
    row.push_back(MillisText(cell.device->download_ms));
  } else {
    row.resize(row.size() + 3, "-");
  }
  if (batch > 1 && batch == exit.cells.size()) {
    row.push_back(MillisText(exit.alpha_ms));
    row.push_back(MillisText(exit.beta_ms));
    row.push_back(fmt::format("{:.0f}", 100 * exit.fit_error));
  }
  return row;
}

}  // namespace

std::string ToTable(const ProfileFile& profile) {
  TextTable table;
  table.AddColumns(
      "model|exit|batch [rows]|runs~6|mean [ms]|P95 [ms]|P99 [ms]~4|spread [%]~3|upload [ms]~5|"
      "kernels [ms]~2|download [ms]~5|a row [ms]|a batch [ms]|off [%]~1");
  bool fitted = false;
  for (const ProfiledModel& model : profile.models) {
    for (const ProfiledExit& exit : model.exits) {
      if (exit.cells.size() > 1) table.Add(Row(model, exit, 1));
      table.Add(Row(model, exit, exit.cells.size()));
      fitted |= exit.cells.size() > 1;
    }
  }
  std::string text = table.Print();
  if (fitted) {
    text +=
        "A batch of n rows takes about n times \"a row\", plus \"a batch\". \"off\": the largest\n"
        "error of this line. The server uses the measured time of each batch.\n";
  }
  return text;
}

}  // namespace tactus
