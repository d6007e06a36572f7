// One scenario in real time, on real engines, in this process: what `tactus measure` does.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/engine.h"
#include "core/planner.h"
#include "core/prediction_errors.h"
#include "experiment/experiment.h"
#include "measurement/service_watch.h"
#include "runtime/layout/device_layout.h"
#include "sim/simulation.h"

namespace tactus {

// Lanes that are parts of one device, as the planner splits it for the scenario's rates. For
// policies that run plans.
struct PlannedLanes {
  SplitOptions split;
  Planner* planner = nullptr;  // outlives the run
};

// Models that are in no folder, and what runs them.
struct GivenModels {
  Engine* engine = nullptr;  // outlives the run
  // What the engine loads for a model of the scenario: its name and batches are the scenario's, and
  // its exits have the names of the profile's.
  std::function<Expected<ModelSpec>(const ScenarioModel& model)> spec_of;
};

struct MeasureOptions {
  std::filesystem::path models;  // folder of models; empty: only for the emulated engine
  std::string engine;            // empty: what each model's platform says
  std::filesystem::path onnxruntime_library;
  std::string journal;         // the file to write, or empty
  std::string predictor;       // what the policy has learnt already, or empty
  std::string save_predictor;  // gets what it has learnt in the end
  bool pin = true;
  std::optional<GivenModels> given;     // instead of folder, engine and library
  std::optional<PlannedLanes> planned;  // instead of the scenario's lanes
};

// Long enough for some tens of batches, short enough for the spells of a shared machine.
inline constexpr Duration kServiceWindow = Millis(100);

struct Measurement {
  SimulationResult result;  // in the scenario's time: its start is the first possible arrival
  std::string engine;       // "onnxruntime 1.30.0"
  bool emulated = false;
  bool journal_complete = true;
  Spread launch;  // from the decision to the start on the lane
  Spread finish;  // from the engine's end to the dispatcher's knowledge of it
  Spread answer;  // from there to the answer
  Spread late;    // from the intended arrival to the call: the machine's doing
  // By model of the scenario: what its batches took over what the profile says, both in sum.
  std::vector<double> service_ratio;
  // How that moved, in windows of kServiceWindow.
  std::vector<double> service_trace;
  // How well the policy predicted, if it does, and its prediction of each batch with neighbours
  // seen.
  std::optional<PredictionSummary> prediction;
  std::vector<Prediction> predictions;
};

// The experiment's profile with what the run measured of the serving path: the medians of its
// overheads, service ratios and how they moved. Of a model that serves as several, their mean
// ratio.
ProfileFile WithOverheads(const Experiment& experiment, const Measurement& measured);

// Arrivals are those of the simulation with the same seed; latency counts from the intended
// arrival.
Expected<Measurement> Measure(const Experiment& experiment, const MeasureOptions& options);

}  // namespace tactus
