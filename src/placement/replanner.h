// When a new plan is due, and for what rates (gpu-lets, Section 4.1 and Algorithm 1, line 1): rates
// are averaged over periods, the newest with most weight; at the end of each, and sooner where
// requests miss their deadlines, it is asked whether the plan that serves still sustains them, or
// takes more of the devices than it has to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/planner.h"

namespace tactus {

struct ReplannerOptions {
  Duration period = Seconds(20);  // the paper's
  double weight = 0.7;            // of the newest period in the average of rates
  // Planned for beyond the average, as a part of it: rates go on rising while a plan is taken up,
  // and arrivals of a Poisson process come in bunches.
  double headroom = 0.25;
  // A plan is kept while it sustains this fraction of what would be planned for now, or all of it
  // where deadlines are missed ...
  double kept = 0.9;
  // ... unless another one takes less of the devices, by this many of them.
  double saving = 0.2;
  double bad_threshold = 0.01;  // of a second's requests, that bring the question forward
  double least_rps = 0;         // that is planned for of a model, so that it has a place
};

class Replanner {
 public:
  // How often Look is to be asked, more or less.
  static constexpr Duration kLook = Seconds(1);

  // `input`, but for its rates, is what is planned for; what it points to outlives this.
  Replanner(PlanInput input, std::unique_ptr<Planner> planner, ReplannerOptions options);

  // Other models from now on, whose averages begin with the rates of `input`. The next Look asks.
  void Serve(PlanInput input);

  // For the rates of the input, with the headroom. What the planner says where there is none
  // (kResourceExhausted: for this load), what ValidateLanes says where its plan does not fit.
  Expected<Plan> First();

  void Arrived(ModelId m, std::int64_t requests = 1) { arrived_[m.value()] += requests; }
  // Answered in time or not; nothing of those that their client cancelled.
  void Ended(bool in_time, std::int64_t requests = 1) { (in_time ? good_ : bad_) += requests; }

  // Once `passed` has gone by since the last. `current` serves. A plan where another one is due;
  // where the load is more than any plan sustains, one for the largest fraction of it, if that is
  // more than `current` sustains. `busy`: a plan is being taken up; then it only counts, and what
  // falls due is asked at the first look after.
  std::optional<Plan> Look(const Plan& current, bool busy, Duration passed = kLook);

  // The plan that it gave could not be made: until its period ends it gives no other.
  void GivenUp() { given_up_ = true; }

  const std::vector<double>& rates_rps() const { return average_; }  // by model
  // At the last question: which model lacks how much; empty where a plan sustains all of the load.
  const std::string& shortage() const { return shortage_.message; }
  std::int64_t questions() const { return questions_; }

 private:
  double Wanted(double rate_rps) const;
  std::optional<Plan> Better(const Plan& current, const std::vector<double>& rates_rps, bool late);
  std::optional<Plan> Largest();

  PlanInput input_;
  std::unique_ptr<Planner> planner_;
  const ReplannerOptions options_;
  std::vector<double> average_;        // by model, requests a second
  std::vector<std::int64_t> arrived_;  // by model, in this period
  Duration passed_{};                  // of this period
  std::int64_t good_ = 0;              // since the last look
  std::int64_t bad_ = 0;
  bool due_ = false;   // a period has ended and nothing was asked since
  bool late_ = false;  // to be asked at once: deadlines were missed, or models came
  bool given_up_ = false;
  Error shortage_;  // without a message: none
  std::int64_t questions_ = 0;
  std::uint64_t plans_ = 0;
};

}  // namespace tactus
