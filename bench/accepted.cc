// Whether plans that are accepted hold when they run: random loads of gpu-lets' scenarios, each
// planned by each planner and, where its plan is valid, run in virtual time with Poisson arrivals.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/rng.h"
#include "core/chance.h"
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
constexpr double kMostLost = 0.01;

struct Load {
  Scenario scenario;
  const ProfileFile* profile = nullptr;
};

struct Mix {
  Scenario scenario;
  ProfileFile profile;
  PlanQuestion question;
};

// Each model's requests by themselves, within its own SLO, also where pipelines send them.
Expected<Mix> LoadMix(const std::string& name) {
  auto scenario =
      LoadScenario(fmt::format("{}/scenarios/gpulets/{}.toml", TACTUS_SOURCE_DIR, name));
  if (!scenario) return std::unexpected(scenario.error());
  auto profile = LoadProfile(scenario->profile);
  if (!profile) return std::unexpected(profile.error());
  auto question = MakePlanQuestion(*scenario, *profile);
  if (!question) return std::unexpected(question.error());
  scenario->pipelines.clear();
  scenario->rate_rps = 0;
  for (std::size_t m = 0; m < scenario->models.size(); ++m) {
    scenario->models[m].slo_ms = ToMillis(question->input.models[m].slo);
  }
  return Mix{std::move(*scenario), std::move(*profile), std::move(*question)};
}

// By model: in the mean half of the devices, divided at random, what whole ones do of each.
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
  const char* name;
  const char* planner;
  bool counts_on_neighbours;
  bool contention;
  bool looks_at_luck;
  bool has_bar;
};

struct Outcome {
  int loads = 0;
  int accepted = 0;
  int over = 0;
  double worst = 0;
  double sum = 0;
  double plan_ns = 0;
};

struct Options {
  std::uint64_t seed = 1;
  int loads = 200;
  double seconds = 20;
  bool detail = false;
};

