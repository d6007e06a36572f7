// What the commands that simulate share: a scenario with the command line's changes, its profile,
// and a run of it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "core/plan.h"
#include "core/policy.h"
#include "core/prediction_errors.h"
#include "metrics/report.h"
#include "sim/simulation.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"
#include "workload/share_profiles.h"

namespace tactus {

struct Experiment {
  Scenario scenario;
  ProfileFile profile;
  // What was measured on each share of a device; none: [plan] says what batches take there.
  std::vector<ShareProfile> on_share = {};
  // How devices are split, at first where the scenario has a [plan] planner; null: it does not say.
  std::shared_ptr<const Plan> plan = nullptr;
  std::vector<double> planned_rps = {};  // by ModelId, that the plan was made for
  // Which lanes were chosen and why, of a scenario that leaves it open (kAutoLanes).
  std::string chosen_lanes = {};
};

// "key=value", at the first '='.
Expected<std::pair<std::string, std::string>> SplitSetting(const std::string& text);

// Loads the scenario, applies `settings`, loads its profile. KeepFilesOf's error, where a file that
// it reads is among those that will be `written`.
Expected<Experiment> LoadExperiment(const std::string& path,
                                    const std::vector<std::string>& settings,
                                    const std::vector<std::string>& written = {});

// Policies are separated by commas, and so are a policy's own options: "a:batch=1,clip=10,b" is two
// policies. A part like "clip=10", that names no policy, belongs to the one before it.
std::vector<std::string> JoinPolicyOptions(const std::vector<std::string>& parts);

// Checks that each is a policy with options that it takes; the error says which is not. For runs of
// several policies, before the first.
Status CheckPolicies(std::span<const std::string> policies);

// For what runs in real time: an error where there are pipelines, which only the simulator
// serves.
Status CheckNoPipelines(const Scenario& scenario);

// For servers and whatever else runs in real time, where nothing can be charged for deciding: a
// policy whose options say what that costs is refused.
Expected<std::unique_ptr<Policy>> MakeRealTimePolicy(const std::string& text);

// What a run reads and writes beside its scenario; empty: nothing.
struct RunFiles {
  std::string journal;         // gets every event and decision
  std::string predictor;       // what the policy has learnt already
  std::string save_predictor;  // gets what it has learnt in the end
  std::string requests;        // gets every request (metrics/request_file.h)
  int timeline_parts = 0;      // of the run's time in the report's timeline; 0: it has none
};

// Simulates with the scenario's policy and prints nothing.
// `on_progress` as in SimulationOptions.
Expected<RunReport> RunSimulated(const Experiment& experiment, const RunFiles& files = {},
                                 const SimulationProgress& on_progress = {});

PredictionSummary SummaryOf(const PredictionErrors& errors);

// "8 lanes", "8 lanes (2 fast of speed 4, 6 plain)".
std::string LanesOf(const Scenario& scenario);

// As of check/doubts.h, of a policy by its text.
std::string PolicyDoubts(const Experiment& experiment, const std::string& policy);

// Which of `policies`, set side by side, is there by its name alone although some options are known
// to suit it better on that many models, and which: a line for each. One that is there with options
// too has been tuned.
std::string TuningNotes(std::span<const std::string> policies, const Scenario& scenario);

// The lines that stand above a table of figures: scenario, where the profile comes from, machine.
std::string Heading(const RunReport& run);

}  // namespace tactus
