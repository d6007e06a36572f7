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

// Batches of a few rows.
struct Orders {
  std::vector<std::vector<std::size_t>> all;
  // A row stands in the same place of two of them, among others and alone or among different ones.
  struct Pair {
    std::size_t row, first, second;
  };
  std::vector<Pair> pairs;
};

// No row is compared in different places: generators of random numbers may be so poor that each
// place has its own.
Orders OrdersOf(std::size_t rows) {
  std::vector<std::size_t> forwards(rows);
  std::iota(forwards.begin(), forwards.end(), std::size_t{0});
  const std::vector<std::size_t> backwards(forwards.rbegin(), forwards.rend());
  const std::size_t other = rows > 2 ? 2 : 1;
  std::vector<std::size_t> alike(rows, other);
  alike.back() = 0;
  return {{{0}, {0, 1}, forwards, {other, 1}, backwards, alike},
          {{0, 0, 1}, {0, 0, 2}, {1, 1, 3}, {0, 4, 5}}};
}

}  // namespace

bool Trial::TryChance() {
  const std::string names = NamesOfChance();
  if (names.empty()) return true;
  if (!DrawLoudRows()) return End(BatchTrial::End::kSilent, failure_);
  const Orders orders = OrdersOf(rows_.size());
  std::vector<std::vector<Outputs>> runs(orders.all.size());
  for (std::size_t i = 0; i < kChanceRuns; ++i) {
    if (TimeIsUp() && i < kLeastChanceRuns) {
      return End(BatchTrial::End::kSilent,
                 fmt::format("{} differs each time for the same input, and a second is too short "
                             "to compare its mean and spread",
                             names));
    }
    if (TimeIsUp()) break;
    // In turn, so that what changes as time goes by changes for all.
    for (std::size_t o = 0; o < orders.all.size(); ++o) {
      auto outputs = RunTogether(orders.all[o]);
      if (!outputs) return End(BatchTrial::End::kFails, failure_);
      runs[o].push_back(*std::move(outputs));
    }
  }
  for (std::size_t e = 0; e < outputs_.size(); ++e) {
    for (std::size_t t = 0; t < outputs_[e].size(); ++t) {
      if (!outputs_[e][t].chance) continue;
      for (const Orders::Pair& pair : orders.pairs) {
        const auto numbers = [&](std::size_t order) {
          return RunsOf(pair.row, orders.all[order], runs[order], e, t);
        };
        if (SpreadAlike(numbers(pair.first), numbers(pair.second), e, t)) continue;
        unlike_ = fmt::format("'{}'", spec_.outputs[t].name);
        return End(BatchTrial::End::kDiffers, "");
      }
    }
  }
  return true;
}

std::vector<std::vector<double>> Trial::RunsOf(std::size_t row, std::span<const std::size_t> order,
                                               std::span<const Outputs> runs, std::size_t exit,
                                               std::size_t output) const {
  // The last of equal ones: in front, a row is compared where it stands once.
  const auto behind = std::find(order.rbegin(), order.rend(), row);
  const auto place = static_cast<std::size_t>(order.rend() - behind) - 1;
  Series series;
  for (const Outputs& run : runs) {
    const auto of_row = run[exit]->tensors[output].Row(place, order.size());
    series.push_back(SomeNumbers(spec_.outputs[output].type, of_row, kChanceNumbers));
  }
  return series;
}

bool Trial::SpreadAlike(const std::vector<std::vector<double>>& a,
                        const std::vector<std::vector<double>>& b, std::size_t exit,
                        std::size_t output) const {
  std::vector<double> allowed;
  for (const double number : a[0]) {
    allowed.push_back(
        Rounding(spec_.outputs[output].type, number, outputs_[exit][output].size, slack_));
  }
  return tactus::SpreadAlike(a, b, allowed);
}

bool Trial::AllOfChance() const {
  return std::ranges::all_of(outputs_, [](const auto& outputs) {
    return std::ranges::all_of(outputs, &OutputOfExit::chance);
  });
}

std::string Trial::NamesOfChance() const {
  return NamesWhere([](const OutputOfExit& output) { return output.chance; }, false);
}

std::string Trial::NamesOfSame() const {
  return NamesWhere([](const OutputOfExit& output) { return !output.varied; }, true);
}

std::string Trial::NamesWhere(bool (*holds)(const OutputOfExit&), bool at_all_exits) const {
  std::vector<std::string> names;
  for (std::size_t t = 0; t < spec_.outputs.size(); ++t) {
    const auto there = [&](const auto& outputs) {
      return t < outputs.size() ? holds(outputs[t]) : at_all_exits;
    };
    if (at_all_exits ? std::ranges::all_of(outputs_, there)
                     : std::ranges::any_of(outputs_, there)) {
      names.push_back(fmt::format("'{}'", spec_.outputs[t].name));
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace tactus
