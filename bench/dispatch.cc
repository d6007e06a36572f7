// What a decision costs. EdgeServing's two versions in a steady state: each round serves one batch,
// time passes by its latency, and as many requests arrive as left, so that the number of waiting
// requests stays what it is said to be. Only Decide is timed; what the hooks do is part of an
// arrival.
//
// Two backlogs: with an SLO of 60 s no request is past its clip; with 50 ms and thousands that wait
// nearly all are, as in an overload that nobody sheds.
#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/rng.h"
#include "base/source_path_for_test.h"
#include "metrics/report.h"
#include "policies/registry.h"
#include "program.h"
#include "sim/simulation.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_dispatch";

class SteadyState {
 public:
  SteadyState(int models, int waiting, Duration slo, Policy& policy)
      : rng_(Rng::Stream(1, "bench/dispatch")), slo_(slo), policy_(policy), lanes_(1) {
    ProfileTable::ModelRows row{.exits = 4, .max_batch = 10};
    for (const double at_5 : {1.67, 3.69, 12.61, 13.53}) {
      for (int b = 1; b <= 10; ++b) row.latency.push_back(FromMillis(at_5 * (1 + 0.06 * (b - 5))));
    }
    models_.resize(models, Model{.name = "m", .slo = slo, .max_batch = 10});
    for (int i = 0; i < models; ++i) {
      models_[i].exits.resize(4);
      queues_.emplace_back(static_cast<std::size_t>(waiting) + 64);
    }
    profile_ = ProfileTable(1, std::vector<ProfileTable::ModelRows>(models, row));
    lanes_[0].id = LaneId{0};
    lanes_[0].batches = FixedVector<RunningBatch>(1);
    policy_.Prepare(View());
    // As old as they would be: a round of about 10 ms for every ten of them.
    for (int i = 0; i < waiting; ++i) {
      Arrive();
      now_ += Millis(1);
    }
  }

  // Nanoseconds a decision, over `rounds` of them.
  double Time(int rounds, double clock_cost) {
    double nanos = 0;
    for (int i = 0; i < rounds; ++i) {
      const auto start = BenchClock::now();
      const Decision decision = policy_.Decide(View(), now_);
      nanos += NanosSince(start) - clock_cost;
      CarryOut(std::get<Dispatch>(decision));
    }
    return nanos / rounds;
  }

 private:
  tactus::View View() const { return {models_, queues_, lanes_, profile_}; }
  void Arrive() {
    const ModelId m{static_cast<ModelId::rep>(rng_.Below(models_.size()))};
    const Request request{.id = RequestId{next_id_++}, .arrival = now_, .deadline = now_ + slo_};
    if (queues_[m.value()].Push(request)) policy_.OnArrive(m, request);
  }
  void CarryOut(const Dispatch& d) {
    policy_.OnPopFront(d.model, d.batch);
    queues_[d.model.value()].PopFront(d.batch);
    const Duration latency = profile_.Latency(d.model, d.exit, d.batch, LaneClass{0});
    for (int i = 0; i < d.batch; ++i) {
      now_ += latency / d.batch;
      Arrive();
    }
  }

  Rng rng_;
  const Duration slo_;
  Policy& policy_;
  std::vector<Model> models_;
  std::vector<RequestQueue> queues_;
  ProfileTable profile_;
  std::vector<Lane> lanes_;
  TimePoint now_ = kStart;
  std::uint64_t next_id_ = 0;
};

// The least of several means: what the machine's other work adds is never negative.
double Measure(const std::string& name, int models, int waiting, Duration slo, double clock_cost) {
  const bool plain = name == "edgeserving-plain";
  const double terms = static_cast<double>(models) * waiting;
  // Short means, and many: a slice without an interruption by other work is found even on a machine
  // that is never idle.
  const int rounds = plain ? std::clamp(static_cast<int>(2e6 / terms), 1, 1000) : 1000;
  auto policy = MakePolicy(name);
  SteadyState state(models, waiting, slo, **policy);
  state.Time(rounds, clock_cost);
  double least = 1e18;
  for (int repeat = 0; repeat < (plain ? 4 : 40); ++repeat) {
    least = std::min(least, state.Time(rounds, clock_cost));
  }
  return least;
}

