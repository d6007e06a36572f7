#include "planners/gpulet/ideal.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "core/shares.h"

namespace tactus {
namespace {

constexpr double kRateRounding = 1e-9;

double TotalRate(const FrontPoint& rates) {
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

FrontPoint CappedSum(const FrontPoint& a, const FrontPoint& b, const FrontPoint& most) {
  FrontPoint sum;
  for (std::size_t d = 0; d < sum.size(); ++d) sum[d] = std::min(a[d] + b[d], most[d]);
  return sum;
}

}  // namespace

// Makes all choices of a device.
class IdealPlanner::Maker {
 public:
  Maker(const PlanInput& input, const IdealOptions& options)
      : input_(input), options_(options), models_(input.models.size()) {
    for (std::size_t m = 0; m < models_; ++m) asked_[m] = input.models[m].rate_rps;
  }

  std::vector<DeviceChoice> Make() {
    const Splits splits = AllSplits();
    const std::vector<Models> all = LargestSets();
    for (std::size_t s = 0; s < all.size(); ++s) MakeOf(all[s], splits, s, all.size());
    return Unbeaten();
  }

 private:
  using Models = unsigned;  // a bit each
  using Splits = std::vector<std::pair<LaneClass, LaneClass>>;
  struct RatedLane {
    FrontPoint rates{};
    LaneChoice lane;
  };
  // Who may be in a lane, and what those in the other one cost them.
  struct Company {
    Models allowed = 0;
    std::array<double, kMostModels> slowdown = {1, 1, 1, 1, 1, 1};
  };
  struct Made {
    FrontPoint rates{};
    std::optional<std::size_t> first;  // of lanes_
    std::optional<std::size_t> second;
  };

  // The sets that a device has memory for and that no further model could join: whatever a device
  // serves lies within one of them. Lanes are compared within a set only, for one that sustains
  // more may do so with another model, and leave no memory for those in the device's other lane.
  std::vector<Models> LargestSets() const {
    const auto fits = [&](Models models) {
      double memory_mb = 0;
      for (std::size_t m = 0; m < models_; ++m) {
        const bool counts = Has(models, m) && asked_[m] > 0;  // else it is in no lane
        if (counts) memory_mb += input_.models[m].memory_mb;
      }
      return input_.device.HasMemoryFor(memory_mb);
    };
    std::vector<Models> largest;
    for (Models models = 0; models < 1u << models_; ++models) {
      bool maximal = fits(models);
      for (std::size_t m = 0; m < models_ && maximal; ++m) {
        maximal = Has(models, m) || !fits(models | 1u << m);
      }
      if (maximal) largest.push_back(models);
    }
    return largest;
  }
  static bool Has(Models models, std::size_t m) { return (models >> m & 1) != 0; }

  // All choices of a device that serves some of these models, set `done` of `sets`.
  void MakeOf(Models models, const Splits& splits, std::size_t done, std::size_t sets) {
    // Nobody is in the other lane: of what a split leaves free, and of a device that is whole.
    const Company undisturbed{.allowed = models};
    Keep(LaneFront(input_.whole(), undisturbed));
    for (const auto& [a, b] : splits) {
      Keep(LaneFront(a, undisturbed));
      Keep(LaneFront(b, undisturbed));
    }
    for (std::size_t i = 0; i < splits.size(); ++i) {
      const auto [a, b] = splits[i];
      const std::size_t step = done * splits.size() + i;
      const std::size_t steps = sets * splits.size();
      if (options_.interference == nullptr) {
        if (options_.on_progress) options_.on_progress(step, steps);
        KeepPairs(LaneFront(a, undisturbed), LaneFront(b, undisturbed));
      } else {
        Interfering(models, a, b, step, steps);
      }
    }
  }

  // A lane's slowdowns depend on the others only by the one that weighs most, so a pair of such
  // ones stands for all sets of models that they weigh most in.
  void Interfering(Models models, LaneClass a, LaneClass b, std::size_t step, std::size_t steps) {
    const auto weight_a = Weights(a);
    const auto weight_b = Weights(b);
    for (ModelId::rep i = 0; i < models_; ++i) {
      if (options_.on_progress) options_.on_progress(step * models_ + i, steps * models_);
      for (ModelId::rep j = 0; j < models_; ++j) {
        if (!Has(models, i) || !Has(models, j)) continue;
        if (a == b && weight_b[j] > weight_a[i]) continue;  // the same the other way round
        Company in_a = Beside(a, weight_a, weight_a[i], b, ModelId{j});
        Company in_b = Beside(b, weight_b, weight_b[j], a, ModelId{i});
        in_a.allowed &= models;
        in_b.allowed &= models;
        KeepPairs(LaneFront(a, in_a), LaneFront(b, in_b));
      }
    }
  }

  // What each model in such a lane adds to others' slowdowns.
  std::array<double, kMostModels> Weights(LaneClass lane) const {
    std::array<double, kMostModels> weights{};
    for (ModelId::rep m = 0; m < models_; ++m) {
      weights[m] = options_.interference->Weight(WorstUse(input_, lane, ModelId{m}));
    }
    return weights;
  }

