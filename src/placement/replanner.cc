#include "placement/replanner.h"

#include <algorithm>
#include <utility>

namespace tactus {
namespace {

// By model.
std::vector<double> Sustained(const Plan& plan, std::size_t models) {
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
  const std::vector<double> sustained = Sustained(plan, wanted.size());
  double part = 1;
  for (std::size_t m = 0; m < wanted.size(); ++m) {
    if (wanted[m] > 0) part = std::min(part, sustained[m] / wanted[m]);
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
  due_ = false;
  late_ = true;
  given_up_ = false;
}

double Replanner::Wanted(double rate_rps) const {
  return std::max(rate_rps * (1 + options_.headroom), options_.least_rps);
}

Expected<Plan> Replanner::First() {
  for (std::size_t m = 0; m < average_.size(); ++m) {
    input_.models[m].rate_rps = Wanted(average_[m]);
    input_.models[m].expected_rps = average_[m];
  }
  late_ = false;
  auto plan = Largest();
  if (!shortage().empty()) return std::unexpected(shortage_);
  plan->epoch = ++plans_;
  return std::move(*plan);
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
  if (passed_ >= options_.period) {
    due_ = true;
    average_ = rates;
    std::ranges::fill(arrived_, 0);
    passed_ = {};
    given_up_ = false;
  }
  if (busy || given_up_ || !(due_ || late_)) return std::nullopt;
  due_ = false;
  if (std::exchange(late_, false)) return Better(current, rates, true);
  return Better(current, average_, false);  // seconds since the period's end say little
}

std::optional<Plan> Replanner::Better(const Plan& current, const std::vector<double>& rates_rps,
                                      bool late) {
  const std::vector<double> sustained = Sustained(current, rates_rps.size());
  std::vector<double> wanted;
  bool enough = true;
  for (std::size_t m = 0; m < rates_rps.size(); ++m) {
    wanted.push_back(Wanted(rates_rps[m]));
    input_.models[m].rate_rps = wanted[m];
    input_.models[m].expected_rps = rates_rps[m];
    enough = enough && sustained[m] >= (late ? 1 : options_.kept) * wanted[m];
  }
  std::optional<Plan> plan = Largest();
  if (!plan) return std::nullopt;
  if (!shortage().empty()) {
    // Less than this more is within what the search for it knows.
    constexpr double kMore = 1.05;
    if (Part(*plan, wanted) <= kMore * Part(current, wanted)) return std::nullopt;
  } else if (enough && Takes(*plan) > Takes(current) - options_.saving + 1e-9) {
    return std::nullopt;
  }
  plan->epoch = ++plans_;
  return plan;
}

// Of the input's rates, the largest part that has a plan.
std::optional<Plan> Replanner::Largest() {
  ++questions_;
  // What a planner gives is what lanes are made of, so it is held to its promises first.
  const Solver solve = [this](const PlanInput& input) -> Expected<Plan> {
    auto plan = planner_->Solve(input);
    if (!plan) return plan;
    if (auto fits = ValidateLanes(*plan, input); !fits) return std::unexpected(fits.error());
    return plan;
  };
  auto all = solve(input_);
  shortage_ = all ? Error{} : all.error();
  if (all) return std::move(*all);
  // Else less load has no plan either.
  if (shortage_.code != ErrorCode::kResourceExhausted) return std::nullopt;
  PartialPlan largest = LargestPart(input_, solve);
  shortage_.message += "; " + DescribeShortage(input_, largest.part);
  return std::move(largest.plan);
}

}  // namespace tactus
