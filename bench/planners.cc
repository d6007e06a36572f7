// How long gpu-lets' planners take. Five models on four devices, at each of the paper's 1,023 loads
// (each the least of several equal runs, so that the machine's other work does not count); then up
// to 200 models on 256 devices.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/rng.h"
#include "planners/gpulet/duty_cycle.h"
#include "planners/gpulet/elastic.h"
#include "planners/gpulet/ideal.h"
#include "planners/gpulet/share_latency.h"
#include "planners/nexus/squishy.h"
#include "program.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_planners";
constexpr const char* kScenario = TACTUS_SOURCE_DIR "/scenarios/gpulets/equal.toml";
constexpr std::array kShares = {0.2, 0.4, 0.5, 0.6, 0.8, 1.0};
constexpr LaneClass kHalf{2};
constexpr double kBar = 1e6;  // ns

// The authors' coefficients for a 2080 Ti (casys-kaist/glet at 3c1c2aa).
constexpr InterferenceModel kInterference{.c = {0.1129, 0.7160, 0.3549, 0.0882, 0.8954}};

struct Problem {
  ProfileTable profile;
  PlanInput input;
};

// The scenario's five models again and again, `count` in all.
Expected<Problem> MakeProblem(std::size_t count, int devices) {
  const auto scenario = LoadScenario(kScenario);
  if (!scenario) return std::unexpected(scenario.error());
  const auto profile = LoadProfile(scenario->profile);
  if (!profile) return std::unexpected(profile.error());
  const auto kinds = MakeModels(*scenario, *profile);
  if (!kinds) return std::unexpected(kinds.error());
  std::vector<Model> models;
  Problem problem;
  for (std::size_t i = 0; i < count; ++i) {
    models.push_back((*kinds)[i % kinds->size()]);
    problem.input.models.push_back(
        {.name = fmt::format("{} {}", models.back().name, i), .slo = models.back().slo});
  }
  const auto whole = MakeTable(*profile, models, {});
  if (!whole) return std::unexpected(whole.error());
  problem.input.shares.assign(kShares.begin(), kShares.end());
  auto on_shares = OnShares(*whole, {.shares = problem.input.shares});
  if (!on_shares) return std::unexpected(on_shares.error());
  problem.profile = std::move(*on_shares);
  problem.input.devices = devices;
  return problem;
}

struct Subject {
  const char* name;
  bool has_bar;
  std::function<Expected<Plan>(const PlanInput&)> solve;
};

std::vector<Subject> Subjects() {
  return {{"nexus", false, [](const PlanInput& in) { return PlanSquishy(in, in.whole()); }},
          {"nexus-half", false, [](const PlanInput& in) { return PlanSquishy(in, kHalf); }},
          {"self-tuning", false,
           [](const PlanInput& in) { return PlanElastic(in, {.self_tuning = true}); }},
          {"gpulet", true, [](const PlanInput& in) { return PlanElastic(in, {}); }},
          {"gpulet+int", true,
           [](const PlanInput& in) { return PlanElastic(in, {.interference = &kInterference}); }},
          {"gpulet-retry", true, [](const PlanInput& in) { return PlanElasticRetrying(in, {}); }},
          {"gpulet-retry+int", true, [](const PlanInput& in) {
             return PlanElasticRetrying(in, {.interference = &kInterference});
           }}};
}

struct Taken {
  double ns = 0;
  bool planned = false;
};

Taken Time(const Subject& subject, const PlanInput& input, int repetitions, double clock_cost) {
  Taken taken{.ns = 1e18};
  for (int i = 0; i < repetitions; ++i) {
    const auto start = BenchClock::now();
    const auto plan = subject.solve(input);
    taken.ns = std::min(taken.ns, std::max(0.0, NanosSince(start) - clock_cost));
    taken.planned = plan.has_value();
  }
  return taken;
}

constexpr int kLoads = 1024;
void SetLoad(int load, PlanInput& input) {
  for (PlannedModel& model : input.models) {
    model.rate_rps = 200 * (load % 4);
    load /= 4;
  }
}

