// Parts of the device beside time sharing, in the mixes of gpu-lets; and the simulator beside the
// device.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "device/parts.h"
#include "planners/registry.h"
#include "program.h"
#include "sim/simulation.h"
#include "workload/share_profiles.h"

namespace tactus {
namespace {

// gpu-lets, Table 5: five models, from a tiny one to one that is bound by memory, with its ratios;
// and what it gives each of them: SLOs are about five times the latency of a batch. On the one
// device that there is they share two lanes, where nobody waits less than a cycle, so none is below
// three times the longest.
std::vector<Mix> GpuletMixes(const ProfileFile& whole, bool quick) {
  struct Workload {
    const char* name;
    std::vector<std::pair<const char*, double>> nets;
  };
  const std::vector<Workload> workloads = {
      {"gpulets-equal", {{"tiny", 50}, {"quick", 50}, {"thin", 50}, {"wide", 50}, {"cached", 50}}},
      {"gpulets-long-only", {{"thin", 100}, {"wide", 100}, {"cached", 100}}},
      {"gpulets-short-skew",
       {{"tiny", 100}, {"quick", 100}, {"thin", 100}, {"wide", 50}, {"cached", 50}}}};
  Duration longest{};
  for (const auto& [net, ratio] : workloads[0].nets) {
    longest = std::max(longest, LargestBatch(whole, net));
  }
  std::vector<Mix> mixes;
  for (const Workload& workload : workloads) {
    // Of three runs the 95th percentile is the slowest.
    Mix mix{.name = workload.name, .percentile = quick ? 50.0 : 95.0};
    for (const auto& [net, ratio] : workload.nets) {
      // A quick look has to find a plan even where the host was busy while it measured.
      const Duration slo = std::max(Times(5, LargestBatch(whole, net)), Times(3, longest)) +
                           (quick ? Millis(200) : Duration{});
      mix.nets.push_back({net, net, slo, ratio});
    }
    mixes.push_back(std::move(mix));
  }
  return mixes;
}

constexpr double kPlannedLoad = 0.9;  // of the most that there is a plan for

class SharesBench {
 public:
  explicit SharesBench(const Bench& bench) : bench_(bench) {}

  Status Profile();
  Status Compare(const Mix& mix);
  const ProfileFile& whole() const { return shares_.back().profile; }

 private:
  // The largest rate that the planner finds a plan for, in requests/s of the whole mix.
  Expected<double> MostRps(const Mix& mix, Planner& planner) const;
  Expected<RunReport> ServePlanned(const Mix& mix, Planner& planner, double rate_rps, double load);

