// One scenario in real time, on real engines, in this process: what `tactus measure` does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "experiment.h"
#include "sim/simulation.h"

namespace tactus {

struct MeasureOptions {
  std::filesystem::path models;  // folder of models; empty: only for the emulated engine
  std::string engine;            // empty: what each model's platform says
  std::filesystem::path onnxruntime_library;
  std::string journal;  // the file to write, or empty
  bool pin = true;
};

// A quantity of every batch.
struct Spread {
  Duration mean{};
  Duration p50{};
  Duration p95{};
};

struct Measurement {
  SimulationResult result;  // in the scenario's time: its start is the first possible arrival
  std::string engine;       // "onnxruntime 1.30.0"
  bool emulated = false;
  bool journal_complete = true;
  Spread launch;      // from the decision to the start on the lane
  Spread finish;      // from the engine's end to the dispatcher's knowledge of it
  double slower = 0;  // mean over batches of actual over profiled latency
};

// Arrivals are those of the simulation with the same seed; latency counts from the intended
// arrival.
Expected<Measurement> Measure(const Experiment& experiment, const MeasureOptions& options);

}  // namespace tactus
