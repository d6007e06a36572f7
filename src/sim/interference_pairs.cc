#include "sim/interference_pairs.h"

#include <array>

#include <fmt/format.h>

#include "workload/csv.h"

namespace tactus {
namespace {

constexpr std::array kColumns = {"slowdown", "l2", "dram", "beside_l2", "beside_dram"};

Expected<InterferenceSample> ToSample(const CsvTable& table, const CsvTable::Row& row,
                                      const std::array<std::size_t, kColumns.size()>& at) {
  std::array<double, kColumns.size()> values{};
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const std::string& cell = row.cells[at[i]];
    const auto value = ParseNumber(cell);
    const bool is_factor = i == 0;
    if (!value || !(is_factor ? *value > 0 : *value >= 0 && *value <= 1)) {
      return InvalidArgument(
          fmt::format("{}:{}: {} is '{}'; {}", table.where, row.line, kColumns[i], cell,
                      is_factor ? "a slowdown is a number above 0"
                                : "a use is a share of the device, from 0 to 1"));
    }
    values[i] = *value;
  }
  InterferenceSample sample{.factor = values[0]};
  sample.own[static_cast<std::size_t>(Resource::kL2)] = values[1];
  sample.own[static_cast<std::size_t>(Resource::kDram)] = values[2];
  sample.other[static_cast<std::size_t>(Resource::kL2)] = values[3];
  sample.other[static_cast<std::size_t>(Resource::kDram)] = values[4];
  return sample;
}

Expected<std::vector<InterferenceSample>> ToSamples(const Expected<CsvTable>& table) {
  if (!table) return std::unexpected(table.error());
  std::array<std::size_t, kColumns.size()> at{};
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const auto column = table->Column(kColumns[i]);
    if (!column) {
      return InvalidArgument(fmt::format(
          "{}: has no column '{}'; `./run bench pairs --csv FILE` writes slowdown, l2, dram, "
          "beside_l2 and beside_dram",
          table->where, kColumns[i]));
    }
    at[i] = *column;
  }
  std::vector<InterferenceSample> samples;
  for (const CsvTable::Row& row : table->rows) {
    auto sample = ToSample(*table, row, at);
    if (!sample) return std::unexpected(sample.error());
    samples.push_back(*sample);
  }
  return samples;
}

}  // namespace

Expected<std::vector<InterferenceSample>> ParseInterferencePairs(std::string_view text,
                                                                 const std::string& where) {
  return ToSamples(ParseCsv(text, where));
}

Expected<std::vector<InterferenceSample>> LoadInterferencePairs(const std::string& path) {
  return ToSamples(ReadCsv(path));
}

}  // namespace tactus
