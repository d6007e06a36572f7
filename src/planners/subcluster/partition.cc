#include "planners/subcluster/partition.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"

namespace tactus {
namespace {

constexpr double kTolerance = 1 + 1e-9;

bool Sensible(double value) { return std::isfinite(value) && value >= 0; }

Status ValidateModel(const PartitionModel& model) {
  const struct {
    const char* key;
    double value;
  } numbers[] = {{"rate_rps", model.rate_rps},
                 {"static_mb", model.static_mb},
                 {"dynamic_mb", model.dynamic_mb},
                 {"move_cost", model.move_cost}};
  for (const auto& number : numbers) {
    if (Sensible(number.value)) continue;
    return InvalidArgument(fmt::format("model '{}': {} is {}; it must be 0 or more", model.name,
                                       number.key, number.value));
  }
  return {};
}

Status ValidateNumbers(const PartitionProblem& problem) {
  if (problem.models.empty()) return InvalidArgument("there is no model to place");
  if (problem.sub_clusters < 1) {
    return InvalidArgument(
        fmt::format("{} sub-clusters; there must be at least one", problem.sub_clusters));
  }
  if (!(problem.most_rate_rps > 0) || !(problem.most_memory_mb > 0)) {
    return InvalidArgument("the limits of rate and memory must be more than 0");
  }
  if (!Sensible(problem.memory_weight)) {
    return InvalidArgument(
        fmt::format("the weight of memory is {}; it must be 0 or more", problem.memory_weight));
  }
  if (!(problem.most_cost >= 0)) return InvalidArgument("the cost of moves must be 0 or more");
  if (!problem.previous.empty() && problem.previous.size() != problem.models.size()) {
    return InvalidArgument(fmt::format("the previous partition has {} models and this one {}",
                                       problem.previous.size(), problem.models.size()));
  }
  for (const int place : problem.previous) {
    if (place >= kNowhere && place < problem.sub_clusters) continue;
    return InvalidArgument(fmt::format("a model was in sub-cluster {}, and there are {}", place,
                                       problem.sub_clusters));
  }
  for (const PartitionModel& model : problem.models) {
    if (auto valid = ValidateModel(model); !valid) return valid;
  }
  return {};
}

std::unexpected<Error> TooMuch(std::string message) {
  return Fail(ErrorCode::kResourceExhausted, std::move(message));
}

// A model that fits nowhere, even alone.
Status FitsAlone(const PartitionProblem& problem, const PartitionModel& model) {
  const double memory = model.static_mb + model.dynamic_mb;
  if (memory > problem.most_memory_mb * kTolerance) {
    return TooMuch(
        fmt::format("model '{}' needs {:.6g} MB (static {:.6g} + dynamic {:.6g}) and a backend has "
                    "{:.6g} MB; it fits nowhere, even alone",
                    model.name, memory, model.static_mb, model.dynamic_mb, problem.most_memory_mb));
  }
  if (model.rate_rps > problem.most_rate_rps * kTolerance) {
    return TooMuch(
        fmt::format("model '{}' brings {:.6g} r/s and a sub-cluster takes at most "
                    "{:.6g} r/s; split it into variants, or raise the limit",
                    model.name, model.rate_rps, problem.most_rate_rps));
  }
  return {};
}

// All models together. Each sub-cluster in use keeps room for the dynamic memory of one of its
// models, at least the smallest there is, and one of them for the largest.
Status FitTogether(const PartitionProblem& problem) {
  double rate = 0;
  double memory = 0;
  double least = kNoLimit;
  double most = 0;
  for (const PartitionModel& model : problem.models) {
    rate += model.rate_rps;
    memory += model.static_mb;
    least = std::min(least, model.dynamic_mb);
    most = std::max(most, model.dynamic_mb);
  }
  const int in_use = std::min(problem.sub_clusters, static_cast<int>(problem.models.size()));
  const double dynamic = most + (in_use - 1) * least;
  if (memory + dynamic > in_use * problem.most_memory_mb * kTolerance) {
    return TooMuch(
        fmt::format("the {} models need {:.6g} MB (static {:.6g} + dynamic at least {:.6g}) and {} "
                    "sub-cluster{} of {:.6g} MB hold {:.6g} MB; at least {:.0f} are needed",
                    problem.models.size(), memory + dynamic, memory, dynamic, in_use,
                    in_use == 1 ? "" : "s", problem.most_memory_mb, in_use * problem.most_memory_mb,
                    std::ceil((memory + most - least) / (problem.most_memory_mb - least))));
  }
  if (rate > problem.sub_clusters * problem.most_rate_rps * kTolerance) {
    return TooMuch(fmt::format(
        "the {} models bring {:.6g} r/s and {} sub-cluster{} take at most {:.6g} r/s; at least "
        "{:.0f} are needed",
        problem.models.size(), rate, problem.sub_clusters, problem.sub_clusters == 1 ? "" : "s",
        problem.sub_clusters * problem.most_rate_rps, std::ceil(rate / problem.most_rate_rps)));
  }
  return {};
}

// One more large model than there are sub-clusters: two of them would have to share one.
Status LargeOnesFit(const PartitionProblem& problem) {
  const std::size_t l = static_cast<std::size_t>(problem.sub_clusters);
  if (problem.models.size() <= l) return {};
  std::vector<const PartitionModel*> models;
  for (const PartitionModel& model : problem.models) models.push_back(&model);
  const auto by = [&](auto key) {
    std::nth_element(models.begin(), models.begin() + problem.sub_clusters, models.end(),
                     [key](const auto* a, const auto* b) { return a->*key > b->*key; });
    // Behind the l largest in no order stands the next; the least of the l goes with it.
    return *std::min_element(models.begin(), models.begin() + problem.sub_clusters,
                             [key](const auto* a, const auto* b) { return a->*key < b->*key; });
  };
  const PartitionModel* one = by(&PartitionModel::static_mb);
  const PartitionModel* other = models[l];
  if (one->static_mb + other->static_mb > problem.most_memory_mb * kTolerance) {
    return TooMuch(fmt::format(
        "{} models, the least of them '{}' ({:.6g} MB) and '{}' ({:.6g} MB), are too large for any "
        "two to share a backend of {:.6g} MB, and there are {} sub-clusters",
        l + 1, one->name, one->static_mb, other->name, other->static_mb, problem.most_memory_mb,
        l));
  }
  one = by(&PartitionModel::rate_rps);
  other = models[l];
  if (one->rate_rps + other->rate_rps > problem.most_rate_rps * kTolerance) {
    return TooMuch(fmt::format(
        "{} models, the least of them '{}' ({:.6g} r/s) and '{}' ({:.6g} r/s), bring too much for "
        "any two to share a sub-cluster of {:.6g} r/s, and there are {}",
        l + 1, one->name, one->rate_rps, other->name, other->rate_rps, problem.most_rate_rps, l));
  }
  return {};
}

// Names the three models of a sub-cluster that take most of what is over its limit.
std::string Largest(const PartitionProblem& problem, const Partition& partition, int sub_cluster,
                    double PartitionModel::*key, const char* unit) {
  std::vector<const PartitionModel*> inside;
  for (std::size_t i = 0; i < partition.size(); ++i) {
    if (partition[i] == sub_cluster) inside.push_back(&problem.models[i]);
  }
  std::stable_sort(inside.begin(), inside.end(),
                   [key](const auto* a, const auto* b) { return a->*key > b->*key; });
  inside.resize(std::min<std::size_t>(inside.size(), 3));
  std::string text;
  for (const PartitionModel* model : inside) {
    text +=
        fmt::format("{}'{}' ({:.6g} {})", text.empty() ? "" : ", ", model->name, model->*key, unit);
  }
  return text;
}

struct Spread {
  double gap = 0;        // largest distance from the average, as a share of it
  double imbalance = 0;  // (max - min) / avg
};

Spread SpreadOf(const std::vector<SubClusterLoad>& loads, double SubClusterLoad::*key) {
  double sum = 0;
  double least = kNoLimit;
  double most = 0;
  for (const SubClusterLoad& load : loads) {
    sum += load.*key;
    least = std::min(least, load.*key);
    most = std::max(most, load.*key);
  }
  if (sum <= 0) return {};
  const double average = sum / static_cast<double>(loads.size());
  return {.gap = std::max(most - average, average - least) / average,
          .imbalance = (most - least) / average};
}

}  // namespace

Status Validate(const PartitionProblem& problem) {
  if (auto valid = ValidateNumbers(problem); !valid) return valid;
  for (const PartitionModel& model : problem.models) {
    if (auto fits = FitsAlone(problem, model); !fits) return fits;
  }
  if (auto fit = FitTogether(problem); !fit) return fit;
  return LargeOnesFit(problem);
}

std::vector<SubClusterLoad> LoadsOf(const PartitionProblem& problem, const Partition& partition) {
  CHECK(partition.size() == problem.models.size(), "a place for each model");
  std::vector<SubClusterLoad> loads(static_cast<std::size_t>(problem.sub_clusters));
  for (std::size_t i = 0; i < partition.size(); ++i) {
    SubClusterLoad& load = loads.at(static_cast<std::size_t>(partition[i]));
    const PartitionModel& model = problem.models[i];
    ++load.models;
    load.rate_rps += model.rate_rps;
    load.static_mb += model.static_mb;
    load.dynamic_mb = std::max(load.dynamic_mb, model.dynamic_mb);
  }
  return loads;
}

double AverageOf(const PartitionProblem& problem, double PartitionModel::*key) {
  double sum = 0;
  for (const PartitionModel& model : problem.models) sum += model.*key;
  return sum > 0 ? sum / problem.sub_clusters : 1;
}

PartitionScore ScoreOf(const PartitionProblem& problem, const Partition& partition) {
  const std::vector<SubClusterLoad> loads = LoadsOf(problem, partition);
  PartitionScore score;
  for (const SubClusterLoad& load : loads) {
    score.excess += std::max(0.0, load.rate_rps / problem.most_rate_rps - 1);
    score.excess += std::max(0.0, load.memory_mb() / problem.most_memory_mb - 1);
  }
  const Spread rate = SpreadOf(loads, &SubClusterLoad::rate_rps);
  const Spread memory = SpreadOf(loads, &SubClusterLoad::static_mb);
  score.rate_gap = rate.gap;
  score.rate_imbalance = rate.imbalance;
  score.memory_gap = memory.gap;
  score.memory_imbalance = memory.imbalance;
  score.objective = rate.gap + problem.memory_weight * memory.gap;
  for (std::size_t i = 0; i < problem.previous.size(); ++i) {
    if (problem.previous[i] == kNowhere || problem.previous[i] == partition[i]) continue;
    ++score.moved;
    score.cost += problem.models[i].move_cost;
  }
  return score;
}

std::string BrokenLimit(const PartitionProblem& problem, const Partition& partition) {
  const std::vector<SubClusterLoad> loads = LoadsOf(problem, partition);
  for (std::size_t j = 0; j < loads.size(); ++j) {
    const SubClusterLoad& load = loads[j];
    const int here = static_cast<int>(j);
    if (load.memory_mb() > problem.most_memory_mb * kTolerance) {
      return fmt::format(
          "sub-cluster {} holds {} models of {:.6g} MB (static {:.6g} + dynamic {:.6g}) in "
          "backends "
          "of {:.6g} MB; the largest: {}",
          j, load.models, load.memory_mb(), load.static_mb, load.dynamic_mb, problem.most_memory_mb,
          Largest(problem, partition, here, &PartitionModel::static_mb, "MB"));
    }
    if (load.rate_rps > problem.most_rate_rps * kTolerance) {
      return fmt::format(
          "sub-cluster {} takes {:.6g} r/s of {} models, over its limit of {:.6g} r/s; the most: "
          "{}",
          j, load.rate_rps, load.models, problem.most_rate_rps,
          Largest(problem, partition, here, &PartitionModel::rate_rps, "r/s"));
    }
  }
  const PartitionScore score = ScoreOf(problem, partition);
  if (score.cost <= problem.most_cost * kTolerance) return "";
  return fmt::format("{} models moved at a cost of {:.6g}, over {:.6g}", score.moved, score.cost,
                     problem.most_cost);
}

}  // namespace tactus