struct Point {
  int models;
  int waiting;
  double slo_s;
  double nanos;
};

std::vector<Point> MeasureAll(const std::string& name, double clock_cost) {
  std::vector<Point> points;
  fmt::print("{}: ns a decision (ns a model)\n{:>8} {:>8}", name, "SLO", "models");
  const std::vector<int> waiting = {10, 100, 1000, 10'000};
  for (const int n : waiting) fmt::print("  {:>12} waiting", n);
  fmt::print("\n");
  for (const Duration slo : {Seconds(60), Millis(50)}) {
    for (const int models : {3, 10, 30, 100, 300}) {
      fmt::print("{:>6.3g} s {:>8}", ToSeconds(slo), models);
      for (const int n : waiting) {
        const double nanos = Measure(name, models, n, slo, clock_cost);
        points.push_back({models, n, ToSeconds(slo), nanos});
        fmt::print("  {:>11.0f} ({:>6.1f})", nanos, nanos / models);
        std::fflush(stdout);
      }
      fmt::print("\n");
    }
  }
  return points;
}

const Point& At(const std::vector<Point>& points, int models, int waiting, double slo_s) {
  return *std::find_if(points.begin(), points.end(), [&](const Point& p) {
    return p.models == models && p.waiting == waiting && p.slo_s == slo_s;
  });
}

void CheckDecisions(const std::vector<Point>& points, std::vector<Check>& checks) {
  double worst = 0;
  double growth = 0;
  double spread = 0;
  for (const Point& p : points) worst = std::max(worst, p.nanos / p.models);
  for (const double slo : {60.0, 0.05}) {
    growth = std::max(growth, At(points, 300, 10'000, slo).nanos / 300 /
                                  (At(points, 30, 10'000, slo).nanos / 30));
    // From where every model has a full batch waiting: below that there is less to decide about.
    // What is left is the clip, which only an overload reaches, and caches; a cost that followed
    // the queue would be 10 to 100 times as much.
    for (const int models : {3, 10}) {
      spread = std::max(spread, At(points, models, 10'000, slo).nanos /
                                    At(points, models, models == 3 ? 100 : 1000, slo).nanos);
    }
  }
  checks.push_back(AtMost("fast: ns a model, the worst of all sizes", worst, 100));
  checks.push_back(AtMost("fast: ns a model, 300 models over 30", growth, 2.5));
  checks.push_back(AtMost("fast: ns a decision, 10,000 waiting over full batches", spread, 3));
}

// Requests through arrivals, dispatcher, policy and recorder in a second of processor time.
Expected<double> SimulatorRate() {
  auto scenario = LoadScenario(SourcePath("scenarios/three-resnets.toml"));
  if (!scenario) return std::unexpected(scenario.error());
  const auto profile = LoadProfile(scenario->profile);
  if (!profile) return std::unexpected(profile.error());
  scenario->rate_rps = 1440;
  scenario->duration_s = 600;
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto policy = MakePolicy("edgeserving");
    const std::clock_t start = std::clock();
    const auto result = Simulate(*scenario, *profile, **policy);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!result) return std::unexpected(result.error());
    best = std::max(best, static_cast<double>(result->records.size()) / seconds);
  }
  return best;
}

int Run(const std::string& json) {
  const double clock_cost = ClockCost();
  Report report;
  CheckDecisions(MeasureAll("edgeserving", clock_cost), report.checks);
  MeasureAll("edgeserving-plain", clock_cost);
  const auto rate = SimulatorRate();
  if (!rate) return CannotRun(kProgram, rate.error());
  report.checks.push_back(AtLeast("simulator: requests a CPU-second, edgeserving", *rate, 2e6));
  return Conclude(kProgram, report, json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"What a decision costs, and how fast the simulator is."};
  std::string json;
  app.add_option("--json", json, "Write the checks to this file");
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(json);
}
