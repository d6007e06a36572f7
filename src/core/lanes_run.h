// Lanes that share models, run by themselves with Poisson arrivals: what chance.h judges plans by.
// Lanes run as policies/planned runs them: on each its models take turns, each up to its planned
// batch, or more if it is alone; heads are given up that would hold a batch under its size. A
// model's requests lie in one queue; they are divided among its lanes as they come, and a lane
// takes as many from the queue's front as were sent to it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/planner.h"

namespace tactus {

// What the violations of lanes depend on, of a plan. Finely rounded, so that lanes which hardly
// differ are the same.
struct LaneWork {
  static constexpr int kSlowdownSteps = 128;  // in a slowdown of 1
  static constexpr int kWeightSteps = 1024;   // in all of a model's requests

  struct Turn {
    ModelId model;
    int batch = 1;     // as planned
    int slowdown = 0;  // beyond 1, in steps: how much longer its batches take than alone
    int weight = 0;    // its fraction of the model's requests, in steps

    auto operator<=>(const Turn&) const = default;
  };
  LaneClass lane_class;
  bool alone = false;       // the plan has one model on it
  std::vector<Turn> turns;  // of models of which something is expected

  auto operator<=>(const LaneWork&) const = default;
};

// Instants of a Poisson process of rate 1, always the same ones.
class PoissonInstants {
 public:
  explicit PoissonInstants(std::size_t number)
      : rng_(Rng::Stream(1, "core/chance/" + std::to_string(number))) {}

  double At(std::size_t i) {
    if (i >= instants_.size()) DrawUpTo(i);
    return instants_[i];
  }

 private:
  void DrawUpTo(std::size_t i);

  Rng rng_;
  std::vector<double> instants_;
};

// By number of a queue; it grows by itself, and what it holds stays where it is.
using ArrivalStreams = std::vector<std::unique_ptr<PoissonInstants>>;

class LanesRun {
 public:
  // What a run had counted at the end of one of its slices.
  struct Counted {
    std::int64_t arrived = 0;
    std::int64_t violations = 0;
    // Over the slices: sums of squares and products of the arrivals and violations of each.
    double violations_squared = 0;
    double violations_came = 0;
    double came_squared = 0;
  };

  // `streams` outlives this.
  LanesRun(std::span<const LaneWork> lanes, const PlanInput& input, ArrivalStreams& streams);

  // Until `batches` more batches have run or requests were given up.
  void RunSlice(std::int64_t batches);

  std::size_t slices() const { return queues_.front().counted.size(); }
  std::size_t models() const { return queues_.size(); }
  ModelId model(std::size_t q) const { return queues_[q].model; }
  int batch(std::size_t q) const { return queues_[q].batch; }
  double rate_rps(std::size_t q) const { return queues_[q].rate_rps; }
  const Counted& counted(std::size_t q, std::size_t slices) const {
    return queues_[q].counted[slices - 1];
  }

 private:
  struct Route {
    int weight = 0;
    int claims = 0;
  };
  // Instants and durations are in seconds.
  struct Queue {
    ModelId model;
    int batch = 1;  // the largest planned
    double rate_rps = 0;
    double gap = 0;  // between requests, in the mean
    double slo = 0;
    double quickest = 0;
    std::vector<Route> routes;
    // The routes in the order of their turns; after as many as the weights add up to it begins
    // anew. It is found as far as it was needed.
    std::vector<std::uint16_t> turns;
    std::vector<double> credit;  // by route, after these
    std::size_t turn = 0;        // the next
    std::size_t all_turns = 0;
    PoissonInstants* instants = nullptr;
    std::size_t head = 0;  // those before it are gone
    std::size_t tail = 0;  // those from it on have not come yet
    double next = 0;       // when that is to come
    std::int64_t violations = 0;
    std::vector<Counted> counted;  // by slice

    int waiting() const { return static_cast<int>(tail - head); }
    double deadline(int i) const { return instants->At(head + i) * gap + slo; }
    void ArriveUntil(double now);
    std::size_t NextRoute();
    void GiveUp(int count);
    void Count();
  };
  struct Turn {
    std::size_t queue = 0;
    std::size_t route = 0;
    int batch = 1;              // as planned
    std::vector<double> takes;  // by batch less 1, without neighbours: what the policy counts on
    double slowdown = 1;
  };
  struct Lane {
    std::vector<Turn> turns;
    bool alone = false;
    std::size_t next = 0;
    double until = 0;
  };

  void Add(const LaneWork& work, const PlanInput& input, ArrivalStreams& streams);
  std::size_t QueueOf(ModelId m, const PlanInput& input, ArrivalStreams& streams);
  double NextEvent() const;
  void GiveUpUnmeetable(Queue& queue);
  bool ServeNext(Lane& lane);
  bool Serve(Lane& lane, const Turn& turn);

  std::vector<Queue> queues_;
  std::vector<Lane> lanes_;
  double now_ = 0;
  std::int64_t steps_ = 0;  // batches, and requests that were given up
};

}  // namespace tactus
