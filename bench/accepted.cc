// Whether plans that are accepted hold when they run: random loads of gpu-lets' scenarios, each
// planned by each planner, once as if requests came evenly and once as they come by chance
// (core/chance.h), and run in virtual time where the plan is valid.
#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/rng.h"
#include "base/source_path_for_test.h"
#include "planners/gpulet/duty_cycle.h"
#include "planners/registry.h"
#include "policies/registry.h"
#include "program.h"
#include "sim/simulation.h"
#include "sim/world/plan_question.h"

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_accepted";
constexpr std::array kScenarios = {"equal", "long-only", "short-skew", "game", "traffic"};
// scenarios/gpulets/waves.toml: about what is fitted to pairs of batches on the simulated device.
constexpr InterferenceModel kInterference{.c = {-0.119, 0.057, 0.456, 0.417, 0.873}};
// Where nobody knows how much lanes slow each other: a fifth.
constexpr InterferenceModel kAFifth{.c = {0, 0, 0, 0, 1.2}};
constexpr double kMostViolations = 0.01;
// Of the loads whose plan holds as it is, those that may be refused nevertheless.
constexpr double kMostRefused = 0.03;
constexpr double kHeadroom = 0.25;  // [plan] headroom's default
constexpr double kWarmup = 1;       // s

struct Options {
  std::uint64_t seed = 1;
  int loads = 200;
  double seconds = 20;
};

struct Mix {
  Scenario scenario;
  ProfileFile profile;
  PlanQuestion question;
};

// Each model's requests by themselves, within its own SLO, also where pipelines send them.
Expected<Mix> LoadMix(const std::string& name, const Options& options) {
  auto scenario = LoadScenario(fmt::format("{}/scenarios/gpulets/{}.toml", kSourceDir, name));
  if (!scenario) return std::unexpected(scenario.error());
  auto profile = LoadProfile(scenario->profile);
  if (!profile) return std::unexpected(profile.error());
  auto question = MakePlanQuestion(*scenario, *profile);
  if (!question) return std::unexpected(question.error());
  scenario->pipelines.clear();
  scenario->rate_rps = 0;
  scenario->seed = options.seed;
  scenario->duration_s = options.seconds + kWarmup;
  scenario->warmup_s = kWarmup;
  for (std::size_t m = 0; m < scenario->models.size(); ++m) {
    scenario->models[m].slo_ms = ToMillis(question->input.models[m].slo);
  }
  return Mix{std::move(*scenario), std::move(*profile), std::move(*question)};
}

// By model: up to all of the devices, divided at random, of what whole ones do of each model.
std::vector<double> RandomRates(const PlanInput& input, Rng& rng) {
  std::vector<double> rates;
  double asked = 0;
  for (std::size_t m = 0; m < input.models.size(); ++m) {
    const double part = rng.Uniform();
    rates.push_back(part * part);
    asked += rates.back();
  }
  const double devices = input.devices * rng.Uniform();
  for (ModelId::rep m = 0; m < rates.size(); ++m) {
    rates[m] *= devices / asked * MostRate(input, input.whole(), ModelId{m});
  }
  return rates;
}

struct Subject {
  std::string name;
  const char* planner;
  std::optional<InterferenceModel> interference = std::nullopt;  // that is counted on
  bool neighbours_slow = false;                                  // in the run
  bool refuses_little = false;  // it can plan for more where there would be too many violations
  bool knows_the_device = true;
};

const std::vector<Subject>& Subjects() {
  static const std::vector<Subject> all = {
      {.name = "gpulet", .planner = "gpulet"},
      {.name = "gpulet-retry", .planner = "gpulet-retry", .refuses_little = true},
      {.name = "gpulet+int",
       .planner = "gpulet",
       .interference = kInterference,
       .neighbours_slow = true},
      {.name = "gpulet-retry+int",
       .planner = "gpulet-retry",
       .interference = kInterference,
       .neighbours_slow = true,
       .refuses_little = true},
      {.name = "gpulet-retry+int, none there",
       .planner = "gpulet-retry",
       .interference = kInterference,
       .refuses_little = true},
      {.name = "gpulet-retry, some there",
       .planner = "gpulet-retry",
       .neighbours_slow = true,
       .refuses_little = true,
       .knows_the_device = false},
      {.name = "gpulet-retry+a fifth, some there",
       .planner = "gpulet-retry",
       .interference = kAFifth,
       .neighbours_slow = true,
       .refuses_little = true,
       .knows_the_device = false},
      {.name = "gpulet-retry+a fifth, none there",
       .planner = "gpulet-retry",
       .interference = kAFifth,
       .refuses_little = true}};
  return all;
}

