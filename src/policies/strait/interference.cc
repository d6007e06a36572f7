#include "policies/strait/interference.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace tactus {
namespace {

struct Bound {
  double low;
  double high;
};

// Wide enough for every device that the tests and scenarios know; they keep a^x far from overflow
// (x <= 12: kMostExponent, below) and the model rising.
constexpr Bound BoundOf(std::size_t i) {
  if (i == Interference::kScale) return {1e-3, 5};
  if (i == Interference::kBase) return {1.1, 10};
  if (i == Interference::kOffset) return {-5, 5};
  if (i >= Interference::kPriority) return {0.05, 10};
  if (i >= Interference::kOwn) return {-2, 2};
  return {0, 1};
}

// The exponent of a neighbourhood that is beyond everything seen stops here: a^x stays finite.
constexpr double kMostExponent = 12;
constexpr double kMostDegree = 100;

// Conservative: it expects two fully used devices' worth of neighbours to cost half as much again,
// and knows of no difference between resources or levels.
Interference::Parameters Initial() {
  Interference::Parameters p{};
  p[Interference::kScale] = 0.3;
  p[Interference::kBase] = 2;
  p[Interference::kOffset] = -0.3;
  for (std::size_t r = 0; r < kResources; ++r) p[Interference::kWeights + r] = 0.15;
  for (int l = 0; l < kStraitLevels; ++l) p[Interference::kPriority + l] = 1;
  return p;
}

std::size_t PriorityPlace(int level) {
  return Interference::kPriority + static_cast<std::size_t>(std::min(level, kStraitLevels - 1));
}

// As a file names them.
std::string NameOf(std::size_t i) {
  if (i == Interference::kScale) return "scale";
  if (i == Interference::kBase) return "base";
  if (i == Interference::kOffset) return "offset";
  if (i >= Interference::kPriority) {
    return "priority " + std::to_string(i - Interference::kPriority + 1);
  }
  if (i >= Interference::kOwn) return i == Interference::kOwn ? "own tensor" : "own l2";
  return std::string("neighbours ") + kResourceNames[i - Interference::kWeights];
}

std::string Text(double number) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number);
  return error == std::errc{} ? std::string(buffer, end) : "?";
}

std::unexpected<Error> Refuse(const LearnedParameter& parameter, const std::string& why) {
  return InvalidArgument("parameter '" + parameter.name + "': " + why);
}

Status CheckParameter(const LearnedParameter& parameter, const Bound& bound) {
  if (!std::isfinite(parameter.mean) || !std::isfinite(parameter.square) || parameter.square < 0) {
    return Refuse(parameter, "mean must be a number, and square one from 0 on");
  }
  // Also true for a value that is no number.
  if (!(parameter.value >= bound.low && parameter.value <= bound.high)) {
    return Refuse(parameter, "value is " + Text(parameter.value) + ", must be from " +
                                 Text(bound.low) + " to " + Text(bound.high));
  }
  return {};
}

double OwnCompute(const Exposure& e) { return e.own[static_cast<std::size_t>(Resource::kTensor)]; }
double OwnMemory(const Exposure& e) { return e.own[static_cast<std::size_t>(Resource::kL2)]; }

}  // namespace

Interference::Interference(const InterferenceOptions& options)
    : options_(options), parameters_(Initial()) {}

// Eq. 4.
Interference::Forward Interference::Run(const Exposure& exposure) const {
  const Parameters& p = parameters_;
  double x = p[kOwn] * OwnCompute(exposure) + p[kOwn + 1] * OwnMemory(exposure);
  for (std::size_t r = 0; r < kResources; ++r) x += p[kWeights + r] * exposure.neighbours[r];
  x = std::clamp(x, -kMostExponent, kMostExponent);
  const double power = std::pow(p[kBase], x);
  return {x, power, p[kScale] * power + p[kOffset]};
}

// Eq. 5. Learning may pass through a model that expects neighbours to help; nobody plans on that.
double Interference::Degree(const Exposure& exposure) const {
  if (!(Peak(exposure.neighbours) > 0)) return 1;
  const double degree = 1 + parameters_[PriorityPlace(exposure.level)] * Run(exposure).excess;
  return std::clamp(degree, 1.0, kMostDegree);
}