Status TimeLoads(double clock_cost, Report& report) {
  constexpr int kRepetitions = 5;
  auto problem = MakeProblem(5, 4);
  if (!problem) return std::unexpected(problem.error());
  problem->input.profile = &problem->profile;
  fmt::print("5 models, 4 devices, 1,023 loads: us a plan\n{:<18} {:>8} {:>9} {:>9} {:>9}\n",
             "planner", "planned", "median", "P99", "worst");
  for (const Subject& subject : Subjects()) {
    std::vector<double> nanos;
    int planned = 0;
    for (int load = 1; load < kLoads; ++load) {
      SetLoad(load, problem->input);
      const Taken taken = Time(subject, problem->input, kRepetitions, clock_cost);
      nanos.push_back(taken.ns);
      planned += taken.planned ? 1 : 0;
    }
    std::ranges::sort(nanos);
    fmt::print("{:<18} {:>8} {:>9.1f} {:>9.1f} {:>9.1f}\n", subject.name, planned,
               nanos[nanos.size() / 2] / 1e3, nanos[nanos.size() * 99 / 100] / 1e3,
               nanos.back() / 1e3);
    if (subject.has_bar) {
      report.checks.push_back(AtMost(
          fmt::format("{}: ns a plan of 5 models on 4 devices, the worst of 1,023", subject.name),
          nanos.back(), kBar));
    }
  }
  return {};
}

Status TimeIdeal() {
  auto problem = MakeProblem(5, 4);
  if (!problem) return std::unexpected(problem.error());
  problem->input.profile = &problem->profile;
  SetLoad(kLoads - 1, problem->input);
  for (const bool interference : {false, true}) {
    auto start = BenchClock::now();
    const auto ideal = IdealPlanner::Make(
        problem->input, {.interference = interference ? &kInterference : nullptr});
    if (!ideal) return std::unexpected(ideal.error());
    const double made = NanosSince(start);
    start = BenchClock::now();
    int planned = 0;
    for (int load = 1; load < kLoads; ++load) {
      PlanInput input = problem->input;
      SetLoad(load, input);
      std::vector<double> rates;
      for (const PlannedModel& model : input.models) rates.push_back(model.rate_rps);
      planned += ideal->Solve(rates) ? 1 : 0;
    }
    fmt::print("{:<18} {:>8}  {} choices of a device in {:.2f} s, then {:.1f} ms a plan\n",
               interference ? "ideal+int" : "ideal", planned, ideal->choices(), made / 1e9,
               NanosSince(start) / 1e6 / (kLoads - 1));
  }
  return {};
}

// Random rates that together ask for 60 % of what the devices can do, each model alone on whole
// ones.
void SetRandomLoad(PlanInput& input) {
  constexpr double kPart = 0.6;
  Rng rng = Rng::Stream(1, "bench/planners");
  double asked = 0;  // devices
  for (std::size_t m = 0; m < input.models.size(); ++m) {
    const double devices = rng.Uniform();
    asked += devices;
    input.models[m].rate_rps =
        devices * MostRate(input, input.whole(), ModelId{static_cast<ModelId::rep>(m)});
  }
  for (PlannedModel& model : input.models) model.rate_rps *= kPart * input.devices / asked;
}

Status TimeGrowth(double clock_cost) {
  constexpr std::array<std::pair<std::size_t, int>, 5> kSizes = {
      {{5, 4}, {20, 16}, {50, 64}, {100, 128}, {200, 256}}};
  fmt::print("\nms a plan at 60 % of the devices, - where there is none\n{:<18}", "planner");
  std::vector<Problem> problems;
  for (const auto& [models, devices] : kSizes) {
    fmt::print(" {:>12}", fmt::format("{} on {}", models, devices));
    auto problem = MakeProblem(models, devices);
    if (!problem) return std::unexpected(problem.error());
    problems.push_back(std::move(*problem));
  }
  fmt::print("\n");
  for (Problem& problem : problems) {
    problem.input.profile = &problem.profile;
    SetRandomLoad(problem.input);
  }
  for (const Subject& subject : Subjects()) {
    fmt::print("{:<18}", subject.name);
    for (const Problem& problem : problems) {
      const Taken taken = Time(subject, problem.input, 2, clock_cost);
      fmt::print(" {:>12}", fmt::format("{:.3f}{}", taken.ns / 1e6, taken.planned ? "" : " -"));
    }
    fmt::print("\n");
  }
  return {};
}

int Run(const std::string& json) {
  const double clock_cost = ClockCost();
  Report report;
  if (auto timed = TimeLoads(clock_cost, report); !timed) return CannotRun(kProgram, timed.error());
  if (auto timed = TimeIdeal(); !timed) return CannotRun(kProgram, timed.error());
  if (auto timed = TimeGrowth(clock_cost); !timed) return CannotRun(kProgram, timed.error());
  return Conclude(kProgram, report, json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"How long gpu-lets' planners take."};
  std::string json;
  app.add_option("--json", json, "Write the checks to this file");
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(json);
}
