#include "planners/gpulet/ideal.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace tactus {
namespace {

constexpr double kRounding = 1e-9;

bool Beats(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t m = 0; m < a.size(); ++m) {
    if (a[m] < b[m]) return false;
  }
  return true;
}

double Sum(const std::vector<double>& rates) {
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// Keeps those that no other one beats. The largest sums first: nothing behind can beat one before.
template <class Choice>
void KeepFront(std::vector<Choice>& choices) {
  std::ranges::stable_sort(choices, std::greater{},
                           [](const Choice& choice) { return Sum(choice.rates); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool beaten =
        std::any_of(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(kept),
                    [&](const Choice& before) { return Beats(before.rates, choices[i].rates); });
    if (beaten) continue;
    if (kept != i) choices[kept] = std::move(choices[i]);
    ++kept;
  }
  choices.resize(kept);
}

}  // namespace

// Makes all choices of a device.
class IdealPlanner::Maker {
 public:
  Maker(const PlanInput& input, const IdealOptions& options)
      : input_(input), options_(options), models_(input.models.size()) {}

  std::vector<DeviceChoice> Make() {
    const std::vector<double> alone(models_, 1);
    AddAll(LaneFront(input_.whole(), ~0u, alone));
    for (const auto& [a, b] : Splits()) {
      if (options_.interference == nullptr) {
        AddPairs(LaneFront(a, ~0u, alone), LaneFront(b, ~0u, alone));
        continue;
      }
      const unsigned sets = 1u << models_;
      for (unsigned in_a = 1; in_a < sets; ++in_a) {
        if (options_.on_progress) options_.on_progress(in_a, sets);
        for (unsigned in_b = 1; in_b < sets; ++in_b) {
          AddPairs(LaneFront(a, in_a, Slowdowns(a, in_a, b, in_b)),
                   LaneFront(b, in_b, Slowdowns(b, in_b, a, in_a)));
        }
        KeepFront(made_);
      }
    }
    KeepFront(made_);
    return std::move(made_);
  }

 private:
  struct RatedLane {
    std::vector<double> rates;
    LaneChoice lane;
  };

  std::vector<std::pair<LaneClass, LaneClass>> Splits() const {
    std::vector<std::pair<LaneClass, LaneClass>> splits;
    for (LaneClass::rep a = 0; a < input_.shares.size(); ++a) {
      for (LaneClass::rep b = a; b < input_.shares.size(); ++b) {
        if (std::abs(input_.shares[a] + input_.shares[b] - 1) < 1e-6) {
          splits.emplace_back(LaneClass{a}, LaneClass{b});
        }
      }
    }
    return splits;
  }

  // By model, of those in `own`, because of those in the other lane.
  std::vector<double> Slowdowns(LaneClass lane, unsigned own, LaneClass other_lane,
                                unsigned others) const {
    std::vector<double> slowdowns(models_, 1);
    for (ModelId::rep m = 0; m < models_; ++m) {
      if ((own >> m & 1) == 0) continue;
      const Throughput use = WorstUse(input_, lane, ModelId{m});
      for (ModelId::rep n = 0; n < models_; ++n) {
        if ((others >> n & 1) == 0) continue;
        const Throughput theirs = WorstUse(input_, other_lane, ModelId{n});
        slowdowns[m] = std::max(slowdowns[m], options_.interference->Slowdown(use, theirs));
      }
    }
    return slowdowns;
  }

  // The lane's choices among the models of `set`.
  std::vector<RatedLane> LaneFront(LaneClass lane, unsigned set,
                                   const std::vector<double>& slowdowns) {
    std::vector<RatedLane> front;
    LaneChoice choice{.lane_class = lane,
                      .batches = std::vector<int>(models_),
                      .time = std::vector<Duration>(models_)};
    Extend(0, set, slowdowns, kNever - kStart, choice, front);
    KeepFront(front);
    return front;
  }

  // Tries every batch of model m and those after it; `limit`: the longest cycle that those before
  // it can wait for.
  void Extend(std::size_t m, unsigned set, const std::vector<double>& slowdowns, Duration limit,
              LaneChoice& choice, std::vector<RatedLane>& front) const {
    if (m == models_) {
      if (choice.cycle > Duration{}) front.push_back({RatesOf(choice), choice});
      return;
    }
    Extend(m + 1, set, slowdowns, limit, choice, front);
    const PlannedModel& model = input_.models[m];
    if ((set >> m & 1) == 0 || model.rate_rps <= 0) return;
    const ModelId id{static_cast<ModelId::rep>(m)};
    for (int batch = 1; batch <= input_.profile->max_batch(id); ++batch) {
      const Duration alone = input_.Latency(id, batch, choice.lane_class);
      const Duration time =
          Nanos(std::llround(std::ceil(static_cast<double>(alone.count()) * slowdowns[m])));
      const Duration longest = std::min(limit, model.slo - time);
      if (choice.cycle + time > longest) continue;
      LaneChoice with = choice;
      with.batches[m] = batch;
      with.time[m] = time;
      with.cycle += time;
      Extend(m + 1, set, slowdowns, longest, with, front);
    }
  }

  // More than is asked for is worth no more.
  std::vector<double> RatesOf(const LaneChoice& choice) const {
    std::vector<double> rates(models_);
    for (std::size_t m = 0; m < models_; ++m) {
      rates[m] = std::min(choice.batches[m] / ToSeconds(choice.cycle), input_.models[m].rate_rps);
    }
    return rates;
  }

  void AddAll(const std::vector<RatedLane>& front) {
    for (const RatedLane& lane : front) made_.push_back({lane.rates, {lane.lane}});
  }
  void AddPairs(const std::vector<RatedLane>& a, const std::vector<RatedLane>& b) {
    std::vector<DeviceChoice> pairs;
    for (const RatedLane& one : a) {
      for (const RatedLane& other : b) {
        DeviceChoice pair{one.rates, {one.lane, other.lane}};
        for (std::size_t m = 0; m < models_; ++m) {
          pair.rates[m] = std::min(pair.rates[m] + other.rates[m], input_.models[m].rate_rps);
        }
        pairs.push_back(std::move(pair));
      }
    }
    KeepFront(pairs);
    made_.insert(made_.end(), std::make_move_iterator(pairs.begin()),
                 std::make_move_iterator(pairs.end()));
  }

  const PlanInput& input_;
  const IdealOptions& options_;
  const std::size_t models_;
  std::vector<DeviceChoice> made_;
};

// One choice for each device, so that together they reach the rates.
class IdealPlanner::Search {
 public:
  Search(const std::vector<DeviceChoice>& choices, std::span<const double> rates, int devices,
         std::int64_t most_steps)
      : choices_(choices),
        rates_(rates.begin(), rates.end()),
        devices_(devices),
        steps_left_(most_steps) {}

  enum class Answer { kFound, kNone, kGaveUp };

  Answer Run() {
    if (!FindPrices()) return Answer::kNone;
    taken_.clear();
    if (Descend(rates_, devices_)) return Answer::kFound;
    return steps_left_ > 0 ? Answer::kNone : Answer::kGaveUp;
  }
  const std::vector<std::size_t>& taken() const { return taken_; }

 private:
  double Worth(const std::vector<double>& rates, const std::vector<double>& missing) const {
    double worth = 0;
    for (std::size_t m = 0; m < rates.size(); ++m) {
      worth += prices_[m] * std::min(rates[m], missing[m]);
    }
    return worth;
  }

  // Prices under which the devices' best choices come as close to the rates' worth as can be found:
  // what is short becomes dearer (multiplicative weights). False: under some prices even those fall
  // short, so no choice of them all can do.
  bool FindPrices() {
    constexpr int kRounds = 200;
    constexpr double kPace = 0.3;
    prices_.assign(rates_.size(), 0);
    for (std::size_t m = 0; m < rates_.size(); ++m) {
      if (rates_[m] > 0) prices_[m] = 1 / rates_[m];
    }
    std::vector<double> tightest = prices_;
    double least_slack = 1e300;
    for (int round = 0; round < kRounds; ++round) {
      const auto best = std::ranges::max_element(
          choices_, {}, [&](const DeviceChoice& choice) { return Worth(choice.rates, rates_); });
      const double wanted = Worth(rates_, rates_);
      const double slack =
          best == choices_.end() ? -1 : devices_ * Worth(best->rates, rates_) / wanted - 1;
      if (wanted > 0 && slack < -kRounding) return false;
      if (slack < least_slack) {
        least_slack = slack;
        tightest = prices_;
      }
      for (std::size_t m = 0; m < rates_.size() && best != choices_.end(); ++m) {
        if (rates_[m] <= 0) continue;
        const double given = devices_ * std::min(best->rates[m], rates_[m]) / rates_[m];
        prices_[m] *= std::exp(-kPace / (1 + 0.05 * round) * (given - 1));
      }
    }
    prices_ = tightest;
    return true;
  }

  // Devices are alike, so the one that brings most can be the first.
  bool Descend(const std::vector<double>& missing, int devices) {
    if (Sum(missing) == 0) return true;
    if (devices == 0) return false;
    const double wanted = Worth(missing, missing);
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const double worth = Worth(choices_[i].rates, missing);
      if (worth * devices >= wanted * (1 - kRounding)) order.emplace_back(worth, i);
    }
    steps_left_ -= static_cast<std::int64_t>(choices_.size());
    std::ranges::sort(order, std::greater{});
    for (const auto& [worth, i] : order) {
      if (steps_left_ <= 0) return false;
      std::vector<double> rest = missing;
      for (std::size_t m = 0; m < rest.size(); ++m) {
        rest[m] = std::max(0.0, rest[m] - choices_[i].rates[m]);
        if (rest[m] < kRounding * rates_[m]) rest[m] = 0;
      }
      taken_.push_back(i);
      if (Descend(rest, devices - 1)) return true;
      taken_.pop_back();
    }
    return false;
  }

  const std::vector<DeviceChoice>& choices_;
  const std::vector<double> rates_;
  const int devices_;
  std::int64_t steps_left_;
  std::vector<double> prices_;
  std::vector<std::size_t> taken_;
};

