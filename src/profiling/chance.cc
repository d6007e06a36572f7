#include "profiling/chance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace tactus {
namespace {

constexpr int kDeals = 99;
constexpr double kBeyondChance = 1.5;    // times the largest difference that a deal has shown
constexpr double kLeastFound = 4;        // standard errors
constexpr double kArithmetic = 1e-12;    // what the sums here round, of the largest number
constexpr double kLargestNumber = 1e60;  // its square is finite

// What is compared, by run, less the mean of all runs: a number, or how far it lies from its mean.
struct Feature {
  std::vector<double> runs;
  double allowed = 0;
};

// The feature of these values, and the one of their distances from their mean.
void AddWithSpread(std::vector<double> values, double allowed, std::vector<Feature>& features) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  allowed += kArithmetic * most;
  const auto centre = [](std::vector<double>& runs) {
    const double mean =
        std::accumulate(runs.begin(), runs.end(), 0.0) / static_cast<double>(runs.size());
    for (double& value : runs) value -= mean;
  };
  centre(values);
  std::vector<double> spread;
  for (const double value : values) spread.push_back(std::abs(value));
  centre(spread);
  features.push_back({std::move(values), allowed});
  features.push_back({std::move(spread), allowed});
}

double DeviationOf(const std::vector<double>& centred) {
  double squares = 0;
  for (const double value : centred) squares += value * value;
  return std::sqrt(squares / static_cast<double>(centred.size()));
}

// Of each number, and of all together: what is little in each may be much in the sum of all.
std::vector<Feature> FeaturesOf(const Series& a, const Series& b, std::span<const double> allowed) {
  std::size_t numbers = allowed.size();
  for (const Series* series : {&a, &b}) {
    for (const auto& run : *series) numbers = std::min(numbers, run.size());
  }
  std::vector<Feature> features;
  Feature sum{std::vector<double>(a.size() + b.size(), 0.0)};
  Feature spread = sum;
  for (std::size_t i = 0; i < numbers; ++i) {
    std::vector<double> values;
    for (const Series* series : {&a, &b}) {
      for (const auto& run : *series) {
        values.push_back(std::clamp(run[i], -kLargestNumber, kLargestNumber));
      }
    }
    AddWithSpread(std::move(values), allowed[i], features);
    const Feature& number = features[features.size() - 2];
    const double deviation = DeviationOf(number.runs);
    if (!(deviation > allowed[i])) continue;
    for (std::size_t r = 0; r < sum.runs.size(); ++r) {
      sum.runs[r] += number.runs[r] / deviation;
      spread.runs[r] += std::abs(number.runs[r]) / deviation;
    }
    sum.allowed += allowed[i] / deviation;
  }
  AddWithSpread(std::move(sum.runs), sum.allowed, features);
  AddWithSpread(std::move(spread.runs), sum.allowed, features);
  return features;
}

// The largest difference of means, in standard errors, between these runs and as many others.
double Largest(const std::vector<Feature>& features, std::span<const std::size_t> first) {
  const double count = static_cast<double>(first.size());
  double largest = 0;
  for (const Feature& feature : features) {
    double sum = 0;  // of the others, it is the negative
    for (const std::size_t r : first) sum += feature.runs[r];
    const double apart = 2 * std::abs(sum) / count;
    if (apart == 0) continue;
    double squares = 0;  // of all, from the means of the two
    for (const double value : feature.runs) squares += value * value;
    squares = std::max(0.0, squares - 2 * sum * sum / count);
    const double error = squares / (count * count) + feature.allowed * feature.allowed;
    largest = std::max(largest, apart / std::sqrt(error));
  }
  return largest;
}

}  // namespace

bool SpreadAlike(const Series& a, const Series& b, std::span<const double> allowed) {
  const std::vector<Feature> features = FeaturesOf(a, b, allowed);
  std::vector<std::size_t> runs(a.size() + b.size());
  std::iota(runs.begin(), runs.end(), std::size_t{0});
  const auto first = std::span(runs).first(a.size());
  const double found = Largest(features, first);
  if (found < kLeastFound) return true;
  double dealt = 0;
  Rng rng = Rng::Stream(1, "chance/deals");
  for (int deal = 0; deal < kDeals; ++deal) {
    for (std::size_t r = runs.size(); r > 1; --r) std::swap(runs[r - 1], runs[rng.Below(r)]);
    dealt = std::max(dealt, Largest(features, first));
    if (found <= kBeyondChance * dealt) return true;
  }
  return false;
}

}  // namespace tactus
