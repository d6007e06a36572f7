#include "planners/replanner.h"

#include <algorithm>
#include <utility>

namespace tactus {
namespace {

// By model.
std::vector<double> Carries(const Plan& plan, std::size_t models) {
  std::vector<double> rates(models);
  for (const LanePlan& lane : plan.lanes) {
    for (const PlanEntry& entry : lane.entries) {
      rates[entry.model.value()] += entry.batch / ToSeconds(lane.cycle);
    }
  }
  return rates;
}

// In devices.
double Takes(const Plan& plan) {
  double share = 0;
  for (const LanePlan& lane : plan.lanes) share += lane.entries.empty() ? 0 : lane.spec.fraction;
  return share;
}

}  // namespace

Replanner::Replanner(PlanInput input, std::unique_ptr<Planner> planner, ReplannerOptions options)
    : input_(std::move(input)),
      planner_(std::move(planner)),
      options_(options),
      arrived_(input_.models.size()) {
  for (const PlannedModel& model : input_.models) average_.push_back(model.rate_rps);
}

Expected<Plan> Replanner::First() {
  for (std::size_t m = 0; m < average_.size(); ++m) {
    input_.models[m].rate_rps = average_[m] * (1 + options_.headroom);
  }
  auto plan = planner_->Solve(input_);
  if (plan) plan->epoch = ++plans_;
  return plan;
}

std::optional<Plan> Replanner::Look(const Plan& current, bool busy) {
  const std::int64_t all = good_ + bad_;
  late_ = late_ || static_cast<double>(bad_) > options_.bad_threshold * static_cast<double>(all);
  good_ = bad_ = 0;
  passed_ += kLook;
  std::vector<double> rates = average_;
  for (std::size_t m = 0; m < rates.size(); ++m) {
    const double newest = static_cast<double>(arrived_[m]) / ToSeconds(passed_);
    rates[m] = options_.weight * newest + (1 - options_.weight) * average_[m];
    // A few seconds say more of a rise than of a fall.
    if (passed_ < options_.period) rates[m] = std::max(rates[m], average_[m]);
  }
  const bool due = passed_ >= options_.period;
  if (due) {
    average_ = rates;
    std::ranges::fill(arrived_, 0);
    passed_ = {};
  }
  if (busy || !(due || late_)) return std::nullopt;
  return Better(current, rates, std::exchange(late_, false));
}

std::optional<Plan> Replanner::Better(const Plan& current, const std::vector<double>& rates_rps,
                                      bool late) {
  const std::vector<double> carried = Carries(current, rates_rps.size());
  bool enough = true;
  for (std::size_t m = 0; m < rates_rps.size(); ++m) {
    const double wanted = rates_rps[m] * (1 + options_.headroom);
    input_.models[m].rate_rps = wanted;
    enough = enough && carried[m] >= (late ? 1 : options_.kept) * wanted;
  }
  std::optional<Plan> plan = Largest();
  if (!plan || (enough && Takes(*plan) > Takes(current) - options_.saving)) return std::nullopt;
  plan->epoch = ++plans_;
  return plan;
}

// Of the input's rates, the largest part that has a plan, to a few percent.
std::optional<Plan> Replanner::Largest() {
  if (auto plan = planner_->Solve(input_)) return std::move(*plan);
  constexpr int kHalvings = 6;
  const PlanInput whole = input_;
  std::optional<Plan> best;
  double low = 0;
  double high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    for (std::size_t m = 0; m < whole.models.size(); ++m) {
      input_.models[m].rate_rps = middle * whole.models[m].rate_rps;
    }
    auto plan = planner_->Solve(input_);
    (plan ? low : high) = middle;
    if (plan) best = std::move(*plan);
  }
  return best;
}

}  // namespace tactus
