// Whether the lanes that are chosen (planners/lane_choice.h) are the right ones: twelve mixes of
// models on 2, 4, 8, 16 and 32 processors, in virtual time. For each, the peak goodput of the
// choice as a part of the best that any number of threads a lane reaches, as many lanes as fit.
//
// The models are made up, and so is how their batches gain from threads (Amdahl's law and a cost
// for each further thread); the choice sees them as a profile measures them, at 1, 2, 4, ...
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "experiment/auto_lanes.h"
#include "metrics/report.h"
#include "policies/registry.h"
#include "program.h"
#include "sim/search/peak_goodput.h"

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_autolanes";
constexpr double kBar = 0.95;

struct Options {
  std::string policy{kDefaultPolicy};
  std::uint64_t seed = 1;
  double requests = 40'000;
  double bad = 0.01;  // of each model's requests, at the peak
  std::vector<int> processors = {2, 4, 8, 16, 32};
  std::string only;
  bool all = false;
  std::string json;
};

// In milliseconds; a batch of b rows takes alpha b + beta on one thread, at the last exit.
struct MadeUp {
  std::string name;
  double alpha = 1;
  double beta = 1;
  double slo = 50;
  double serial = 0.1;              // part of a batch that one thread does
  double sync = 0.01;               // for each thread beside the first
  std::vector<double> exits = {1};  // parts of the whole network
  double weight = 1;
  int max_batch = 16;
};

struct Mix {
  std::string name;
  std::vector<MadeUp> models;
  bool bursts = false;
};

std::vector<Mix> Mixes() {
  const std::vector<double> four = {0.25, 0.5, 0.75, 1};
  const MadeUp quick{.name = "quick", .alpha = 0.6, .beta = 0.4, .slo = 50};
  const MadeUp mid{.name = "mid", .alpha = 6, .beta = 4, .slo = 100};
  const MadeUp slow{.name = "slow", .alpha = 60, .beta = 40, .slo = 1000};
  const auto with = [](MadeUp model, const char* name, double slo, double serial,
                       double weight = 1) {
    model.name = name;
    model.slo = slo;
    model.serial = serial;
    model.weight = weight;
    return model;
  };
  const auto exits = [&](MadeUp model) {
    model.exits = four;
    return model;
  };
  return {
      {"one, loose", {mid}},
      {"one, SLO of 3 batches", {with(mid, "a", 30, 0.1)}},
      {"one, SLO of 1.5 batches", {with(mid, "a", 15, 0.1)}},
      {"one, shorter SLO than its batch", {with(mid, "a", 7, 0.05)}},
      {"one, hardly parallel", {with(mid, "a", 15, 0.5)}},
      {"three with exits", {exits(quick), exits(with(mid, "m", 60, 0.1)), exits(slow)}},
      {"three alike, bursts", {with(mid, "a", 60, 0.1), with(mid, "b", 60, 0.1), mid}, true},
      {"quick and slow", {quick, with(slow, "s", 500, 0.1, 0.02)}},
      {"quick and slow, tight", {with(quick, "q", 10, 0.2), with(slow, "s", 150, 0.05, 0.02)}},
      {"slow ones, tight", {with(slow, "a", 160, 0.05), with(slow, "b", 220, 0.1)}},
      {"six by Zipf",
       {with(quick, "a", 20, 0.2, 6), with(quick, "b", 50, 0.2, 3), with(mid, "c", 50, 0.1, 2),
        with(mid, "d", 100, 0.1, 1.5), with(mid, "e", 40, 0.05, 1.2),
        with(slow, "f", 800, 0.1, 1)}},
      {"large batches only", {with({.name = "x", .alpha = 0.5, .beta = 12}, "x", 60, 0.15)}, true},
  };
}

double Milliseconds(const MadeUp& model, double exit, int batch, int threads) {
  const double alone = exit * (model.alpha * batch + model.beta);
  return alone * (model.serial + (1 - model.serial) / threads) + model.sync * (threads - 1);
}

ProfileFile ProfileOf(const Mix& mix, const std::vector<int>& measured) {
  ProfileFile profile;
  profile.provenance = "made up";
  for (const MadeUp& each : mix.models) {
    ProfiledModel& model = profile.models.emplace_back();
    model.name = each.name;
    model.max_batch = each.max_batch;
    for (std::size_t e = 0; e < each.exits.size(); ++e) {
      ProfiledExit& exit = model.exits.emplace_back();
      exit.name = fmt::format("{}", e + 1);
      exit.accuracy = each.exits[e];
      for (int b = 1; b <= each.max_batch; ++b) {
        const double ms = Milliseconds(each, each.exits[e], b, 1);
        exit.cells.push_back(
            {.mean_ms = ms, .min_ms = ms, .p50_ms = ms, .p95_ms = ms, .p99_ms = ms, .max_ms = ms});
      }
      for (const int threads : measured) {
        exit.by_threads.push_back({threads, Milliseconds(each, each.exits[e], 1, threads),
                                   Milliseconds(each, each.exits[e], each.max_batch, threads)});
      }
      Fit(exit);
    }
  }
  return profile;
}