struct Violations {
  double all = 0;    // of all requests
  double worst = 0;  // of the worst model's
};

// What a subject made of all loads, with or without chance.
struct Row {
  std::string planner;
  bool chance = false;
  int accepted = 0;
  int over = 0;
  int models_over = 0;        // plans under which some model has too many
  int refused_good = 0;       // by chance, whose plan has at most 1 % as it is
  int refused_better = 0;     // of those, at most 1 % of each model's requests
  double worst = 0;           // of the violations under plans
  double sum = 0;             // of it
  double planning = 0;        // ms, for all loads
  double worst_planning = 0;  // ms, for one

  void Count(const Violations& violations) {
    ++accepted;
    over += violations.all > kMostViolations ? 1 : 0;
    models_over += violations.worst > kMostViolations ? 1 : 0;
    worst = std::max(worst, violations.all);
    sum += violations.all;
  }
};

Expected<Violations> Run(const Mix& mix, const Subject& subject, const std::vector<double>& rates,
                         Plan plan) {
  Scenario scenario = mix.scenario;
  for (std::size_t m = 0; m < rates.size(); ++m) scenario.models[m].rate_rps = rates[m];
  if (!subject.neighbours_slow) scenario.capacity.clear();
  const auto policy = MakePolicy("planned");
  if (!policy) return std::unexpected(policy.error());
  const auto run = Simulate(scenario, mix.profile, **policy,
                            {.plan = std::make_shared<const Plan>(std::move(plan))});
  if (!run) return std::unexpected(run.error());
  const RunReport report = MakeReport(scenario, mix.profile, *run);
  Violations violations{.all = report.all.bad_ratio};
  for (const ModelSummary& model : report.models) {
    constexpr int kEnough = 200;  // requests, for one of the model to be no more than 0.5 %
    if (model.figures.requests < kEnough) continue;
    violations.worst = std::max(violations.worst, model.figures.bad_ratio);
  }
  return violations;
}

// Nothing where no plan is accepted.
Expected<std::optional<Violations>> PlanAndRun(const Mix& mix, const Subject& subject,
                                               const std::vector<double>& rates, Row& row) {
  PlanInput wanted = mix.question.input;
  for (std::size_t m = 0; m < rates.size(); ++m) {
    wanted.models[m].rate_rps = (1 + kHeadroom) * rates[m];
    if (row.chance) wanted.models[m].expected_rps = rates[m];
  }
  const auto planner = MakePlanner(subject.planner, subject.interference);
  if (!planner) return std::unexpected(planner.error());
  const auto start = BenchClock::now();
  auto plan = (*planner)->Solve(wanted);
  const double took = NanosSince(start) / 1e6;  // ms
  row.planning += took;
  row.worst_planning = std::max(row.worst_planning, took);
  if (!plan || !Validate(*plan, wanted)) return std::nullopt;
  const auto violations = Run(mix, subject, rates, std::move(*plan));
  if (!violations) return std::unexpected(violations.error());
  row.Count(*violations);
  return *violations;
}

// Two rows for each subject: without chance, with it.
Expected<std::vector<Row>> RunAll(const Options& options) {
  std::vector<Mix> mixes;
  for (const char* name : kScenarios) {
    auto mix = LoadMix(name, options);
    if (!mix) return std::unexpected(mix.error());
    mixes.push_back(std::move(*mix));
  }
  std::vector<Row> rows;
  for (const Subject& subject : Subjects()) {
    rows.push_back({.planner = subject.name});
    rows.push_back({.planner = subject.name, .chance = true});
  }
  Rng rng = Rng::Stream(options.seed, "bench/accepted");
  for (int i = 0; i < options.loads; ++i) {
    const Mix& mix = mixes[static_cast<std::size_t>(i) % mixes.size()];
    const std::vector<double> rates = RandomRates(mix.question.input, rng);
    for (std::size_t s = 0; s < Subjects().size(); ++s) {
      const auto even = PlanAndRun(mix, Subjects()[s], rates, rows[2 * s]);
      if (!even) return std::unexpected(even.error());
      const auto chance = PlanAndRun(mix, Subjects()[s], rates, rows[2 * s + 1]);
      if (!chance) return std::unexpected(chance.error());
      const bool good = even->has_value() && (*even)->all <= kMostViolations;
      if (!good || chance->has_value()) continue;
      ++rows[2 * s + 1].refused_good;
      if ((*even)->worst <= kMostViolations) ++rows[2 * s + 1].refused_better;
    }
  }
  return rows;
}

