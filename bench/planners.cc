// How long gpu-lets' planners take. Five models on four devices, at each of the paper's 1,023 loads
// (each the least of several equal runs, so that the machine's other work does not count), as if
// requests came evenly and as the server plans, which counts on chance (core/chance.h); then up to
// 200 models on 256 devices.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/rng.h"
#include "base/source_path_for_test.h"
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
const std::string kScenario = SourcePath("scenarios/gpulets/equal.toml");
constexpr std::array kShares = {0.2, 0.4, 0.5, 0.6, 0.8, 1.0};
constexpr LaneClass kHalf{2};
constexpr double kBar = 1e6;  // ns
// Of what is planned for with chance, what is expected: [plan] headroom's default is beyond it.
constexpr double kHeadroom = 0.25;

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
  bool by_chance = false;
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

// As the server plans (placement/replanner.h).
std::vector<Subject> SubjectsByChance() {
  return {{.name = "gpulet-retry, chance",
           .has_bar = true,
           .solve = [](const PlanInput& in) { return PlanElasticRetrying(in, {}); },
           .by_chance = true},
          {.name = "gpulet-retry+int, chance",
           .has_bar = true,
           .solve =
               [](const PlanInput& in) {
                 return PlanElasticRetrying(in, {.interference = &kInterference});
               },
           .by_chance = true}};
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

// What a planner took for one or more loads of the same size.
struct Row {
  std::string planner;
  std::size_t models = 0;
  int devices = 0;
  std::size_t loads = 0;
  int planned = 0;  // those for which there was a plan
  double mean_ns = 0;
  double median_ns = 0;
  double p99_ns = 0;
  double worst_ns = 0;
  double prepared_ns = 0;  // once for all loads, before the first
};

class Timings {
 public:
  void Add(const Taken& taken) {
    nanos_.push_back(taken.ns);
    planned_ += taken.planned ? 1 : 0;
  }
  Row Over(std::string planner, std::size_t models, int devices) {
    std::ranges::sort(nanos_);
    return {.planner = std::move(planner),
            .models = models,
            .devices = devices,
            .loads = nanos_.size(),
            .planned = planned_,
            .mean_ns = std::accumulate(nanos_.begin(), nanos_.end(), 0.0) /
                       static_cast<double>(nanos_.size()),
            .median_ns = nanos_[nanos_.size() / 2],
            .p99_ns = nanos_[nanos_.size() * 99 / 100],
            .worst_ns = nanos_.back()};
  }

 private:
  std::vector<double> nanos_;
  int planned_ = 0;
};

constexpr std::size_t kModels = 5;
constexpr int kDevices = 4;
constexpr int kLoads = 1024;
void SetLoad(int load, PlanInput& input, bool by_chance = false) {
  for (PlannedModel& model : input.models) {
    model.rate_rps = 200 * (load % 4);
    model.expected_rps = by_chance ? model.rate_rps / (1 + kHeadroom) : 0;
    load /= 4;
  }
}

void Print(const Row& row) {
  fmt::print("{:<24} {:>8} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}\n", row.planner, row.planned,
             row.mean_ns / 1e3, row.median_ns / 1e3, row.p99_ns / 1e3, row.worst_ns / 1e3);
}

Status TimeLoads(double clock_cost, Report& report, std::vector<Row>& rows) {
  constexpr int kRepetitions = 5;
  auto problem = MakeProblem(kModels, kDevices);
  if (!problem) return std::unexpected(problem.error());
  problem->input.profile = &problem->profile;
  fmt::print(
      "5 models, 4 devices, 1,023 loads: us a plan (NAME+int: with --interference)\n"
      "{:<24} {:>8} {:>9} {:>9} {:>9} {:>9}\n",
      "planner", "planned", "mean", "median", "P99", "worst");
  std::vector<Subject> subjects = Subjects();
  std::ranges::move(SubjectsByChance(), std::back_inserter(subjects));
  for (const Subject& subject : subjects) {
    Timings timings;
    for (int load = 1; load < kLoads; ++load) {
      SetLoad(load, problem->input, subject.by_chance);
      timings.Add(Time(subject, problem->input, kRepetitions, clock_cost));
    }
    const Row& row = rows.emplace_back(timings.Over(subject.name, kModels, kDevices));
    Print(row);
    if (subject.by_chance) {
      report.checks.push_back(AtMost(
          fmt::format("{}: ns a plan of 5 models on 4 devices, the mean of 1,023", subject.name),
          row.mean_ns, kBar));
      report.checks.push_back(Reported(
          fmt::format("{}: ns a plan of 5 models on 4 devices, the worst of 1,023", subject.name),
          row.worst_ns));
    } else if (subject.has_bar) {
      report.checks.push_back(AtMost(
          fmt::format("{}: ns a plan of 5 models on 4 devices, the worst of 1,023", subject.name),
          row.worst_ns, kBar));
    }
  }
  return {};
}

Status TimeIdeal(double clock_cost, std::vector<Row>& rows) {
  auto problem = MakeProblem(kModels, kDevices);
  if (!problem) return std::unexpected(problem.error());
  PlanInput& most = problem->input;
  most.profile = &problem->profile;
  SetLoad(kLoads - 1, most);
  for (const bool interference : {false, true}) {
    const auto start = BenchClock::now();
    const auto ideal =
        IdealPlanner::Make(most, {.interference = interference ? &kInterference : nullptr});
    if (!ideal) return std::unexpected(ideal.error());
    const double prepared = NanosSince(start);
    const Subject subject = {interference ? "ideal+int" : "ideal", false,
                             [&](const PlanInput& asked) {
                               std::vector<double> rates;
                               for (const PlannedModel& model : asked.models)
                                 rates.push_back(model.rate_rps);
                               return ideal->Solve(rates);
                             }};
    Timings timings;
    PlanInput input = most;
    for (int load = 1; load < kLoads; ++load) {
      SetLoad(load, input);
      timings.Add(Time(subject, input, 1, clock_cost));
    }
    Row& row = rows.emplace_back(timings.Over(subject.name, kModels, kDevices));
    row.prepared_ns = prepared;
    Print(row);
    fmt::print("{:<24} after {} choices of a device in {:.2f} s\n", "", ideal->choices(),
               prepared / 1e9);
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

Status TimeGrowth(double clock_cost, std::vector<Row>& rows) {
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
      Timings timings;
      timings.Add(Time(subject, problem.input, 2, clock_cost));
      const PlanInput& input = problem.input;
      const Row& row =
          rows.emplace_back(timings.Over(subject.name, input.models.size(), input.devices));
      fmt::print(" {:>12}",
                 fmt::format("{:.3f}{}", row.worst_ns / 1e6, row.planned > 0 ? "" : " -"));
    }
    fmt::print("\n");
  }
  return {};
}

Status WriteCsv(const std::vector<Row>& rows, const std::string& path) {
  if (path.empty()) return {};
  std::ofstream file(path);
  file << fmt::format(
      "# ./run bench planners, commit {}, {}: 1,023 loads of 5 models on 4 devices, then one load "
      "of each size\n"
      "planner,models,devices,loads,planned,mean_us,median_us,p99_us,worst_us,prepared_ms\n",
      BuildCommit(), MachineKind());
  for (const Row& row : rows) {
    file << fmt::format("\"{}\",{},{},{},{},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f}\n", row.planner,
                        row.models, row.devices, row.loads, row.planned, row.mean_ns / 1e3,
                        row.median_ns / 1e3, row.p99_ns / 1e3, row.worst_ns / 1e3,
                        row.prepared_ns / 1e6);
  }
  file.close();
  if (file) return {};
  return Fail(ErrorCode::kUnavailable, fmt::format("{}: cannot be written", path));
}

Expected<Report> TimeAll(std::vector<Row>& rows) {
  const double clock_cost = ClockCost();
  Report report;
  if (auto timed = TimeLoads(clock_cost, report, rows); !timed) {
    return std::unexpected(timed.error());
  }
  if (auto timed = TimeIdeal(clock_cost, rows); !timed) return std::unexpected(timed.error());
  if (auto timed = TimeGrowth(clock_cost, rows); !timed) return std::unexpected(timed.error());
  return report;
}

int Run(const std::string& json, const std::string& csv) {
  std::vector<Row> rows;
  const auto report = TimeAll(rows);
  if (!report) return CannotRun(kProgram, report.error());
  if (auto written = WriteCsv(rows, csv); !written) return CannotRun(kProgram, written.error());
  return Conclude(kProgram, *report, json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"How long gpu-lets' planners take."};
  std::string json;
  std::string csv;
  app.add_option("--json", json, "Write the checks to this file");
  app.add_option("--csv", csv, "Write what each planner took for each size to this file");
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(json, csv);
}