Scenario ScenarioOf(const Mix& mix, int processors, const Options& options) {
  Scenario scenario;
  scenario.name = mix.name;
  scenario.policy = options.policy;
  scenario.seed = options.seed;
  scenario.expiry = "unmeetable";
  scenario.lanes = kAutoLanes;
  scenario.processors = processors;
  scenario.popularity = Popularity::kRatio;
  if (mix.bursts) {
    scenario.process = ArrivalProcess::kGamma;
    scenario.cv = 1.8;
  }
  for (const MadeUp& each : mix.models) {
    scenario.models.push_back(
        {.name = each.name, .profile_as = each.name, .slo_ms = each.slo, .ratio = each.weight});
  }
  return scenario;
}

// 0 where no rate passes.
double PeakOf(Scenario scenario, ProfileFile profile, LaneChoice choice, const Options& options) {
  TakeLanes(choice, scenario, profile);
  const auto models = AffineModels(scenario, profile);
  if (!models) return 0;
  const double fluid = std::max(1.0, FluidPeak(*models, scenario.lanes));
  scenario.warmup_s = 0;
  scenario.duration_s = options.requests / fluid;
  PeakOptions search{.seeds = {options.seed}};
  search.search.precision = 0.01;
  search.search.bad_limit = options.bad;
  const auto found = FindPeakGoodput(
      scenario, profile, [&] { return MakePolicy(scenario.policy); }, search);
  if (!found) {
    fmt::print(stderr, "{}: {}\n", scenario.name, found.error().message);
    return 0;
  }
  return found->searches.front().rate_rps;
}

int Run(const Options& options) {
  Report report;
  for (const int processors : options.processors) {
    double least = 1;
    fmt::print("\n{} processors\n", processors);
    for (const Mix& mix : Mixes()) {
      if (!options.only.empty() && mix.name != options.only) continue;
      const Scenario scenario = ScenarioOf(mix, processors, options);
      std::vector<int> every;
      for (int t = 1; t <= processors; ++t) every.push_back(t);
      std::vector<int> measured;
      for (int t = 1; t <= processors; t *= 2) measured.push_back(t);
      const auto question = LaneQuestionOf(scenario, ProfileOf(mix, measured));
      if (!question) return CannotRun(kProgram, question.error());
      const LaneChoice choice = ChooseLanes(*question);
      const ProfileFile whole = ProfileOf(mix, every);
      const int most = processors - choice.kept;
      std::map<int, double> peaks;  // by threads
      for (int t = 1; t <= most; ++t) {
        const int lanes = most / t;
        // More lanes of the same threads are never worse, and more threads on as many lanes are
        // the last that fit.
        if (t < most && most / (t + 1) == lanes && t != choice.threads) continue;
        peaks[t] = PeakOf(scenario, whole, {.lanes = lanes, .threads = t}, options);
      }
      const auto best = std::ranges::max_element(peaks, {}, [](const auto& p) { return p.second; });
      const double part = best->second > 0 ? peaks[choice.threads] / best->second : 1;
      least = std::min(least, part);
      fmt::print("  {:<34} {:>3} x {:<2} {:8.1f}/s   best {:>3} x {:<2} {:8.1f}/s   {:.3f}{}\n",
                 mix.name, choice.lanes, choice.threads, peaks[choice.threads], most / best->first,
                 best->first, best->second, part, part < kBar ? "  <" : "");
      if (options.all) {
        for (const auto& [t, peak] : peaks) {
          const LaneWorth worth = WorthOf(*LaneQuestionOf(scenario, whole), most / t, t);
          fmt::print("      {} x {}: {:.1f} (expected {:.1f} of {})\n", most / t, t, peak,
                     worth.peak_rps, worth.met);
        }
      }
      std::fflush(stdout);
    }
    report.checks.push_back(
        AtLeast(fmt::format("least part of the best on {} processors", processors), least, kBar));
  }
  return Conclude(kProgram, report, options.json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  tactus::Options options;
  CLI::App app{"How near the chosen lanes come to the best, in virtual time"};
  app.add_option("--policy", options.policy, "Which schedules")->capture_default_str();
  app.add_option("--seed", options.seed, "Of the arrivals")->capture_default_str();
  app.add_option("--requests", options.requests, "Of a run, about")->capture_default_str();
  app.add_option("--bad", options.bad, "Part of each model's requests that may be late")
      ->capture_default_str();
  app.add_option("--processors", options.processors, "Machines")->delimiter(',');
  app.add_option("--mix", options.only, "Only this one");
  app.add_flag("--all", options.all, "Print each number of threads, with its estimate");
  app.add_option("--json", options.json, "Write the checks to this file");
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(options);
}