Expected<IdealPlanner> IdealPlanner::Make(const PlanInput& input, IdealOptions options) {
  if (auto valid = Validate(input); !valid) return std::unexpected(valid.error());
  if (input.models.size() > kMostModels) {
    return InvalidArgument("the ideal planner tries everything: at most " +
                           std::to_string(kMostModels) + " models, not " +
                           std::to_string(input.models.size()) + "; use gpulet");
  }
  IdealPlanner planner(input, std::move(options));
  planner.choices_ = Maker(input, planner.options_).Make();
  return planner;
}

Expected<Plan> IdealPlanner::Solve(std::span<const double> rates_rps) const {
  CHECK(rates_rps.size() == input_->models.size(), "a rate for each model");
  Search search(choices_, rates_rps, input_->devices, options_.most_steps);
  const Search::Answer answer = search.Run();
  if (answer == Search::Answer::kNone) {
    return Fail(ErrorCode::kResourceExhausted, "not schedulable: no split of " +
                                                   std::to_string(input_->devices) +
                                                   " devices and no placement carries these rates");
  }
  if (answer == Search::Answer::kGaveUp) {
    return Fail(ErrorCode::kDeadlineExceeded, "the exhaustive search gave up; allow it more steps");
  }
  Plan plan;
  for (std::size_t device = 0; device < search.taken().size(); ++device) {
    for (const LaneChoice& choice : choices_[search.taken()[device]].lanes) {
      LanePlan& lane = plan.lanes.emplace_back();
      lane.spec = {.device = DeviceId{static_cast<DeviceId::rep>(device)},
                   .lane_class = choice.lane_class,
                   .fraction = input_->share(choice.lane_class)};
      lane.cycle = choice.cycle;
      Duration offset{};
      for (std::size_t m = 0; m < choice.batches.size(); ++m) {
        if (choice.batches[m] == 0) continue;
        lane.entries.push_back({.model = ModelId{static_cast<ModelId::rep>(m)},
                                .batch = choice.batches[m],
                                .offset = offset,
                                .length = choice.time[m]});
        offset += choice.time[m];
      }
    }
  }
  return plan;
}

}  // namespace tactus