  const Bench& bench_;
  std::vector<ShareProfile> shares_;
};

Status SharesBench::Profile() {
  const std::vector<double> shares = bench_.options.quick
                                         ? std::vector<double>{0.5, 1}
                                         : std::vector<double>{0.2, 0.4, 0.5, 0.6, 0.8, 1};
  for (const double share : shares) {
    auto profile = ProfileNets(bench_.device, {"tiny", "quick", "thin", "wide", "cached"},
                               bench_.options, share);
    if (!profile) return std::unexpected(profile.error());
    shares_.push_back({share, *std::move(profile)});
  }
  return {};
}

Expected<double> SharesBench::MostRps(const Mix& mix, Planner& planner) const {
  const auto experiment = MakeExperiment(mix, whole(), 1, "planned", bench_.options);
  if (!experiment) return std::unexpected(experiment.error());
  const auto models = MakeModels(experiment->scenario, whole());
  if (!models) return std::unexpected(models.error());
  auto table = MakeTable(shares_, *models, {.percentile = experiment->scenario.percentile});
  if (!table) return std::unexpected(table.error());
  const std::vector<double> parts = Rates(experiment->scenario);  // of one request/s
  Error why;
  const auto fits = [&](double rps) {
    std::vector<ModelToPlace> placed;
    for (std::size_t i = 0; i < models->size(); ++i) {
      placed.push_back({.model = (*models)[i], .rate_rps = rps * parts[i]});
    }
    DevicesToSplit devices;
    for (const ShareProfile& each : shares_) devices.shares.push_back(each.share);
    const PlanQuestion question =
        MakePlanQuestion(std::make_shared<const ProfileTable>(*table), placed, devices);
    const auto plan = planner.Solve(question.input);
    if (!plan) why = plan.error();
    return plan.has_value();
  };
  double low = 0;
  double high = 2 * CapacityOf(mix, whole());
  for (int i = 0; i < 12; ++i) {
    const double middle = (low + high) / 2;
    // Less load may not fit where more does: bins are packed otherwise.
    (fits(middle) && fits(kPlannedLoad * middle) ? low : high) = middle;
  }
  if (low > 0) return low;
  return Fail(why.code, fmt::format("{}: {} plans nothing on this device, at whatever load: {}",
                                    mix.name, planner.name(), why.message));
}

Expected<RunReport> SharesBench::ServePlanned(const Mix& mix, Planner& planner, double rate_rps,
                                              double load) {
  const auto experiment = MakeExperiment(mix, whole(), rate_rps, "planned", bench_.options);
  if (!experiment) return std::unexpected(experiment.error());
  PlannedLanes planned{.planner = &planner};
  planned.split.shares = shares_;
  planned.split.on_device = true;
  auto run = Serve(bench_.device, *experiment, planned);
  if (!run) return std::unexpected(run.error());
  run->report.policy = fmt::format("planned by {}", planner.name());
  PrintRun(bench_.device, run->report, load);
  bench_.report.runs.push_back(run->report);
  return std::move(run->report);
}

Status SharesBench::Compare(const Mix& mix) {
  const auto parts = MakePlanner("gpulet-retry", std::nullopt);
  const auto by_time = MakePlanner("nexus", std::nullopt);
  if (!parts) return std::unexpected(parts.error());
  if (!by_time) return std::unexpected(by_time.error());
  const auto most_parts = MostRps(mix, **parts);
  if (!most_parts) return std::unexpected(most_parts.error());
  const auto most_time = MostRps(mix, **by_time);
  if (!most_time) return std::unexpected(most_time.error());
  fmt::print("  {}: planned for at most {:.0f} requests/s on parts, {:.0f} by time\n", mix.name,
             *most_parts, *most_time);
  bench_.Add(AtLeast(fmt::format("{}: planned requests/s on parts over those by time", mix.name),
                     *most_parts / *most_time, 1));
  const auto on_parts = ServePlanned(mix, **parts, kPlannedLoad * *most_parts, kPlannedLoad);
  if (!on_parts) return std::unexpected(on_parts.error());
  const auto in_time = ServePlanned(mix, **by_time, kPlannedLoad * *most_time, kPlannedLoad);
  if (!in_time) return std::unexpected(in_time.error());
  bench_.Add(
      AtMost(fmt::format("{}: violations on parts at 90 % of that (gpu-lets: 1 %)", mix.name),
             on_parts->all.bad_ratio, 0.01));
  bench_.Add(Reported(fmt::format("{}: violations by time at 90 % of its own", mix.name),
                      in_time->all.bad_ratio));
  bench_.Add(AtLeast(
      fmt::format("{}: requests/s answered in time, on parts over by time", mix.name),
      in_time->all.goodput_rps > 0 ? on_parts->all.goodput_rps / in_time->all.goodput_rps : 0, 1));
  return {};
}

double Off(double simulated, double measured) {
  return measured > 0 ? std::abs(simulated - measured) / measured : 1;
}

}  // namespace

Status MeasureShares(const Bench& bench) {
  SharesBench shares(bench);
  if (Status ok = shares.Profile(); !ok) return ok;
  std::vector<Mix> mixes = GpuletMixes(shares.whole(), bench.options.quick);
  if (bench.options.quick) mixes.resize(1);
  Status all;
  for (const Mix& mix : mixes) {
    if (Status ok = shares.Compare(mix); !ok) all = ok;
  }
  return all;
}

Status MeasureTwin(const Bench& bench) {
  const auto profile = ProfileNets(bench.device, {"exits_s", "exits_m", "exits_l"}, bench.options);
  if (!profile) return std::unexpected(profile.error());
  const Duration slo = Times(1.5, LargestBatch(*profile, "exits_l"));
  Mix mix{.name = "twin"};
  mix.nets = {{"exits_s", "exits_s", slo, 3},
              {"exits_m", "exits_m", slo, 2},
              {"exits_l", "exits_l", slo, 1}};
  const double capacity = CapacityOf(mix, *profile);
  // What a profile of the engine cannot know: a run of its own, with other arrivals.
  BenchOptions other = bench.options;
  ++other.seed;
  auto calibration = MakeExperiment(mix, *profile, capacity / 2, "edgeserving", other);
  if (!calibration) return std::unexpected(calibration.error());
  calibration->scenario.follow = "no";
  const auto calibrated = Serve(bench.device, *calibration);
  if (!calibrated) return std::unexpected(calibrated.error());
  ProfileFile served = WithOverheads(*calibration, calibrated->measured);
  std::vector<double> loads = {0.3, 0.6, 0.9};
  if (bench.options.quick) loads.resize(1);
  for (const double load : loads) {
    auto experiment = MakeExperiment(mix, served, load * capacity, "edgeserving", bench.options);
    if (!experiment) return std::unexpected(experiment.error());
    experiment->scenario.follow = "no";
    const auto real = Serve(bench.device, *experiment);
    if (!real) return std::unexpected(real.error());
    auto simulated = RunSimulated(*experiment);
    if (!simulated) return std::unexpected(simulated.error());
    simulated->source = bench.device.mark() + simulated->source;  // by a profile of the device
    PrintRun(bench.device, real->report, load);
    PrintRun(bench.device, *simulated, load);
    bench.report.runs.push_back(real->report);
    bench.report.runs.push_back(*simulated);
    bench.Add(AtMost(fmt::format("twin at {:g} % load: P50, simulated off measured", 100 * load),
                     Off(simulated->all.p50_ms, real->report.all.p50_ms), 0.15));
    bench.Add(AtMost(fmt::format("twin at {:g} % load: P95, simulated off measured", 100 * load),
                     Off(simulated->all.p95_ms, real->report.all.p95_ms), 0.15));
  }
  return {};
}

}  // namespace tactus
