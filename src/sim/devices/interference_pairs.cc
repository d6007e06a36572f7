#include "sim/devices/interference_pairs.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "workload/csv.h"

namespace tactus {
namespace {

constexpr std::array kColumns = {"slowdown", "l2", "dram", "beside_l2", "beside_dram"};
constexpr const char* kHeldOut = "held_out";

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

Expected<bool> IsHeldOut(const CsvTable& table, const CsvTable::Row& row, std::size_t column) {
  const auto value = ParseNumber(row.cells[column]);
  if (value == 0 || value == 1) return value == 1;
  return InvalidArgument(fmt::format("{}:{}: {} is '{}'; it is 0 or 1", table.where, row.line,
                                     kHeldOut, row.cells[column]));
}

Expected<InterferencePairs> ToPairs(const Expected<CsvTable>& table) {
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
  const auto held_out = table->Column(kHeldOut);
  InterferencePairs pairs;
  for (const CsvTable::Row& row : table->rows) {
    auto sample = ToSample(*table, row, at);
    if (!sample) return std::unexpected(sample.error());
    pairs.samples.push_back(*sample);
    if (!held_out) continue;
    const auto told = IsHeldOut(*table, row, *held_out);
    if (!told) return std::unexpected(told.error());
    pairs.held_out.push_back(*told);
  }
  return pairs;
}

// The same for both sides of a pair: what either uses, the lesser first.
using PairKey = std::pair<Throughput, Throughput>;
PairKey KeyOf(const InterferenceSample& sample) {
  const auto [lesser, greater] = std::minmax(sample.own, sample.other);
  return {lesser, greater};
}

}  // namespace

Expected<InterferencePairs> ParseInterferencePairs(std::string_view text,
                                                   const std::string& where) {
  return ToPairs(ParseCsv(text, where));
}

Expected<InterferencePairs> LoadInterferencePairs(const std::string& path) {
  return ToPairs(ReadCsv(path));
}

SplitSamples SplitAsTold(const InterferencePairs& pairs) {
  SplitSamples split;
  for (std::size_t i = 0; i < pairs.samples.size(); ++i) {
    (pairs.held_out[i] ? split.held_out : split.fitted).push_back(pairs.samples[i]);
  }
  return split;
}

SplitSamples SplitByPair(std::span<const InterferenceSample> samples, double held_out,
                         std::uint64_t seed) {
  std::map<PairKey, std::vector<InterferenceSample>> pairs;
  for (const InterferenceSample& sample : samples) pairs[KeyOf(sample)].push_back(sample);
  std::vector<InterferenceSample> one_of_each;
  for (const auto& [key, sides] : pairs) one_of_each.push_back(sides.front());
  const SplitSamples drawn = Split(one_of_each, held_out, seed);
  SplitSamples split;
  for (const auto& [from, to] :
       {std::pair{&drawn.fitted, &split.fitted}, std::pair{&drawn.held_out, &split.held_out}}) {
    for (const InterferenceSample& one : *from) {
      const std::vector<InterferenceSample>& sides = pairs.at(KeyOf(one));
      to->insert(to->end(), sides.begin(), sides.end());
    }
  }
  return split;
}

}  // namespace tactus
