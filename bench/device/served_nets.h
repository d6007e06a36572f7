// Kernel nets behind the whole server: the dispatcher, a policy, the runtime and the engine, with
// the arrivals of a scenario.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "device/kernel_net.h"
#include "experiment/experiment.h"
#include "measurement/measurement.h"
#include "metrics/report.h"
#include "workload/profile_file.h"

namespace tactus {

struct BenchOptions {
  std::filesystem::path resnets;  // the repository that models/resnets.py wrote
  double seconds = 4;             // that requests arrive in each run, the first fifth to warm up
  int repetitions = 20;           // of each latency of a profile
  int rounds = 20;                // of urgent work
  int batches = 400;              // of each turn beside the raw loop
  bool quick = false;             // one of each kind: whether all of it runs, and no figure
  std::uint64_t seed = 1;
};

// What batches of models take on a lane of an engine, which has this part of the device if it is on
// one.
Expected<ProfileFile> ProfileModels(const BenchDevice& device, Engine& engine,
                                    const std::vector<ModelSpec>& models,
                                    const BenchOptions& options, double share = 1);
// The same of these nets.
Expected<ProfileFile> ProfileNets(const BenchDevice& device, const std::vector<std::string>& nets,
                                  const BenchOptions& options, double share = 1);
// Adds what they use of it.
void AddUses(const DevicePeaks& peaks, const DeviceFacts& facts, ProfileFile& profile);

// The P50 of the net's largest batch at its last exit, and the requests/s that one lane sustains in
// such batches. The profile has the net.
Duration LargestBatch(const ProfileFile& profile, const std::string& net);
double FullBatchRps(const ProfileFile& profile, const std::string& net);

inline Duration Times(double factor, Duration length) {
  return FromSeconds(factor * ToSeconds(length));
}

// A model of a scenario.
struct ServedNet {
  std::string name;
  std::string net;
  Duration slo{};
  double ratio = 1;
  int priority = 1;
};
struct Mix {
  std::string name;
  std::vector<ServedNet> nets;
  int slots = 1;
  std::string arrivals = "poisson";
  std::string expiry = "never";
  double percentile = 95;  // that policies count on
  Duration jitter{};       // and what they add to it
};
// One lane for all of them; `rate_rps` of all together.
Expected<Experiment> MakeExperiment(const Mix& mix, const ProfileFile& profile, double rate_rps,
                                    const std::string& policy, const BenchOptions& options);
// Requests/s of the mix that keep a lane busy that runs one batch at a time, in the largest batches
// at their last exits.
double CapacityOf(const Mix& mix, const ProfileFile& profile);

struct ServedRun {
  RunReport report;
  Measurement measured;
};
// In real time, by an engine that is there. The report's source names it, after the device's mark.
Expected<ServedRun> ServeBy(const BenchDevice& device, const Experiment& experiment,
                            const GivenModels& given,
                            const std::optional<PlannedLanes>& planned = {});
// Kernel nets on the device.
Expected<ServedRun> Serve(const BenchDevice& device, const Experiment& experiment,
                          const std::optional<PlannedLanes>& planned = {});

// A row of figures for people, after the device's mark.
void PrintRun(const BenchDevice& device, const RunReport& run, double load);

}  // namespace tactus
