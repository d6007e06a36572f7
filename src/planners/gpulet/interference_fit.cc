#include "planners/gpulet/interference_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/rng.h"

namespace tactus {
namespace {

constexpr std::size_t kTerms = 5;
using Terms = std::array<double, kTerms>;

double PartOf(const Throughput& use, Resource resource) {
  return use[static_cast<std::size_t>(resource)];
}

Terms TermsOf(const InterferenceSample& sample) {
  return {PartOf(sample.own, Resource::kL2), PartOf(sample.other, Resource::kL2),
          PartOf(sample.own, Resource::kDram), PartOf(sample.other, Resource::kDram), 1};
}

// The normal equations, `rows` with the right-hand side as their last column, by elimination.
Terms Solve(std::array<std::array<double, kTerms + 1>, kTerms> rows) {
  constexpr double kSingular = 1e-10;  // of the column's own size
  Terms scale;
  for (std::size_t i = 0; i < kTerms; ++i) scale[i] = rows[i][i];
  std::array<bool, kTerms> used{};
  // The constant first: a column that is constant itself then adds nothing.
  for (const std::size_t column : {4u, 0u, 1u, 2u, 3u}) {
    if (rows[column][column] <= kSingular * scale[column]) continue;
    used[column] = true;
    for (std::size_t row = 0; row < kTerms; ++row) {
      if (row == column) continue;
      const double factor = rows[row][column] / rows[column][column];
      for (std::size_t k = 0; k <= kTerms; ++k) rows[row][k] -= factor * rows[column][k];
    }
  }
  Terms solution{};
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (used[i]) solution[i] = rows[i][kTerms] / rows[i][i];
  }
  return solution;
}

}  // namespace

Expected<InterferenceModel> FitInterference(std::span<const InterferenceSample> samples) {
  if (samples.size() < kTerms) {
    return InvalidArgument("five coefficients need at least five measurements, not " +
                           std::to_string(samples.size()));
  }
  std::array<std::array<double, kTerms + 1>, kTerms> normal{};
  for (const InterferenceSample& sample : samples) {
    const Terms terms = TermsOf(sample);
    for (std::size_t i = 0; i < kTerms; ++i) {
      for (std::size_t k = 0; k < kTerms; ++k) normal[i][k] += terms[i] * terms[k];
      normal[i][kTerms] += terms[i] * sample.factor;
    }
  }
  return InterferenceModel{.c = Solve(normal)};
}

std::vector<double> RelativeErrors(const InterferenceModel& model,
                                   std::span<const InterferenceSample> samples) {
  std::vector<double> errors;
  for (const InterferenceSample& sample : samples) {
    const double predicted = model.Slowdown(sample.own, sample.other);
    errors.push_back(std::abs(predicted - sample.factor) / sample.factor);
  }
  std::ranges::sort(errors);
  return errors;
}

SplitSamples Split(std::span<const InterferenceSample> samples, double held_out,
                   std::uint64_t seed) {
  std::vector<InterferenceSample> drawn(samples.begin(), samples.end());
  Rng rng = Rng::Stream(seed, "interference/held-out");
  for (std::size_t i = drawn.size(); i > 1; --i) std::swap(drawn[i - 1], drawn[rng.Below(i)]);
  const auto count = static_cast<double>(drawn.size());
  const double wanted = std::clamp(std::round(held_out * count), std::min(1.0, count),
                                   std::max(count - 1, std::min(1.0, count)));
  const auto middle = drawn.end() - static_cast<std::ptrdiff_t>(wanted);
  return {.fitted = {drawn.begin(), middle}, .held_out = {middle, drawn.end()}};
}

double QuantileOf(std::span<const double> ascending, double part) {
  if (ascending.empty()) return 0;
  const double rank = std::ceil(part * static_cast<double>(ascending.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return ascending[std::min(index, ascending.size() - 1)];
}

}  // namespace tactus
