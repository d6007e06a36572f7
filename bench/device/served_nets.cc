#include "device/served_nets.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "profiling/machine.h"
#include "profiling/profiler.h"

namespace tactus {

Expected<ProfileFile> ProfileModels(const BenchDevice& device, Engine& engine,
                                    const std::vector<ModelSpec>& models,
                                    const BenchOptions& options, double share) {
  ProfilerOptions how{.repetitions = options.repetitions,
                      .least = std::min(options.repetitions, 5),
                      .budget = Millis(200),
                      .in_a_row = 2,
                      .warm_up = options.quick ? 1 : 3,
                      .pin = false};
  if (!device.processor) how.share = share;
  Profiler profiler(engine, how);
  for (const ModelSpec& model : models) {
    if (Status added = profiler.Add(model); !added) return std::unexpected(added.error());
  }
  if (Status ran = profiler.Run([](const ProfilerProgress&) { return true; }); !ran) {
    return std::unexpected(ran.error());
  }
  ProfileFile profile;
  profile.machine = ThisMachine(engine.traits(), 1, share);
  profile.commit = BuildCommit();
  profile.provenance = device.mark() + std::string("measured");
  profile.models = profiler.Result();
  return profile;
}

Expected<ProfileFile> ProfileNets(const BenchDevice& device, const std::vector<std::string>& nets,
                                  const BenchOptions& options, double share) {
  auto engine = MakeNetEngine(device, {});
  if (!engine) return std::unexpected(engine.error());
  std::vector<ModelSpec> models;
  for (const std::string& net : nets) models.push_back(SpecOf(NetNamed(net), net));
  return ProfileModels(device, **engine, models, options, share);
}

void AddUses(const DevicePeaks& peaks, const DeviceFacts& facts, ProfileFile& profile) {
  for (ProfiledModel& model : profile.models) {
    const KernelNet net = NetNamed(model.name);
    model.resources_source = "counted in the kernels, of peaks measured with the same";
    for (std::size_t e = 0; e < model.exits.size(); ++e) {
      for (std::size_t b = 0; b < model.exits[e].cells.size(); ++b) {
        ProfileCell& cell = model.exits[e].cells[b];
        cell.throughput = ResourceShares(net, static_cast<int>(e), static_cast<int>(b) + 1,
                                         cell.p50_ms / 1e3, peaks, facts);
      }
    }
  }
}

Duration LargestBatch(const ProfileFile& profile, const std::string& net) {
  return FromMillis(profile.Find(net)->exits.back().cells.back().p50_ms);
}

double FullBatchRps(const ProfileFile& profile, const std::string& net) {
  return static_cast<double>(profile.Find(net)->exits.back().cells.size()) /
         ToSeconds(LargestBatch(profile, net));
}

Expected<Experiment> MakeExperiment(const Mix& mix, const ProfileFile& profile, double rate_rps,
                                    const std::string& policy, const BenchOptions& options) {
  std::string toml = fmt::format(
      "[scenario]\nname = \"{}\"\nduration_s = {}\nwarmup_s = {}\nseed = {}\npolicy = \"{}\"\n"
      "expiry = \"{}\"\npercentile = {}\njitter_ms = {}\nqueue_capacity = 100000\n[lanes]\ncount = "
      "1\n"
      "slots = {}\n"
      "[arrivals]\nprocess = \"{}\"\nrate_rps = {}\npopularity = \"ratio\"\n",
      mix.name, options.seconds, options.seconds / 5, options.seed, policy, mix.expiry,
      mix.percentile, ToMillis(mix.jitter), mix.slots, mix.arrivals, rate_rps);
  for (const ServedNet& net : mix.nets) {
    toml += fmt::format(
        "[[models]]\nname = \"{}\"\nprofile_as = \"{}\"\nslo_ms = {:.3f}\nratio = {}\n"
        "priority = {}\n",
        net.name, net.net, ToMillis(net.slo), net.ratio, net.priority);
  }
  auto scenario = ParseScenario(toml, mix.name);
  if (!scenario) return std::unexpected(scenario.error());
  return Experiment{*std::move(scenario), profile};
}

double CapacityOf(const Mix& mix, const ProfileFile& profile) {
  double total = 0;
  double seconds = 0;
  for (const ServedNet& net : mix.nets) total += net.ratio;
  for (const ServedNet& net : mix.nets) {
    seconds += net.ratio / total / FullBatchRps(profile, net.net);
  }
  return 1 / seconds;
}

Expected<ServedRun> Serve(const BenchDevice& device, const Experiment& experiment,
                          const std::optional<PlannedLanes>& planned) {
  std::vector<int> priorities;
  for (const ScenarioModel& model : experiment.scenario.models) {
    priorities.push_back(model.priority);
  }
  auto engine = MakeNetEngine(device, std::move(priorities));
  if (!engine) return std::unexpected(engine.error());
  const GivenModels given{engine->get(), [](const ScenarioModel& model) -> Expected<ModelSpec> {
                            ModelSpec spec = SpecOf(NetNamed(model.profile_as), model.name);
                            spec.priority = model.priority;
                            return spec;
                          }};
  return ServeBy(device, experiment, given, planned);
}

Expected<ServedRun> ServeBy(const BenchDevice& device, const Experiment& experiment,
                            const GivenModels& given, const std::optional<PlannedLanes>& planned) {
  MeasureOptions options{.models = {}};
  options.pin = false;
  options.planned = planned;
  options.given = given;
  auto measured = Measure(experiment, options);
  if (!measured) return std::unexpected(measured.error());
  ServedRun run{MakeReport(experiment.scenario, experiment.profile, measured->result),
                *std::move(measured)};
  run.report.source = fmt::format("{}measured on {}", device.mark(), run.measured.engine);
  run.report.prediction = run.measured.prediction;
  return run;
}

void PrintRun(const BenchDevice& device, const RunReport& run, double load) {
  fmt::print(
      "  {}{:<16} {:>4.0f} % {:<44} {:9.1f} met/s {:6.2f} % violations, P50 {:7.2f} P95 {:7.2f} "
      "ms, "
      "batch {:4.1f}\n",
      device.mark(), run.scenario, 100 * load, run.policy, run.all.goodput_rps,
      100 * run.all.bad_ratio, run.all.p50_ms, run.all.p95_ms, run.all.mean_batch);
}

}  // namespace tactus