void Print(const std::vector<Row>& rows, const Options& options) {
  fmt::print(
      "{} random loads of five scenarios, seed {}, {:g} s of Poisson arrivals each; violations "
      "in %\n(good but refused: in brackets those with at most 1 % of every model's; NAME+int: "
      "--planner NAME with --interference)\n{:<33} {:>8} {:>9} {:>8} {:>7} {:>7} {:>10} {:>9} "
      "{:>9}\n",
      options.loads, options.seed, options.seconds, "planner", "accepted", "over 1 %", "worst",
      "mean", "models", "good but", "ms a", "the");
  fmt::print("{:<33} {:>8} {:>9} {:>8} {:>7} {:>7} {:>10} {:>9} {:>9}\n", "", "", "", "", "",
             "over", "refused", "plan", "worst");
  for (const Row& row : rows) {
    fmt::print("{:<33} {:>8} {:>9} {:>8.2f} {:>7.3f} {:>7} {:>10} {:>9.2f} {:>9.1f}\n",
               (row.chance ? "  by chance" : row.planner), row.accepted, row.over, 100 * row.worst,
               100 * row.sum / std::max(1, row.accepted), row.models_over,
               row.chance ? fmt::format("{} ({})", row.refused_good, row.refused_better) : "",
               row.planning / options.loads, row.worst_planning);
  }
}

Report Check(const std::vector<Row>& rows, const Options& options) {
  Report report;
  const auto add = [&](const Row& row, const std::string& what, double value, double bar, bool is) {
    const std::string text =
        fmt::format("{}: {} of {} loads, seed {}", row.planner, what, options.loads, options.seed);
    report.checks.push_back(is ? AtMost(text, value, bar) : Reported(text, value));
  };
  for (std::size_t s = 0; s < Subjects().size(); ++s) {
    const Subject& subject = Subjects()[s];
    const Row& even = rows[2 * s];
    const Row& chance = rows[2 * s + 1];
    add(chance, "accepted plans with over 1 % violations,", chance.over, 0,
        subject.knows_the_device);
    add(chance, "refused loads whose plan has at most 1 % violations,", chance.refused_good,
        kMostRefused * (even.accepted - even.over),
        subject.knows_the_device && subject.refuses_little);
  }
  return report;
}

Status WriteCsv(const std::vector<Row>& rows, const Options& options, const std::string& path) {
  if (path.empty()) return {};
  std::ofstream file(path);
  file << fmt::format(
      "# ./run bench accepted --seed {}, commit {}: {} loads, {:g} s each\n"
      "planner,by_chance,accepted,over_1_percent,worst_percent,mean_percent,"
      "some_model_over_1_percent,refused_but_good,of_them_for_every_model,plan_ms,worst_plan_ms\n",
      options.seed, BuildCommit(), options.loads, options.seconds);
  for (const Row& row : rows) {
    file << fmt::format("\"{}\",{},{},{},{:.3f},{:.4f},{},{},{},{:.2f},{:.1f}\n", row.planner,
                        row.chance ? "yes" : "no", row.accepted, row.over, 100 * row.worst,
                        100 * row.sum / std::max(1, row.accepted), row.models_over,
                        row.refused_good, row.refused_better, row.planning / options.loads,
                        row.worst_planning);
  }
  file.close();
  if (file) return {};
  return Fail(ErrorCode::kUnavailable, fmt::format("{}: cannot be written", path));
}

int Run(const Options& options, const std::string& json, const std::string& csv) {
  const auto rows = RunAll(options);
  if (!rows) return CannotRun(kProgram, rows.error());
  Print(*rows, options);
  if (auto written = WriteCsv(*rows, options, csv); !written) {
    return CannotRun(kProgram, written.error());
  }
  return Conclude(kProgram, Check(*rows, options), json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"Whether plans of gpu-lets' planners that are accepted hold when they run."};
  tactus::Options options;
  std::string json;
  std::string csv;
  app.add_option("--json", json, "Write the checks to this file");
  app.add_option("--csv", csv, "Write a row for each planner to this file");
  app.add_option("--seed", options.seed, "Of the loads and of the arrivals")->capture_default_str();
  app.add_option("--loads", options.loads, "How many")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of virtual time that each plan runs for")
      ->check(CLI::Range(1.0, 1e4))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(options, json, csv);
}
