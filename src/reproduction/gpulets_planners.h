// Who plans in gpu-lets' figures, by the names of their bars, and the simulated device that they
// plan for.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "planners/gpulet/ideal.h"
#include "planners/gpulet/interference_fit.h"
#include "sim/world/plan_question.h"

namespace tactus {

// `+int`: counts on interference.
inline constexpr const char* kSbp = "SBP";
inline constexpr const char* kSbpHalves = "SBP on halves";
inline constexpr const char* kSelfTuning = "self-tuning";
inline constexpr const char* kGpulet = "gpulet";
inline constexpr const char* kGpuletRetry = "gpulet-retry";
inline constexpr const char* kIdeal = "ideal";
inline constexpr const char* kGpuletInt = "gpulet+int";
inline constexpr const char* kGpuletRetryInt = "gpulet-retry+int";
inline constexpr const char* kIdealInt = "ideal+int";
// Those that the ideal planners are held against.
inline constexpr std::array kPlannerNames = {kSbp,       kSbpHalves,      kSelfTuning,
                                             kGpulet,    kGpuletRetry,    kIdeal,
                                             kGpuletInt, kGpuletRetryInt, kIdealInt};

// gpulet+int is stricter than the algorithm that is published: it also asks the neighbours of a
// newcomer, and expects one before it is there (ElasticOptions).
inline constexpr const char* kPublished = "gpulet+int as published";

// A scenario's file, and what is set otherwise: what batches take on shares of a device (planners/
// gpulet/share_latency.h), and how these slow each other.
struct SetScenario {
  std::string file;
  std::vector<std::string> settings;  // "plan.exponent=0.5"
};

// On the paper's shares of a device, whatever the scenario says itself.
Expected<Experiment> LoadSplit(const SetScenario& scenario);
Expected<PlanQuestion> LoadQuestion(const SetScenario& scenario);

// Batches by pairs on the device of the mix `equal` beside the scenario's file, set as that one is
// (Section 3.2): each two of the five models, batches of 2 to 32, five splits; a sample for each
// side.
Expected<std::vector<InterferenceSample>> SimulatedPairs(const SetScenario& scenario);
// 30 % of the sides are held out, always the same, whichever pairs they are of: each has a luck of
// its own.
SplitSamples SplitSides(const std::vector<InterferenceSample>& samples);
// 30 % of the pairs are, with both sides.
SplitSamples SplitPairs(const std::vector<InterferenceSample>& samples);
// The linear model fitted to the sides that are not held out: what the `+int` planners count on.
Expected<InterferenceModel> SimulatedInterference(const SetScenario& scenario);

// For many loads on the same devices.
class NamedPlanner {
 public:
  // `most`, of LoadQuestion, has the largest rates that will be asked for; it outlives the planner.
  static Expected<NamedPlanner> Make(const std::string& name, const SetScenario& scenario,
                                     const PlanInput& most);

  // A plan that holds what it promises (else kInternal); kResourceExhausted: not schedulable.
  Expected<Plan> Solve(const PlanInput& input) const;
  Expected<bool> Schedules(const PlanInput& input) const;

 private:
  explicit NamedPlanner(std::string name) : name_(std::move(name)) {}

  Expected<Plan> SolveUnchecked(const PlanInput& input) const;

  std::string name_;
  std::unique_ptr<InterferenceModel> interference_;
  std::unique_ptr<IdealPlanner> ideal_;
};

}  // namespace tactus
