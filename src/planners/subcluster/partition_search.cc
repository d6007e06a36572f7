#include "planners/subcluster/partition_search.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/rng.h"
#include "planners/subcluster/annealing.h"

namespace tactus {
namespace {

constexpr std::int64_t kBetweenQuestions = 4096;

std::unexpected<Error> NothingFits(const PartitionProblem& problem, const Partition& closest,
                                   std::int64_t trials) {
  std::string remedy = "more sub-clusters, memory or time may help";
  if (problem.most_cost < kNoLimit && !problem.previous.empty()) {
    remedy = fmt::format("moving more than {:.6g} may help, and {}", problem.most_cost, remedy);
  }
  return Fail(ErrorCode::kResourceExhausted,
              fmt::format("no partition of {} models onto {} sub-clusters within the limits after "
                          "{} trials; in the closest, {}; {}",
                          problem.models.size(), problem.sub_clusters, trials,
                          BrokenLimit(problem, closest), remedy));
}

// The best partition so far: one within the limits before any other, then by the objective.
class Best {
 public:
  bool Offer(const Annealing& at) {
    const bool better =
        at.excess() < excess_ - 1e-12 ||
        (at.excess() <= excess_ && at.objective() < objective_ * (1 - 1e-9) - 1e-15);
    if (!better) return false;
    excess_ = at.excess();
    objective_ = at.objective();
    partition_ = at.partition();
    return true;
  }
  bool within_limits() const { return excess_ <= 0; }
  double excess() const { return excess_; }
  double objective() const { return objective_; }
  const Partition& partition() const { return partition_; }

 private:
  double excess_ = kNoLimit;
  double objective_ = kNoLimit;
  Partition partition_;
};

// How many changes a round weighs: enough for each model to be somewhere else a few times.
std::int64_t RoundOf(const PartitionProblem& problem) {
  return 20'000 + 200 * static_cast<std::int64_t>(problem.models.size());
}

class Search {
 public:
  Search(const PartitionProblem& problem, const PartitionSearchOptions& options,
         const StopPartition& stop)
      : options_(options),
        stop_(stop),
        annealing_(problem, options.seed),
        round_(RoundOf(problem)) {
    annealing_.Load(PlaceGreedily(problem));
    best_.Offer(annealing_);
  }

  void Run() {
    for (int descent = 0; descent < options_.descents && !Ended(); ++descent) {
      if (descent > 0) Shake();
      Descend();
    }
  }

  const Partition& partition() const { return best_.partition(); }
  std::int64_t trials() const { return trials_; }

 private:
  // From the best to somewhere else, by changes that are taken whatever they are worth: a descent
  // that has settled does not leave its valley.
  void Shake() {
    annealing_.Load(best_.partition());
    const double hot = 100 * std::max(annealing_.energy(), 1e-9);
    for (std::int64_t i = 0; i < round_ / 16 && !ended_; ++i) {
      annealing_.Try(hot);
      CountTrial();
    }
  }

  // From where the annealing stands. Each round begins hot enough to undo what the last one settled
  // on, and ends cold. Rounds that find nothing better make the next one hotter.
  void Descend() {
    near_ = Best{};
    near_.Offer(annealing_);
    int idle = 0;
    double heat = 1;
    while (!Ended() && idle < options_.patience) {
      annealing_.Load(near_.partition());
      const double hot = heat * std::max(annealing_.energy(), 1e-9);
      if (Round(hot)) {
        idle = 0;
        heat = 1;
      } else {
        ++idle;
        heat = heat < 16 ? 2 * heat : 0.125;
      }
    }
  }

  bool Round(double hot) {
    constexpr double kColdest = 1e-3;
    const double cooling =
        std::pow(kColdest, static_cast<double>(kCoolEvery) / static_cast<double>(round_));
    double temperature = hot;
    bool better = false;
    for (std::int64_t i = 0; i < round_ && !ended_; ++i) {
      annealing_.Try(temperature);
      if (near_.Offer(annealing_)) {
        better = true;
        best_.Offer(annealing_);
      }
      if (i % kCoolEvery == 0) temperature *= cooling;
      CountTrial();
    }
    return better;
  }
  void CountTrial() {
    if (++trials_ % kBetweenQuestions == 0) ended_ = Ended();
    if (trials_ >= options_.most_trials) ended_ = true;
  }
  bool Ended() {
    // Nothing is more even than even.
    if (best_.within_limits() && best_.objective() < 1e-12) ended_ = true;
    if (!ended_ && stop_) ended_ = stop_({trials_, best_.within_limits(), best_.objective()});
    return ended_;
  }

  static constexpr std::int64_t kCoolEvery = 64;

  const PartitionSearchOptions& options_;
  const StopPartition& stop_;
  Annealing annealing_;
  const std::int64_t round_;
  Best best_;
  Best near_;  // of this descent
  std::int64_t trials_ = 0;
  bool ended_ = false;
};

}  // namespace

Expected<FoundPartition> SearchPartition(const PartitionProblem& problem,
                                         const PartitionSearchOptions& options,
                                         const StopPartition& stop) {
  if (auto valid = Validate(problem); !valid) return std::unexpected(valid.error());
  Search search(problem, options, stop);
  search.Run();
  const PartitionScore score = ScoreOf(problem, search.partition());
  if (!score.KeepsLimits(problem)) {
    return NothingFits(problem, search.partition(), search.trials());
  }
  return FoundPartition{search.partition(), score, search.trials()};
}

Expected<FoundPartition> DrawPartition(const PartitionProblem& problem,
                                       const PartitionSearchOptions& options,
                                       const StopPartition& stop) {
  if (auto valid = Validate(problem); !valid) return std::unexpected(valid.error());
  Rng rng = Rng::Stream(options.seed, "random partition");
  const std::uint64_t l = static_cast<std::uint64_t>(problem.sub_clusters);
  Partition drawn(problem.models.size());
  Partition best;
  Partition closest;
  PartitionScore best_score;
  double least_broken = kNoLimit;
  std::int64_t trials = 0;
  for (bool ended = false; !ended && trials < options.most_trials;) {
    for (int& place : drawn) place = static_cast<int>(rng.Below(l));
    const PartitionScore score = ScoreOf(problem, drawn);
    const bool fits = score.KeepsLimits(problem);
    if (fits && (best.empty() || score.objective < best_score.objective)) {
      best = drawn;
      best_score = score;
    }
    const double broken = score.excess + (score.cost > problem.most_cost ? score.cost : 0);
    if (!fits && broken < least_broken) {
      closest = drawn;
      least_broken = broken;
    }
    if (++trials % 64 == 0 && stop) ended = stop({trials, !best.empty(), best_score.objective});
  }
  if (best.empty()) return NothingFits(problem, closest.empty() ? drawn : closest, trials);
  return FoundPartition{best, best_score, trials};
}

}  // namespace tactus
