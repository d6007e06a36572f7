#include "contention_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tactus {
namespace {

constexpr double kLeastCapacity = 0.02, kMostCapacity = 50, kMostCrosstalk = 5;

double Misfit(const Contention& contention, std::span<const MeasuredPair> pairs) {
  double sum = 0;
  for (const MeasuredPair& pair : pairs) {
    const auto predicted = Slowdowns(contention, pair);
    for (std::size_t i = 0; i < 2; ++i) sum += std::abs(std::log(predicted[i] / pair.slowdown[i]));
  }
  return sum;
}

// One parameter at a time, in steps that shrink where none helps any more.
double Descend(std::span<const MeasuredPair> pairs, std::span<const std::size_t> resources,
               Contention& best) {
  double least = Misfit(best, pairs);
  const auto better = [&](const Contention& tried) {
    const double misfit = Misfit(tried, pairs);
    if (!(misfit < least)) return false;
    least = misfit;
    best = tried;
    return true;
  };
  for (double step = 0.5; step > 1e-3;) {
    bool moved = false;
    for (const std::size_t r : resources) {
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        Contention tried = best;
        tried.capacity[r] = std::clamp(best.capacity[r] * factor, kLeastCapacity, kMostCapacity);
        moved |= better(tried);
      }
    }
    for (const double change : {step / 5, -step / 5}) {
      Contention tried = best;
      tried.crosstalk = std::clamp(best.crosstalk + change, 0.0, kMostCrosstalk);
      moved |= better(tried);
    }
    if (!moved) step /= 2;
  }
  return least;
}

double Tail(std::span<const MeasuredPair> pairs) {
  constexpr double kLoses = 0.05;
  constexpr double kNormal95 = 1.6449;  // of a standard normal variable
  std::vector<double> spreads;
  for (const MeasuredPair& pair : pairs) {
    for (std::size_t i = 0; i < 2; ++i) {
      const double usual = pair.slowdown[i] - 1;
      const double in_tail = pair.slowdown_95[i] - 1;
      if (usual < kLoses || in_tail < usual) continue;
      spreads.push_back(std::log(in_tail / usual) / kNormal95);
    }
  }
  if (spreads.empty()) return 0;
  const auto middle = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() / 2);
  std::nth_element(spreads.begin(), middle, spreads.end());
  return *middle;
}

}  // namespace

std::array<double, 2> Slowdowns(const Contention& contention, const MeasuredPair& pair) {
  const std::array<Contender, 2> batches{Contender{.use = pair.use[0]}, {.use = pair.use[1]}};
  std::array<double, 2> slowdown{};
  Slowdowns(contention, batches, slowdown);
  return slowdown;
}

FittedContention FitContention(std::span<const MeasuredPair> pairs) {
  std::vector<std::size_t> asked;
  for (std::size_t r = 0; r < kResources; ++r) {
    const bool used = std::ranges::any_of(
        pairs, [r](const MeasuredPair& pair) { return pair.use[0][r] + pair.use[1][r] > 0; });
    if (used) asked.push_back(r);
  }
  FittedContention fitted;
  double least = -1;
  for (const double start : {0.3, 1.0, 2.0}) {
    Contention tried{.crosstalk = 0.05};
    for (const std::size_t r : asked) tried.capacity[r] = start;
    const double misfit = Descend(pairs, asked, tried);
    if (least >= 0 && misfit >= least) continue;
    least = misfit;
    fitted.contention = tried;
  }
  fitted.tail = Tail(pairs);
  return fitted;
}

}  // namespace tactus
