#include "planners/subcluster/annealing.h"

#include <algorithm>
#include <cmath>

namespace tactus {
namespace {

constexpr double kPriceOfExcess = 10;  // a limit broken by a tenth outweighs any objective near 1
constexpr double kPriceOfSpread = 0.1;

}  // namespace

Annealing::Annealing(const PartitionProblem& problem, std::uint64_t seed)
    : problem_(problem),
      rng_(Rng::Stream(seed, "partition search")),
      rate_average_(AverageOf(problem, &PartitionModel::rate_rps)),
      memory_average_(AverageOf(problem, &PartitionModel::static_mb)),
      position_(problem.models.size()),
      away_position_(problem.models.size()) {
  for (const PartitionModel& model : problem.models) {
    rate_.push_back(model.rate_rps / rate_average_);
    memory_.push_back(model.static_mb / memory_average_);
    if (model.rate_rps > 0) rate_target_ = 1;
    if (model.static_mb > 0) memory_target_ = 1;
  }
}

void Annealing::Load(const Partition& partition) {
  at_ = partition;
  const std::size_t l = static_cast<std::size_t>(problem_.sub_clusters);
  inside_.assign(l, {});
  loads_.assign(l, {});
  away_.clear();
  away_position_.assign(at_.size(), -1);
  cost_ = 0;
  for (std::size_t i = 0; i < at_.size(); ++i) {
    const std::size_t j = static_cast<std::size_t>(at_[i]);
    position_[i] = static_cast<int>(inside_[j].size());
    inside_[j].push_back(static_cast<int>(i));
    loads_[j].rate += rate_[i];
    loads_[j].memory += memory_[i];
    loads_[j].dynamic = std::max(loads_[j].dynamic, problem_.models[i].dynamic_mb);
    const double cost = CostAt(static_cast<int>(i), at_[i]);
    cost_ += cost;
    if (!problem_.previous.empty() && problem_.previous[i] != kNowhere &&
        problem_.previous[i] != at_[i]) {
      away_position_[i] = static_cast<int>(away_.size());
      away_.push_back(static_cast<int>(i));
    }
  }
  now_ = Weigh();
}

double Annealing::CostAt(int model, int place) const {
  if (problem_.previous.empty()) return 0;
  const int home = problem_.previous[static_cast<std::size_t>(model)];
  return home == kNowhere || home == place
             ? 0
             : problem_.models[static_cast<std::size_t>(model)].move_cost;
}

void Annealing::FindLargest(int sub_cluster) {
  const std::size_t j = static_cast<std::size_t>(sub_cluster);
  double largest = 0;
  for (const int model : inside_[j]) {
    largest = std::max(largest, problem_.models[static_cast<std::size_t>(model)].dynamic_mb);
  }
  loads_[j].dynamic = largest;
}

void Annealing::Move(int model, int to) {
  const std::size_t i = static_cast<std::size_t>(model);
  const int from = at_[i];
  const std::size_t a = static_cast<std::size_t>(from);
  const std::size_t b = static_cast<std::size_t>(to);
  const double dynamic = problem_.models[i].dynamic_mb;
  // Out of the one: the last takes its position.
  const int last = inside_[a].back();
  inside_[a][static_cast<std::size_t>(position_[i])] = last;
  position_[static_cast<std::size_t>(last)] = position_[i];
  inside_[a].pop_back();
  loads_[a].rate -= rate_[i];
  loads_[a].memory -= memory_[i];
  if (dynamic >= loads_[a].dynamic) FindLargest(from);
  // Into the other.
  position_[i] = static_cast<int>(inside_[b].size());
  inside_[b].push_back(model);
  loads_[b].rate += rate_[i];
  loads_[b].memory += memory_[i];
  loads_[b].dynamic = std::max(loads_[b].dynamic, dynamic);
  at_[i] = to;
  if (problem_.previous.empty() || problem_.previous[i] == kNowhere) return;
  cost_ += CostAt(model, to) - CostAt(model, from);
  const int home = problem_.previous[i];
  if (from == home && to != home) {
    away_position_[i] = static_cast<int>(away_.size());
    away_.push_back(model);
  } else if (from != home && to == home) {
    const int moved = away_.back();
    away_[static_cast<std::size_t>(away_position_[i])] = moved;
    away_position_[static_cast<std::size_t>(moved)] = away_position_[i];
    away_.pop_back();
    away_position_[i] = -1;
  }
}

bool Annealing::Contains(int model) const {
  return std::any_of(changes_.begin(), changes_.begin() + change_count_,
                     [model](const Change& change) { return change.model == model; });
}

bool Annealing::Add(int model, int to) {
  const int from = at_[static_cast<std::size_t>(model)];
  if (change_count_ == kMostChanges || from == to || Contains(model)) return false;
  changes_[static_cast<std::size_t>(change_count_++)] = {model, from, to};
  return true;
}

// Half of the changes begin at a sub-cluster that sets the objective: only they lower it.
int Annealing::Source() {
  const std::uint64_t which = rng_.Below(4);
  if (which == 0) return worst_rate_;
  if (which == 1) return worst_memory_;
  return static_cast<int>(rng_.Below(loads_.size()));
}

void Annealing::Propose() {
  change_count_ = 0;
  if (loads_.size() < 2) return;
  const int a = Source();
  int b = static_cast<int>(rng_.Below(loads_.size() - 1));
  if (b >= a) ++b;
  const auto pick = [&](int sub_cluster) {
    const auto& models = inside_[static_cast<std::size_t>(sub_cluster)];
    return models.empty() ? -1 : models[rng_.Below(models.size())];
  };
  const int one = pick(a);
  const int other = pick(b);
  const std::uint64_t kind = rng_.Below(8);  // 0, 1: a shift from a; 2, 3: a shift to a
  if (one >= 0 && (kind < 2 || kind >= 4)) Add(one, b);
  if (other >= 0 && kind >= 2) Add(other, a);
}

// Brings models home until the bound on the cost holds; false: it cannot.
bool Annealing::Afford() {
  if (problem_.previous.empty()) return true;
  double cost = cost_;
  const auto pay = [&](const Change& change) {
    cost += CostAt(change.model, change.to) - CostAt(change.model, change.from);
  };
  for (int i = 0; i < change_count_; ++i) pay(changes_[static_cast<std::size_t>(i)]);
  const double most = problem_.most_cost;
  while (cost > most && cost > cost_ && !away_.empty()) {
    const int model = away_[rng_.Below(away_.size())];
    if (!Add(model, problem_.previous[static_cast<std::size_t>(model)])) return false;
    pay(changes_[static_cast<std::size_t>(change_count_ - 1)]);
  }
  return cost <= most || cost <= cost_;
}

Annealing::Worth Annealing::Weigh() {
  double rate_gap = 0;
  double memory_gap = 0;
  double rate_squares = 0;
  double memory_squares = 0;
  double excess = 0;
  const double most_rate = problem_.most_rate_rps / rate_average_;
  for (std::size_t j = 0; j < loads_.size(); ++j) {
    const Sums& load = loads_[j];
    const double rate = std::abs(load.rate - rate_target_);
    const double memory = std::abs(load.memory - memory_target_);
    if (rate > rate_gap) {
      rate_gap = rate;
      worst_rate_ = static_cast<int>(j);
    }
    if (memory > memory_gap) {
      memory_gap = memory;
      worst_memory_ = static_cast<int>(j);
    }
    rate_squares += rate * rate;
    memory_squares += memory * memory;
    if (load.rate > most_rate) excess += load.rate / most_rate - 1;
    const double total = load.memory * memory_average_ + load.dynamic;
    if (total > problem_.most_memory_mb) excess += total / problem_.most_memory_mb - 1;
  }
  const double n = static_cast<double>(loads_.size());
  const double w = problem_.memory_weight;
  Worth worth{.objective = rate_gap + w * memory_gap, .excess = excess < 1e-9 ? 0 : excess};
  worth.energy = worth.objective + kPriceOfExcess * worth.excess +
                 kPriceOfSpread * (std::sqrt(rate_squares / n) + w * std::sqrt(memory_squares / n));
  return worth;
}

void Annealing::Try(double temperature) {
  Propose();
  if (change_count_ == 0 || !Afford()) return;
  const int worst_rate = worst_rate_;
  const int worst_memory = worst_memory_;
  for (int i = 0; i < change_count_; ++i) {
    const Change& change = changes_[static_cast<std::size_t>(i)];
    Move(change.model, change.to);
  }
  const Worth then = Weigh();
  const double rise = then.energy - now_.energy;
  if (rise <= 0 || rng_.Uniform() < std::exp(-rise / temperature)) {
    now_ = then;
    return;
  }
  for (int i = 0; i < change_count_; ++i) {
    const Change& change = changes_[static_cast<std::size_t>(i)];
    Move(change.model, change.from);
  }
  worst_rate_ = worst_rate;
  worst_memory_ = worst_memory;
}

Partition PlaceGreedily(const PartitionProblem& problem) {
  const double rate_average = AverageOf(problem, &PartitionModel::rate_rps);
  const double memory_average = AverageOf(problem, &PartitionModel::static_mb);
  Partition partition = problem.previous;
  partition.resize(problem.models.size(), kNowhere);
  std::vector<SubClusterLoad> loads(static_cast<std::size_t>(problem.sub_clusters));
  std::vector<int> homeless;
  const auto put = [&](std::size_t i, std::size_t j) {
    const PartitionModel& model = problem.models[i];
    partition[i] = static_cast<int>(j);
    loads[j].rate_rps += model.rate_rps;
    loads[j].static_mb += model.static_mb;
    loads[j].dynamic_mb = std::max(loads[j].dynamic_mb, model.dynamic_mb);
  };
  for (std::size_t i = 0; i < partition.size(); ++i) {
    if (partition[i] == kNowhere) {
      homeless.push_back(static_cast<int>(i));
    } else {
      put(i, static_cast<std::size_t>(partition[i]));
    }
  }
  const auto size = [&](int i) {
    const PartitionModel& model = problem.models[static_cast<std::size_t>(i)];
    return model.rate_rps / rate_average + model.static_mb / memory_average;
  };
  std::stable_sort(homeless.begin(), homeless.end(),
                   [&](int a, int b) { return size(a) > size(b); });
  for (const int i : homeless) {
    const PartitionModel& model = problem.models[static_cast<std::size_t>(i)];
    std::size_t best = 0;
    double best_price = kNoLimit;
    for (std::size_t j = 0; j < loads.size(); ++j) {
      const double rate = loads[j].rate_rps + model.rate_rps;
      const double memory = loads[j].static_mb + model.static_mb;
      const double dynamic = std::max(loads[j].dynamic_mb, model.dynamic_mb);
      const double excess = std::max(0.0, rate / problem.most_rate_rps - 1) +
                            std::max(0.0, (memory + dynamic) / problem.most_memory_mb - 1);
      const double price = 1e3 * excess + std::max(rate / rate_average, memory / memory_average) +
                           0.1 * (rate / rate_average + memory / memory_average);
      if (price >= best_price) continue;
      best = j;
      best_price = price;
    }
    put(static_cast<std::size_t>(i), best);
  }
  return partition;
}

}  // namespace tactus