  // Of models that weigh no more than `most`, with `other` in the device's other lane.
  Company Beside(LaneClass lane, const std::array<double, kMostModels>& weights, double most,
                 LaneClass other_lane, ModelId other) const {
    Company company;
    const Throughput theirs = WorstUse(input_, other_lane, other);
    for (ModelId::rep m = 0; m < models_; ++m) {
      if (weights[m] > most) continue;
      company.allowed |= 1u << m;
      company.slowdown[m] =
          options_.interference->Slowdown(WorstUse(input_, lane, ModelId{m}), theirs);
    }
    return company;
  }

  // In two, the smaller first.
  Splits AllSplits() const {
    Splits splits;
    for (LaneClass::rep a = 0; a < input_.shares.size(); ++a) {
      for (LaneClass::rep b = a; b < input_.shares.size(); ++b) {
        if (ComplementOf(input_.shares, input_.shares[a]) == b ||
            ComplementOf(input_.shares, input_.shares[b]) == a) {
          splits.emplace_back(LaneClass{a}, LaneClass{b});
        }
      }
    }
    return splits;
  }

  // The lane's choices that no other one beats.
  std::vector<RatedLane> LaneFront(LaneClass lane, const Company& company) const {
    std::vector<RatedLane> all;
    LaneChoice choice{.lane_class = lane};
    Extend(0, company, kNever - kStart, choice, all);
    std::vector<FrontPoint> rates;
    for (const RatedLane& each : all) rates.push_back(each.rates);
    std::vector<RatedLane> front;
    for (const std::size_t i : tactus::Unbeaten(rates)) front.push_back(all[i]);
    return front;
  }

  // Tries every batch of model m and those after it; `limit`: the longest cycle that those before
  // it can wait for.
  void Extend(std::size_t m, const Company& company, Duration limit, LaneChoice& choice,
              std::vector<RatedLane>& all) const {
    if (m == models_) {
      if (choice.cycle > Duration{}) all.push_back({RatesOf(choice), choice});
      return;
    }
    Extend(m + 1, company, limit, choice, all);
    const PlannedModel& model = input_.models[m];
    if (!Has(company.allowed, m) || model.rate_rps <= 0) return;
    const ModelId id{static_cast<ModelId::rep>(m)};
    for (int batch = 1; batch <= input_.profile->max_batch(id); ++batch) {
      const Duration alone = input_.Latency(id, batch, choice.lane_class);
      const Duration time =
          Nanos(std::llround(std::ceil(static_cast<double>(alone.count()) * company.slowdown[m])));
      const Duration longest = std::min(limit, model.slo - time);
      if (choice.cycle + time > longest) continue;
      LaneChoice with = choice;
      with.batches[m] = batch;
      with.time[m] = time;
      with.cycle += time;
      Extend(m + 1, company, longest, with, all);
    }
  }

  // More than is asked for is worth no more.
  FrontPoint RatesOf(const LaneChoice& choice) const {
    FrontPoint rates{};
    for (std::size_t m = 0; m < models_; ++m) {
      rates[m] = std::min(choice.batches[m] / ToSeconds(choice.cycle), asked_[m]);
    }
    return rates;
  }

  void Add(const Made& made) {
    front_.Add(made.rates);
    made_.push_back(made);
  }

  void Keep(const std::vector<RatedLane>& front) {
    for (const RatedLane& lane : front) {
      if (front_.WhoBeats(lane.rates)) continue;
      lanes_.push_back(lane.lane);
      Add({lane.rates, lanes_.size() - 1, {}});
    }
  }

  // Whole boughs of b are passed over whose best would be beaten.
  void KeepPairs(const std::vector<RatedLane>& a, const std::vector<RatedLane>& b) {
    const std::size_t first_of_a = lanes_.size();
    for (const RatedLane& lane : a) lanes_.push_back(lane.lane);
    std::vector<PointTree::Entry> entries;
    for (const RatedLane& lane : b) {
      entries.push_back({lane.rates, lanes_.size()});
      lanes_.push_back(lane.lane);
    }
    const PointTree tree(std::move(entries));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const FrontPoint& one = a[i].rates;
      tree.Walk(
          [&](const FrontPoint& most) { return !front_.WhoBeats(CappedSum(one, most, asked_)); },
          [&](const PointTree::Entry& other) {
            const FrontPoint both = CappedSum(one, other.point, asked_);
            if (!front_.WhoBeats(both)) Add({both, first_of_a + i, other.number});
            return false;
          });
    }
  }

  std::vector<DeviceChoice> Unbeaten() const {
    std::vector<FrontPoint> rates;
    for (const Made& made : made_) rates.push_back(made.rates);
    std::vector<DeviceChoice> choices;
    for (const std::size_t i : tactus::Unbeaten(rates)) {
      DeviceChoice& choice = choices.emplace_back(DeviceChoice{made_[i].rates, {}});
      for (const auto& lane : {made_[i].first, made_[i].second}) {
        if (lane) choice.lanes.push_back(lanes_[*lane]);
      }
    }
    return choices;
  }

