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

// The part of `wanted`, by model, that all models get of the plan.
double Part(const Plan& plan, const std::vector<double>& wanted) {
  const std::vector<double> carried = Carries(plan, wanted.size());
  double part = 1;
  for (std::size_t m = 0; m < wanted.size(); ++m) {
    if (wanted[m] > 0) part = std::min(part, carried[m] / wanted[m]);
  }
  return part;
}

// In devices.
double Takes(const Plan& plan) {
  double share = 0;
  for (const LanePlan& lane : plan.lanes) share += lane.entries.empty() ? 0 : lane.spec.fraction;
  return share;
}

}  // namespace

Replanner::Replanner(PlanInput input, std::unique_ptr<Planner> planner, ReplannerOptions options)
    : planner_(std::move(planner)), options_(options) {
  Serve(std::move(input));
  late_ = false;
}

void Replanner::Serve(PlanInput input) {
  input_ = std::move(input);
  average_.clear();
  for (const PlannedModel& model : input_.models) average_.push_back(model.rate_rps);
  arrived_.assign(input_.models.size(), 0);
  passed_ = {};
  good_ = bad_ = 0;
  late_ = true;
  given_up_ = false;
}

double Replanner::Wanted(double rate_rps) const {
  return std::max(rate_rps * (1 + options_.headroom), options_.least_rps);
}

Expected<Plan> Replanner::First() {
  for (std::size_t m = 0; m < average_.size(); ++m) input_.models[m].rate_rps = Wanted(average_[m]);
  ++questions_;
  late_ = false;
  auto plan = planner_->Solve(input_);
  if (plan) plan->epoch = ++plans_;
  return plan;
}

std::optional<Plan> Replanner::Look(const Plan& current, bool busy, Duration passed) {
  const std::int64_t all = good_ + bad_;
  late_ = late_ || static_cast<double>(bad_) > options_.bad_threshold * static_cast<double>(all);
  good_ = bad_ = 0;
  passed_ += passed;
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
    given_up_ = false;
  }
  if (busy || given_up_ || !(due || late_)) return std::nullopt;
  return Better(current, rates, std::exchange(late_, false));
}

std::optional<Plan> Replanner::Better(const Plan& current, const std::vector<double>& rates_rps,
                                      bool late) {
  const std::vector<double> carried = Carries(current, rates_rps.size());
  std::vector<double> wanted;
  bool enough = true;
  for (std::size_t m = 0; m < rates_rps.size(); ++m) {
    wanted.push_back(Wanted(rates_rps[m]));
    input_.models[m].rate_rps = wanted[m];
    enough = enough && carried[m] >= (late ? 1 : options_.kept) * wanted[m];
  }
  std::optional<Plan> plan = Largest();
  if (!plan) return std::nullopt;
  if (!shortage_.empty()) {
    // Less than this more is within what the search for it knows.
    constexpr double kMore = 1.05;
    if (Part(*plan, wanted) <= kMore * Part(current, wanted)) return std::nullopt;
  } else if (enough && Takes(*plan) > Takes(current) - options_.saving + 1e-9) {
    return std::nullopt;
  }
  plan->epoch = ++plans_;
  return plan;
}

// Of the input's rates, the largest part that has a plan, to a few percent.
std::optional<Plan> Replanner::Largest() {
  ++questions_;
  auto all = planner_->Solve(input_);
  shortage_ = all ? std::string() : all.error().message;
  if (all) return std::move(*all);
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