bool Interference::Learn(const Exposure& exposure, double actual) {
  if (!options_.learn || !(Peak(exposure.neighbours) > 0)) return true;
  if (!(actual > 0.1 && actual <= kMostDegree)) {
    ++refused_;
    return false;
  }
  const Parameters& p = parameters_;
  const Forward forward = Run(exposure);
  const std::size_t priority = PriorityPlace(exposure.level);
  const double error = 1 + p[priority] * forward.excess - actual;
  const double pull = std::clamp(error, -options_.huber, options_.huber);  // Huber's gradient
  // By the chain rule from D down; k a^x ln a is what a step of x is worth.
  const double by_excess = pull * p[priority];
  const double by_x = by_excess * p[kScale] * forward.power * std::log(p[kBase]);
  Parameters gradient{};
  gradient[kScale] = by_excess * forward.power;
  gradient[kBase] = by_excess * p[kScale] * forward.x * forward.power / p[kBase];
  gradient[kOffset] = by_excess;
  for (std::size_t r = 0; r < kResources; ++r) {
    gradient[kWeights + r] = by_x * exposure.neighbours[r];
  }
  gradient[kOwn] = by_x * OwnCompute(exposure);
  gradient[kOwn + 1] = by_x * OwnMemory(exposure);
  gradient[priority] = pull * forward.excess;
  if (Descend(gradient, priority)) return true;
  ++refused_;
  return false;
}

void Interference::Relevel(std::span<const int> before, std::span<const int> now) {
  if (std::ranges::equal(before, now)) return;
  const Interference old = *this;
  for (std::size_t level = 0; level < kStraitLevels; ++level) {
    const std::size_t to = kPriority + level;
    parameters_[to] = Initial()[to];
    mean_[to] = square_[to] = 0;
    // Below all that models have there is one more, for requests with a priority of their own.
    if (level > now.size()) continue;
    const auto found = level == now.size() ? before.end() : std::ranges::find(before, now[level]);
    if (level < now.size() && found == before.end()) continue;
    const std::size_t from = PriorityPlace(static_cast<int>(found - before.begin()));
    parameters_[to] = old.parameters_[from];
    mean_[to] = old.mean_[from];
    square_[to] = old.square_[from];
  }
}

// One step of Adam. Coefficients of other levels had no part in this batch and stay.
bool Interference::Descend(const Parameters& gradient, std::size_t priority) {
  for (const double g : gradient) {
    if (!std::isfinite(g)) return false;
  }
  constexpr double kEpsilon = 1e-8;
  ++steps_;
  decay1_ *= options_.beta1;
  decay2_ *= options_.beta2;
  for (std::size_t i = 0; i < kParameters; ++i) {
    if (i >= kPriority && i != priority) continue;
    mean_[i] = options_.beta1 * mean_[i] + (1 - options_.beta1) * gradient[i];
    square_[i] = options_.beta2 * square_[i] + (1 - options_.beta2) * gradient[i] * gradient[i];
    const double step = options_.rate * (mean_[i] / (1 - decay1_)) /
                        (std::sqrt(square_[i] / (1 - decay2_)) + kEpsilon);
    const Bound bound = BoundOf(i);
    parameters_[i] = std::clamp(parameters_[i] - step, bound.low, bound.high);
  }
  return true;
}

LearnedState Interference::Save() const {
  LearnedState learned{.steps = steps_, .parameters = {}};
  for (std::size_t i = 0; i < kParameters; ++i) {
    learned.parameters.push_back(
        {.name = NameOf(i), .value = parameters_[i], .mean = mean_[i], .square = square_[i]});
  }
  return learned;
}

Status Interference::Restore(const LearnedState& learned) {
  Interference restored(options_);
  std::array<bool, kParameters> seen{};
  for (const LearnedParameter& parameter : learned.parameters) {
    std::size_t i = 0;
    while (i < kParameters && NameOf(i) != parameter.name) ++i;
    if (i == kParameters) return Refuse(parameter, "not known here");
    if (seen[i]) return Refuse(parameter, "stands there twice");
    seen[i] = true;
    if (const auto checked = CheckParameter(parameter, BoundOf(i)); !checked) return checked;
    restored.parameters_[i] = parameter.value;
    restored.mean_[i] = parameter.mean;
    restored.square_[i] = parameter.square;
  }
  for (std::size_t i = 0; i < kParameters; ++i) {
    if (!seen[i]) return InvalidArgument("parameter '" + NameOf(i) + "' is missing");
  }
  if (learned.steps < 0) return InvalidArgument("steps must be from 0 on");
  // By the same multiplications, so that the next step is the same to the last bit. After some
  // thousands of them so little is left that they change nothing more.
  for (std::int64_t t = 0; t < learned.steps; ++t) {
    const double before = restored.decay2_;
    restored.decay1_ *= options_.beta1;
    restored.decay2_ *= options_.beta2;
    if (restored.decay2_ == before) break;
  }
  parameters_ = restored.parameters_;
  mean_ = restored.mean_;
  square_ = restored.square_;
  decay1_ = restored.decay1_;
  decay2_ = restored.decay2_;
  steps_ = learned.steps;
  return {};
}

}  // namespace tactus
