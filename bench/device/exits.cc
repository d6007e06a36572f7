// EdgeServing's Figure 4: on kernel nets with early exits, and on ResNets with early exits
// (models/resnets.py), as the paper has them.
#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "device/parts.h"
#include "engines/registry.h"
#include "program.h"
#include "server/kserve/model_config.h"

namespace tactus {
namespace {

// Three models of three sizes, the smallest first, and what serves them.
struct Figure4 {
  std::string name;
  std::vector<std::string> models;
  std::vector<double> loads;  // of what a lane sustains in the largest batches at the last exits
  std::function<Expected<ServedRun>(const Experiment&)> serve;
};

struct Worst {
  double bad = 0;
  Duration p95{};
  double all_final = 0;
  double rivals = 1;    // the least of the others at the heaviest load
  double horizon = 0;   // of the default, there
  double accuracy = 0;  // of EdgeServing at the lightest load
};

Status ServeLoad(const Bench& bench, const Figure4& figure, const Mix& mix,
                 const ProfileFile& profile, double load, Worst& worst) {
  const double rate = load * CapacityOf(mix, profile);
  for (const std::string policy :
       {"edgeserving", "horizon", "all-final", "all-early", "symphony:gather=prefix,lead=0"}) {
    const auto experiment = MakeExperiment(mix, profile, rate, policy, bench.options);
    if (!experiment) return std::unexpected(experiment.error());
    auto served = figure.serve(*experiment);
    if (!served) return std::unexpected(served.error());
    RunReport& run = served->report;
    run.settings["load"] = fmt::format("{:g}", load);
    PrintRun(bench.device, run, load);
    if (policy == "edgeserving") {
      worst.bad = std::max(worst.bad, run.all.bad_ratio);
      worst.p95 = std::max(worst.p95, FromMillis(run.all.p95_ms));
      if (load == figure.loads.front()) worst.accuracy = run.all.accuracy;
    }
    if (load == figure.loads.back() && policy != "all-early") {
      if (policy == "horizon") worst.horizon = run.all.bad_ratio;
      if (policy != "horizon") worst.rivals = std::min(worst.rivals, run.all.bad_ratio);
    }
    if (policy == "all-final") worst.all_final = std::max(worst.all_final, run.all.bad_ratio);
    bench.report.runs.push_back(std::move(run));
  }
  return {};
}

Expected<Worst> Measure(const Bench& bench, const Figure4& figure, const ProfileFile& profile) {
  // In the paper the SLO is about one and a half times the longest batch.
  const Duration slo = Times(1.5, LargestBatch(profile, figure.models.back()));
  Mix mix{.name = figure.name};
  double ratio = 3;
  for (const std::string& model : figure.models) mix.nets.push_back({model, model, slo, ratio--});
  Worst worst;
  for (const double load : figure.loads) {
    if (Status ok = ServeLoad(bench, figure, mix, profile, load, worst); !ok) {
      return std::unexpected(ok.error());
    }
  }
  const std::string title = "Figure 4" + (figure.name == "figure4" ? "" : " on " + figure.name);
  bench.Add(AtMost(title + ": EdgeServing's violations at its worst load (paper < 1 %)", worst.bad,
                   0.01));
  bench.Add(AtMost(title + ": EdgeServing's P95 over the SLO at its worst load",
                   ToSeconds(worst.p95) / ToSeconds(slo), 1));
  bench.Add(AtLeast(title + ": All-Final's violations at its worst load (paper 15 %)",
                    worst.all_final, 0.15));
  bench.Add(AtMost(title + ": the default's violations at the heaviest load less the best rival's "
                           "that answers from later exits too",
                   worst.horizon - worst.rivals, 0.01));
  return worst;
}

std::vector<double> Loads(const Bench& bench) {
  if (bench.options.quick) return {0.3, 1.2};
  return {0.3, 0.6, 0.9, 1.2};
}

constexpr const char* kResNets[] = {"resnet50", "resnet101", "resnet152"};

// The ResNets and the engine that runs them.
struct ResNets {
  std::unique_ptr<Engine> engine;
  std::vector<ModelSpec> models;

  const ModelSpec& Named(const std::string& name) const {
    return *std::ranges::find(models, name, &ModelSpec::name);
  }
};

// A device that is not there runs no models: kernel nets stand for them.
Expected<ResNets> StandIns(const Bench& bench) {
  auto engine = MakeNetEngine(bench.device, {1});
  if (!engine) return std::unexpected(engine.error());
  ResNets made{*std::move(engine), {}};
  const char* const nets[] = {"exits_s", "exits_m", "exits_l"};
  for (std::size_t i = 0; i < 3; ++i) {
    made.models.push_back(SpecOf(NetNamed(nets[i]), kResNets[i]));
  }
  return made;
}

Expected<ResNets> Open(const Bench& bench) {
  if (bench.device.fake) return StandIns(bench);
  const auto& folder = bench.options.resnets;
  if (folder.empty()) {
    return InvalidArgument(
        "no models: write them with models/resnets.py --out DIR and say --resnets DIR");
  }
  ResNets read;
  std::string platform;
  for (const char* name : kResNets) {
    const auto versions = ListVersions(folder / name, "");
    if (!versions) return std::unexpected(versions.error());
    auto spec = ReadModelSpec(folder / name, versions->back(), "");
    if (!spec) return std::unexpected(spec.error());
    platform = spec->platform;
    read.models.push_back(*std::move(spec));
  }
  EngineOptions options{.emulated = {}};
  if (!bench.device.processor) options.devices = {bench.device.ordinal};
  options.priorities = {1};
  auto engine = MakeEngine(platform, options);
  if (!engine) return std::unexpected(engine.error());
  read.engine = *std::move(engine);
  return read;
}

}  // namespace

Status MeasureExits(const Bench& bench) {
  const std::vector<std::string> nets = {"exits_s", "exits_m", "exits_l"};
  const auto profile = ProfileNets(bench.device, nets, bench.options);
  if (!profile) return std::unexpected(profile.error());
  const Figure4 figure{"figure4", nets, Loads(bench), [&](const Experiment& experiment) {
                         return Serve(bench.device, experiment);
                       }};
  const auto measured = Measure(bench, figure, *profile);
  return measured ? Status() : std::unexpected(measured.error());
}

Status MeasureResNets(const Bench& bench) {
  const auto resnets = Open(bench);
  if (!resnets) return std::unexpected(resnets.error());
  const auto profile =
      ProfileModels(bench.device, *resnets->engine, resnets->models, bench.options);
  if (!profile) return std::unexpected(profile.error());
  for (const ModelSpec& model : resnets->models) {
    const auto& exits = profile->Find(model.name)->exits;
    fmt::print("  {}: a batch of {} takes {:.3f} ms to the first exit, {:.3f} ms to the last\n",
               model.name, exits[0].cells.size(), exits.front().cells.back().p50_ms,
               exits.back().cells.back().p50_ms);
  }
  const GivenModels given{resnets->engine.get(),
                          [&](const ScenarioModel& model) -> Expected<ModelSpec> {
                            return resnets->Named(model.name);
                          }};
  const Figure4 figure{
      "ResNets",
      {std::begin(kResNets), std::end(kResNets)},
      Loads(bench),
      [&](const Experiment& experiment) { return ServeBy(bench.device, experiment, given); }};
  const auto measured = Measure(bench, figure, *profile);
  if (!measured) return std::unexpected(measured.error());
  bench.Add(
      Reported("Figure 4 on ResNets: EdgeServing's accuracy at the lightest load, by the "
               "accuracies of the paper's table",
               measured->accuracy));
  return {};
}

}  // namespace tactus
