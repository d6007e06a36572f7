// The violations of a plan where requests come by chance. Cycles and batches are planned for
// requests that come evenly: of cycles with two requests in the mean, one in seven has four or more
// (Poisson). How long these wait depends on everything else that the lane runs, so lanes are
// simulated as the `planned` policy runs them, those that share models together. The random numbers
// are always the same, so the same plan has the same violations.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/lanes_run.h"
#include "core/planner.h"

namespace tactus {

// The part of a model's requests that would be late or given up.
struct ChanceViolations {
  double ratio = 0;
  double error = 0;  // standard, of the ratio: few requests were drawn of a model that is rare
};

// The violations of a plan, by model and of all.
struct PlanViolations {
  std::vector<ChanceViolations> models;  // by ModelId
  ChanceViolations all;                  // of all requests, by what is expected of each model
};

// Requests of a model come one by one, independently of each other (Poisson), as many a second as
// `expected_rps` says, and are divided among the model's lanes as the plan divides its rate. A
// model of which nothing is expected has no violations and takes no time. Batches take as long as
// they do alone, slowed as their windows allow for neighbours, in proportion to the time in which
// the device's other lanes are planned to be busy.
//
// Lanes are run until each model's ratio of violations is three standard errors away from
// kMostViolationsByChance or is known as precisely as kPrecise. The same holds of the lanes'
// requests together, and of the plan's. It does not hold of a model with less than two percent of
// its lanes' requests, and lanes run for 60,000 batches at most.
class ChanceEstimator {
 public:
  // `input` outlives this.
  explicit ChanceEstimator(const PlanInput& input) : input_(input) {}

  // ValidateLanes holds of `plan`, and each model of which something is expected has a lane. The
  // answer is the same whatever was asked before, but what was found of lanes is remembered, for
  // other plans that have them too.
  PlanViolations Of(const Plan& plan);
  // The same of a plan of which no model has too many. Else what is known as soon as it is known
  // that one does, and of others perhaps only from 1,200 batches.
  PlanViolations UntilRefused(const Plan& plan);

 private:
  struct Most {  // violations of a model, by the bound
    ModelId model;
    double ratio = 0;
  };
  struct Lanes {                    // that share models
    std::vector<Most> bounds;       // by model; empty where they are too high to tell
    std::unique_ptr<LanesRun> run;  // where they are
    std::size_t needed = 0;         // slices of it; 0: not known yet
  };
  struct Part {  // of a plan, and what is looked at of it
    Lanes* lanes = nullptr;
    std::size_t slices = 0;
  };
  struct Judged {
    std::vector<Part> parts;
    std::vector<ChanceViolations> bounds;  // by ModelId, of those in no part
  };

  Lanes& Find(std::vector<LaneWork> work);
  static std::size_t Needed(Lanes& lanes);
  Judged Take(const Plan& plan);
  PlanViolations ViolationsOf(const Judged& judged) const;

  const PlanInput& input_;
  ArrivalStreams streams_;
  std::map<std::vector<LaneWork>, Lanes> found_;
};

// By one that knows no other plan.
PlanViolations ViolationsByChance(const Plan& plan, const PlanInput& input);

// Plans are held to less than the 1 % that a run may have: its own luck comes on top of the mean.
inline constexpr double kMostViolationsByChance = 0.006;
// A standard error that is small enough to judge by.
inline constexpr double kPrecise = 0.0015;
// Whether it is above kMostViolationsByChance; of what is known less precisely, by more than its
// error.
bool TooMany(const ChanceViolations& violations);

}  // namespace tactus
