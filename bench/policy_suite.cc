#include "policy_suite.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/rng.h"
#include "sim/search/peak_goodput.h"

namespace tactus {
namespace {

constexpr int kZoos = 12;

double FluidLimit(const Scenario& scenario, const ProfileFile& profile) {
  const auto models = AffineModels(scenario, profile);
  return models ? FluidPeak(*models, QuickestLanes(scenario)) : scenario.rate_rps;
}

// Long enough for so many requests at this rate, within reason.
void SetLength(Scenario& scenario, double rate, double requests) {
  scenario.warmup_requests = 0;
  scenario.warmup_s = 1;
  scenario.duration_s = scenario.warmup_s + std::clamp(requests / rate, 3.0, 60.0);
}

Expected<Workload> Load(const std::string& source_dir, std::string part, const std::string& file) {
  auto scenario = LoadScenario(source_dir + "/scenarios/" + file + ".toml");
  if (!scenario) return std::unexpected(scenario.error());
  auto profile = LoadProfile(scenario->profile);
  if (!profile) return std::unexpected(profile.error());
  return Workload{.part = std::move(part),
                  .name = scenario->name,
                  .scenario = std::move(*scenario),
                  .profile = std::move(*profile)};
}

// One of the mixed zoos: 5 to 60 models of the paper's Table 3, 4 to 256 lanes, Zipf or equal
// shares, Poisson or bursts, SLOs tight, mixed or loose.
Workload MakeZoo(const Workload& base, std::uint64_t seed, int number) {
  constexpr int kLanes[] = {4, 8, 16, 20, 24, 32, 48, 64, 128, 256};
  Rng rng = Rng::Stream(seed, fmt::format("zoo/{}", number));
  Workload zoo{
      .part = "zoos", .measure = Measure::kPeak, .profile = base.profile, .multiples = {0.25, 1.5}};
  Scenario& scenario = zoo.scenario = base.scenario;
  scenario.models.clear();
  const int models = 5 + static_cast<int>(rng.Below(56));
  scenario.lanes = kLanes[rng.Below(std::size(kLanes))];
  scenario.popularity = rng.Below(2) == 0 ? Popularity::kEqual : Popularity::kZipf;
  const bool bursts = rng.Below(2) == 0;
  scenario.process = bursts ? ArrivalProcess::kGamma : ArrivalProcess::kPoisson;
  scenario.cv = 1 / std::sqrt(0.3);  // a gamma distribution of shape 0.3
  const int slos = number % 3;
  for (int i = 0; i < models; ++i) {
    const ProfiledModel& model = base.profile.models[rng.Below(base.profile.models.size())];
    const double alone = model.exits.back().cells.front().mean_ms;
    const double mixed = 2 * std::exp(std::log(6.0) * rng.Uniform());
    const double times[] = {2 + rng.Uniform(), mixed, 8 + 4 * rng.Uniform()};
    scenario.models.push_back({.name = fmt::format("{}.{}", model.name, i),
                               .profile_as = model.name,
                               .slo_ms = std::ceil(times[slos] * alone)});
  }
  zoo.name = fmt::format(
      "zoo {}: {} models, {} lanes, {}, {}, {} SLOs", number, models, scenario.lanes,
      scenario.popularity == Popularity::kEqual ? "equal" : "zipf", bursts ? "bursts" : "poisson",
      slos == 0   ? "tight"
      : slos == 1 ? "mixed"
                  : "loose");
  scenario.name = zoo.name;
  return zoo;
}

}  // namespace

Expected<std::vector<Workload>> MakeSuite(const std::string& source_dir, std::uint64_t seed,
                                          double requests) {
  std::vector<Workload> suite;
  const auto add = [&](Workload workload) {
    workload.scenario.seed = seed;
    suite.push_back(std::move(workload));
  };
  const auto figure4 = Load(source_dir, "edgeserving", "edgeserving/fig04");
  if (!figure4) return std::unexpected(figure4.error());
  for (const double slo : {20, 30, 50}) {
    Workload workload = *figure4;
    for (ScenarioModel& model : workload.scenario.models) model.slo_ms = slo;
    workload.name = fmt::format("Figure 4, SLO {:g} ms", slo);
    workload.rates = {240, 480, 720, 960, 1200, 1440};
    SetLength(workload.scenario, 840, requests);
    add(std::move(workload));
  }
  const auto combination = Load(source_dir, "combination", "combination");
  if (!combination) return std::unexpected(combination.error());
  const double fluid = FluidLimit(combination->scenario, combination->profile);
  for (const bool bursts : {false, true}) {
    Workload workload = *combination;
    workload.name = bursts ? "combination, bursts" : "combination, poisson";
    if (bursts) {
      workload.scenario.process = ArrivalProcess::kGamma;
      workload.scenario.cv = 1 / std::sqrt(0.3);
    }
    for (const double part : {0.5, 0.75, 1.0, 1.25, 1.5}) workload.rates.push_back(part * fluid);
    SetLength(workload.scenario, fluid, requests);
    add(std::move(workload));
  }
  for (const char* file : {"fig02", "table2-resnet50", "table2-inceptionresnetv2", "zoo-1080ti-all",
                           "zoo-1080ti-strong", "zoo-1080ti-weak", "zoo-a100-all",
                           "zoo-a100-strong", "zoo-a100-weak"}) {
    auto workload = Load(source_dir, "symphony", std::string("symphony/") + file);
    if (!workload) return std::unexpected(workload.error());
    workload->measure = Measure::kPeak;
    workload->multiples = {0.1, 0.25, 1.5};
    SetLength(workload->scenario, FluidLimit(workload->scenario, workload->profile), requests);
    add(std::move(*workload));
  }
  for (const char* file : {"balanced", "high", "low", "uniform"}) {
    auto workload = Load(source_dir, "strait", std::string("strait/") + file);
    if (!workload) return std::unexpected(workload.error());
    workload->rates = {workload->scenario.rate_rps};
    SetLength(workload->scenario, workload->scenario.rate_rps, requests);
    add(std::move(*workload));
  }
  const auto base = Load(source_dir, "zoos", "symphony/zoo-1080ti-all");
  if (!base) return std::unexpected(base.error());
  for (int number = 1; number <= kZoos; ++number) {
    Workload zoo = MakeZoo(*base, seed, number);
    SetLength(zoo.scenario, FluidLimit(zoo.scenario, zoo.profile), requests);
    add(std::move(zoo));
  }
  return suite;
}

}  // namespace tactus