int Go(const Options& options) {
  const std::vector<Subject> subjects = {
      {"gpulet", "gpulet", false, false, false, false},
      {"gpulet-retry", "gpulet-retry", false, false, false, false},
      {"gpulet-retry, contended", "gpulet-retry", false, true, false, false},
      {"gpulet+int", "gpulet", true, true, false, false},
      {"gpulet-retry+int", "gpulet-retry", true, true, false, false},
      {"gpulet-retry+int, quiet", "gpulet-retry", true, false, false, false},
      {"nexus", "nexus", false, false, false, false},
      {"luck: gpulet", "gpulet", false, false, true, false},
      {"luck: gpulet-retry", "gpulet-retry", false, false, true, false},
      {"luck: gpulet+int", "gpulet", true, true, true, false},
      {"luck: gpulet-retry+int", "gpulet-retry", true, true, true, false},
      {"luck: gpulet-retry+int, quiet", "gpulet-retry", true, false, true, false},
      {"luck: nexus", "nexus", false, false, true, false},
  };
  std::vector<Mix> mixes;
  for (const char* name : kScenarios) {
    auto mix = LoadMix(name);
    if (!mix) return CannotRun(kProgram, mix.error());
    mixes.push_back(std::move(*mix));
  }
  std::vector<Outcome> outcomes(subjects.size());
  Rng rng = Rng::Stream(options.seed, "bench/accepted");
  for (int i = 0; i < options.loads; ++i) {
    Mix& mix = mixes[i % mixes.size()];
    PlanInput wanted = mix.question.input;
    const auto rates = RandomRates(wanted, rng);
    for (std::size_t m = 0; m < rates.size(); ++m) wanted.models[m].rate_rps = 1.25 * rates[m];
    const PlanInput even = wanted;
    for (std::size_t m = 0; m < rates.size(); ++m) wanted.models[m].expected_rps = rates[m];
    for (std::size_t s = 0; s < subjects.size(); ++s) {
      const Subject& subject = subjects[s];
      Outcome& outcome = outcomes[s];
      ++outcome.loads;
      auto planner = MakePlanner(subject.planner, subject.counts_on_neighbours
                                                      ? std::optional(kInterference)
                                                      : std::nullopt);
      const auto start = BenchClock::now();
      auto plan = (*planner)->Solve(subject.looks_at_luck ? wanted : even);
      outcome.plan_ns += NanosSince(start);
      if (!plan || !Validate(*plan, subject.looks_at_luck ? wanted : even)) continue;
      ++outcome.accepted;
      Scenario scenario = mix.scenario;
      for (std::size_t m = 0; m < rates.size(); ++m) scenario.models[m].rate_rps = rates[m];
      scenario.seed = options.seed;
      scenario.duration_s = options.seconds;
      scenario.warmup_s = 1;
      if (!subject.contention) scenario.capacity.clear();
      const auto shared = std::make_shared<const Plan>(*plan);
      const auto run =
          Simulate(scenario, mix.profile, **MakePolicy("planned"), {.plan = shared});
      if (!run) return CannotRun(kProgram, run.error());
      const auto report = MakeReport(scenario, mix.profile, *run);
      const double lost = report.all.bad_ratio;
      if (options.detail && !subject.looks_at_luck) {
        const auto predicted = LossesByChance(*plan, wanted);
        double sum = 0, all = 0;
        for (std::size_t m = 0; m < rates.size(); ++m) sum += rates[m] * predicted[m].part, all += rates[m];
        fmt::print("cal \"{}\" {} all {:.4f} {:.4f}\n", subject.name, i, lost, sum / all);
        for (std::size_t m = 0; m < rates.size(); ++m)
          fmt::print("calm \"{}\" {} {} {:.1f} {:.4f} {:.4f} {:.4f}\n", subject.name, i, wanted.models[m].name, rates[m], report.models[m].figures.bad_ratio, predicted[m].part, predicted[m].error);
      }
      outcome.over += lost > kMostLost;
      outcome.sum += lost;
      outcome.worst = std::max(outcome.worst, lost);
      if (options.detail && lost > kMostLost) {
        fmt::print("load {} {} {}: lost {:.2f} %\n", i, mix.scenario.name, subject.name, 100 * lost);
        for (std::size_t m = 0; m < rates.size(); ++m)
          fmt::print("   {} {:.1f} rps slo {} bad {:.2f} %\n", wanted.models[m].name, rates[m],
                     mix.scenario.models[m].slo_ms, 100 * report.models[m].figures.bad_ratio);
        for (std::size_t l = 0; l < plan->lanes.size(); ++l) {
          const auto& lane = plan->lanes[l];
          fmt::print("   lane dev {} {:.0f} % cycle {:.2f} busy {:.2f}:", lane.spec.device.value(),
                     100 * lane.spec.fraction, ToMillis(lane.cycle), report.lanes[l].busy_ratio);
          for (const auto& e : lane.entries)
            fmt::print(" {} x{} {:.2f} ms;", wanted.models[e.model.value()].name, e.batch,
                       ToMillis(e.length));
          fmt::print("\n");
        }
      }
    }
  }
  fmt::print("{:<28} {:>8} {:>6} {:>8} {:>8} {:>10}\n", "planner", "accepted", "over", "worst", "mean", "us a plan");
  for (std::size_t s = 0; s < subjects.size(); ++s) {
    const Outcome& o = outcomes[s];
    fmt::print("{:<28} {:>8} {:>6} {:>8.2f} {:>8.3f} {:>10.1f}\n", subjects[s].name, o.accepted, o.over,
               100 * o.worst, 100 * o.sum / std::max(1, o.accepted), o.plan_ns / 1e3 / o.loads);
  }
  return 0;
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"x"};
  tactus::Options options;
  app.add_option("--seed", options.seed, "");
  app.add_option("--loads", options.loads, "");
  app.add_option("--seconds", options.seconds, "");
  app.add_flag("--detail", options.detail, "");
  CLI11_PARSE(app, argc, argv);
  return tactus::Go(options);
}
