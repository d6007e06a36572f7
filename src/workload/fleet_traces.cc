#include "workload/fleet_traces.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workload/csv.h"

namespace tactus {
namespace {

// With this header, or one that begins so where `more` may follow, and at least one row.
Expected<CsvTable> Table(const std::filesystem::path& path, const std::vector<std::string>& header,
                         bool more = false) {
  auto table = ReadCsv(path);
  if (!table) return table;
  const std::vector<std::string>& has = table->header;
  const bool begins =
      has.size() >= header.size() && std::equal(header.begin(), header.end(), has.begin());
  if (!begins || (!more && has.size() > header.size())) {
    return InvalidArgument(fmt::format("{}: the header must be {}{}", table->where,
                                       fmt::join(header, ","), more ? " and more columns" : ""));
  }
  if (table->rows.empty()) return InvalidArgument(table->where + ": needs a header and rows");
  return table;
}

std::unexpected<Error> Wrong(const CsvTable& table, const CsvTable::Row& row,
                             std::string_view what) {
  return InvalidArgument(fmt::format("{}:{}: {}", table.where, row.line, what));
}

// The cells of a row from `first` on.
Expected<std::vector<double>> Numbers(const CsvTable& table, const CsvTable::Row& row,
                                      std::size_t first) {
  std::vector<double> numbers;
  for (std::size_t i = first; i < row.cells.size(); ++i) {
    const auto number = ParseNumber(row.cells[i]);
    if (!number || *number < 0 || *number > 1e9) {
      return Wrong(table, row, fmt::format("'{}' must be a number from 0 to 1e9", row.cells[i]));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

Expected<std::map<std::string, std::vector<LinkSample>>> LoadLinkTraces(
    const std::filesystem::path& path) {
  const auto table = Table(path, {"trace", "t_s", "mbps"});
  if (!table) return std::unexpected(table.error());
  std::map<std::string, std::vector<LinkSample>> traces;
  for (const CsvTable::Row& row : table->rows) {
    const auto numbers = Numbers(*table, row, 1);
    if (!numbers) return std::unexpected(numbers.error());
    const double t_s = numbers->front();
    std::vector<LinkSample>& trace = traces[row.cells[0]];
    if (trace.empty() ? t_s != 0 : t_s <= trace.back().t_s) {
      return Wrong(*table, row, "the times of a trace begin with 0 and ascend");
    }
    trace.push_back({t_s, numbers->back()});
  }
  return traces;
}

Expected<std::map<std::string, std::vector<double>>> LoadCounts(const std::filesystem::path& path) {
  const auto table = Table(path, {"t_s"}, true);
  if (!table) return std::unexpected(table.error());
  std::map<std::string, std::vector<double>> counts;
  double second = 0;
  for (const CsvTable::Row& row : table->rows) {
    const auto numbers = Numbers(*table, row, 0);
    if (!numbers) return std::unexpected(numbers.error());
    if (numbers->front() != second) {
      return Wrong(*table, row, fmt::format("t_s must be {:.0f}: a row a second", second));
    }
    ++second;
    for (std::size_t k = 1; k < numbers->size(); ++k) {
      counts[table->header[k]].push_back((*numbers)[k]);
    }
  }
  return counts;
}

Expected<std::vector<CurvePoint>> LoadCurve(const std::filesystem::path& path) {
  const auto table = Table(path, {"t_s", "times"});
  if (!table) return std::unexpected(table.error());
  std::vector<CurvePoint> curve;
  for (const CsvTable::Row& row : table->rows) {
    const auto numbers = Numbers(*table, row, 0);
    if (!numbers) return std::unexpected(numbers.error());
    const double t_s = numbers->front();
    if (curve.empty() ? t_s != 0 : t_s <= curve.back().t_s) {
      return Wrong(*table, row, "times begin with 0 and ascend");
    }
    curve.push_back({t_s, numbers->back()});
  }
  return curve;
}

Status AddExits(const std::filesystem::path& path, FleetInput& input) {
  const auto table = Table(path, {"kind", "part", "accuracy"});
  if (!table) return std::unexpected(table.error());
  for (const CsvTable::Row& row : table->rows) {
    const auto kind = std::ranges::find(input.kinds, row.cells[0]);
    if (kind == input.kinds.end()) {
      return Wrong(*table, row, fmt::format("no device is of kind '{}'", row.cells[0]));
    }
    const auto numbers = Numbers(*table, row, 1);
    if (!numbers) return std::unexpected(numbers.error());
    const KindId id{static_cast<KindId::rep>(kind - input.kinds.begin())};
    for (FleetCost& cost : input.costs) {
      if (cost.kind == id) cost.exits.push_back({numbers->front(), numbers->back()});
    }
  }
  return {};
}

}  // namespace tactus