  const PlanInput& input_;
  const IdealOptions& options_;
  const std::size_t models_;
  FrontPoint asked_{};
  std::vector<LaneChoice> lanes_;
  std::vector<Made> made_;
  Front front_;  // of what is made
};

// One choice for each device, so that together they reach the rates.
class IdealPlanner::Search {
 public:
  // `front` is that of the choices.
  Search(const std::vector<DeviceChoice>& choices, const Front& front,
         std::span<const double> rates, int devices, std::int64_t most_steps)
      : choices_(choices), front_(front), devices_(devices), steps_left_(most_steps) {
    std::ranges::copy(rates, rates_.begin());
    for (std::size_t m = 0; m < rates.size(); ++m) {
      if (rates_[m] > 0) prices_[m] = 1 / rates_[m];
    }
  }

  enum class Answer { kFound, kNone, kGaveUp };

  Answer Run() {
    // Light loads need no good prices.
    const std::int64_t most_steps = std::exchange(
        steps_left_, std::min(steps_left_, 16 * static_cast<std::int64_t>(choices_.size())));
    if (Descend(rates_, devices_)) return Answer::kFound;
    if (steps_left_ > 0) return Answer::kNone;
    steps_left_ = most_steps;
    if (!FindPrices()) return Answer::kNone;
    taken_.clear();
    if (Descend(rates_, devices_)) return Answer::kFound;
    return steps_left_ > 0 ? Answer::kNone : Answer::kGaveUp;
  }
  const std::vector<std::size_t>& taken() const { return taken_; }

 private:
  double Worth(const FrontPoint& rates, const FrontPoint& missing) const {
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
    FrontPoint tightest = prices_;
    double least_slack = 1e300;
    for (int round = 0; round < kRounds; ++round) {
      const auto best = std::ranges::max_element(
          choices_, {}, [&](const DeviceChoice& choice) { return Worth(choice.rates, rates_); });
      const double wanted = Worth(rates_, rates_);
      const double slack =
          best == choices_.end() ? -1 : devices_ * Worth(best->rates, rates_) / wanted - 1;
      if (wanted > 0 && slack < -kRateRounding) return false;
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
  bool Descend(const FrontPoint& missing, int devices) {
    if (TotalRate(missing) == 0) return true;
    if (devices == 1) return Finish(missing);
    const double wanted = Worth(missing, missing);
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const double worth = Worth(choices_[i].rates, missing);
      if (worth * devices >= wanted * (1 - kRateRounding)) order.emplace_back(worth, i);
    }
    steps_left_ -= static_cast<std::int64_t>(choices_.size());
    std::ranges::sort(order, std::greater{});
    for (const auto& [worth, i] : order) {
      if (steps_left_ <= 0) return false;
      FrontPoint rest = missing;
      for (std::size_t m = 0; m < rest.size(); ++m) {
        rest[m] = std::max(0.0, rest[m] - choices_[i].rates[m]);
        if (rest[m] < kRateRounding * rates_[m]) rest[m] = 0;
      }
      taken_.push_back(i);
      if (Descend(rest, devices - 1)) return true;
      taken_.pop_back();
    }
    return false;
  }

  // The last device brings all that is missing.
  bool Finish(FrontPoint missing) {
    --steps_left_;
    for (std::size_t m = 0; m < missing.size(); ++m) missing[m] -= kRateRounding * rates_[m];
    const auto choice = front_.WhoBeats(missing);
    if (choice) taken_.push_back(*choice);
    return choice.has_value();
  }

  const std::vector<DeviceChoice>& choices_;
  const Front& front_;
  FrontPoint rates_{};
  const int devices_;
  std::int64_t steps_left_;
  FrontPoint prices_{};
  std::vector<std::size_t> taken_;
};

Expected<IdealPlanner> IdealPlanner::Make(const PlanInput& input, const IdealOptions& options) {
  if (auto valid = CheckPlannable(input); !valid) return std::unexpected(valid.error());
  if (input.models.size() > kMostModels) {
    return InvalidArgument("the ideal planner tries everything: at most " +
                           std::to_string(kMostModels) + " models, not " +
                           std::to_string(input.models.size()) + "; use gpulet");
  }
  IdealPlanner planner(input, options.most_steps);
  planner.choices_ = Maker(input, options).Make();
  for (const DeviceChoice& choice : planner.choices_) planner.front_.Add(choice.rates);
  return planner;
}

Expected<Plan> IdealPlanner::Solve(std::span<const double> rates_rps) const {
  CHECK(rates_rps.size() == input_->models.size(), "a rate for each model");
  Search search(choices_, front_, rates_rps, input_->devices, most_steps_);
  const Search::Answer answer = search.Run();
  if (answer == Search::Answer::kNone) {
    const bool limited = std::isfinite(input_->device.memory_mb);
    return Fail(ErrorCode::kResourceExhausted,
                "not schedulable: no split of " + std::to_string(input_->devices) +
                    " devices and no placement " + (limited ? "that their memory allows " : "") +
                    "sustains these rates");
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
