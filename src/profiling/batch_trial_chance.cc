// Outputs that are another each time for the same row, as noise makes them: what of them can be
// compared are means and spreads, over many runs.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "profiling/batch_trial.h"
#include "profiling/chance.h"

namespace tactus {
namespace {

constexpr std::size_t kChanceRuns = 64;
constexpr std::size_t kLeastChanceRuns = 16;
constexpr std::size_t kChanceNumbers = 128;  // of an output, that are compared

}  // namespace

bool Trial::TryChance() {
  const std::string names = NamesOfChance();
  if (names.empty()) return true;
  if (!DrawLoudRows()) return End(BatchTrial::End::kSilent, failure_);
  std::vector<std::size_t> turned(rows_.size());
  std::iota(turned.rbegin(), turned.rend(), std::size_t{0});
  const std::vector<std::vector<std::size_t>> orders{{0}, {1}, {0, 1}, turned};
  std::vector<std::vector<Outputs>> runs(orders.size());
  for (std::size_t i = 0; i < kChanceRuns; ++i) {
    if (TimeIsUp() && i < kLeastChanceRuns) {
      return End(BatchTrial::End::kSilent,
                 fmt::format("{} differs each time for the same input, and a second is too short "
                             "to compare its mean and spread",
                             names));
    }
    if (TimeIsUp()) break;
    // In turn, so that what changes as time goes by changes for all.
    for (std::size_t o = 0; o < orders.size(); ++o) {
      auto outputs = RunTogether(orders[o]);
      if (!outputs) return End(BatchTrial::End::kFails, failure_);
      runs[o].push_back(*std::move(outputs));
    }
  }
  for (std::size_t e = 0; e < outputs_.size(); ++e) {
    for (std::size_t t = 0; t < outputs_[e].size(); ++t) {
      if (outputs_[e][t].chance && !SpreadAlikeAmongOthers(orders, runs, e, t)) return false;
    }
  }
  return true;
}

// The first two of the orders have run a row alone, and the others both among others.
bool Trial::SpreadAlikeAmongOthers(const std::vector<std::vector<std::size_t>>& orders,
                                   const std::vector<std::vector<Outputs>>& runs, std::size_t exit,
                                   std::size_t output) {
  const TensorSpec& spec = spec_.outputs[output];
  const auto numbers = [&](std::size_t order, std::size_t row) {
    const auto place = std::ranges::find(orders[order], row) - orders[order].begin();
    Series series;
    for (const Outputs& run : runs[order]) {
      const auto of_row =
          run[exit]->tensors[output].Row(static_cast<std::size_t>(place), orders[order].size());
      series.push_back(SomeNumbers(spec.type, of_row, kChanceNumbers));
    }
    return series;
  };
  for (const std::size_t row : {0, 1}) {
    const Series alone = numbers(row, row);
    std::vector<double> allowed;
    for (const double number : alone[0]) {
      allowed.push_back(Rounding(spec.type, number, outputs_[exit][output].size, slack_));
    }
    for (std::size_t order = 2; order < orders.size(); ++order) {
      if (SpreadAlike(alone, numbers(order, row), allowed)) continue;
      unlike_ = fmt::format("'{}'", spec.name);
      return End(BatchTrial::End::kDiffers, "");
    }
  }
  return true;
}

bool Trial::AllOfChance() const {
  return std::ranges::all_of(outputs_, [](const auto& outputs) {
    return std::ranges::all_of(outputs, &OutputOfExit::chance);
  });
}

std::string Trial::NamesOfChance() const {
  std::vector<std::string> names;
  for (std::size_t t = 0; t < spec_.outputs.size(); ++t) {
    const auto wavers = [t](const auto& outputs) {
      return t < outputs.size() && outputs[t].chance;
    };
    if (std::ranges::any_of(outputs_, wavers)) {
      names.push_back(fmt::format("'{}'", spec_.outputs[t].name));
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace tactus
