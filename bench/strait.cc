// What a decision of Strait costs: 12 models on 4 devices of four slots, in the four workloads of
// its paper at full load. Each Decide of a whole simulated run is timed; the run is the same each
// time, so the least of several repetitions of one decision is what it costs without what the
// machine's other work adds.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/allocation_count.h"
#include "metrics/report.h"
#include "policies/registry.h"
#include "program.h"
#include "sim/simulation.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_strait";

// Times another policy's Decide and passes everything on.
class Timed final : public Policy {
 public:
  // `nanos`: the least that each decision took so far, in order; grows in the first run.
  Timed(Policy& policy, std::vector<double>& nanos, double clock_cost)
      : policy_(policy), nanos_(nanos), clock_cost_(clock_cost) {}

  std::string_view name() const override { return policy_.name(); }
  Decision Decide(const View& view, TimePoint now) override {
    const std::size_t before = allocations_here;
    const auto start = BenchClock::now();
    const Decision decision = policy_.Decide(view, now);
    const double took = std::max(0.0, NanosSince(start) - clock_cost_);
    allocated_ += allocations_here - before;
    if (decisions_ == nanos_.size()) nanos_.push_back(took);
    nanos_[decisions_] = std::min(nanos_[decisions_], took);
    ++decisions_;
    return decision;
  }
  void Prepare(const View& view) override { policy_.Prepare(view); }
  std::string_view planner() const override { return policy_.planner(); }
  Duration epoch() const override { return policy_.epoch(); }
  void OnPlan(const View& view) override { policy_.OnPlan(view); }
  bool suspends() const override { return policy_.suspends(); }
  std::uint64_t examined() const override { return policy_.examined(); }
  const PredictionErrors* prediction_errors() const override { return policy_.prediction_errors(); }
  void OnArrive(ModelId m, const Request& request) override { policy_.OnArrive(m, request); }
  void OnPopFront(ModelId m, int count) override { policy_.OnPopFront(m, count); }
  void OnQueueChange(ModelId m) override { policy_.OnQueueChange(m); }
  void OnLaneChange(const Lane& lane) override { policy_.OnLaneChange(lane); }
  void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                   TimePoint now) override {
    policy_.OnBatchDone(lane, batch, report, now);
  }

  std::size_t decisions() const { return decisions_; }
  std::size_t allocated() const { return allocated_; }

 private:
  Policy& policy_;
  std::vector<double>& nanos_;
  const double clock_cost_;
  std::size_t decisions_ = 0;
  std::size_t allocated_ = 0;
};

struct Cost {
  std::size_t decisions = 0;
  double median = 0;  // ns
  double p99 = 0;
  double worst = 0;
  double allocations = 0;
};

Expected<Cost> Measure(const std::string& workload, double clock_cost) {
  auto scenario =
      LoadScenario(fmt::format("{}/scenarios/strait/{}.toml", TACTUS_SOURCE_DIR, workload));
  if (!scenario) return std::unexpected(scenario.error());
  constexpr int kDevices = 4;
  scenario->lanes = kDevices;
  scenario->rate_rps *= kDevices;
  scenario->duration_s = 10;
  scenario->warmup_s = 1;
  const auto profile = LoadProfile(scenario->profile);
  if (!profile) return std::unexpected(profile.error());
  Cost cost;
  std::vector<double> nanos;
  constexpr int kRepetitions = 7;
  for (int i = 0; i < kRepetitions; ++i) {
    auto policy = MakePolicy("strait");
    Timed timed(**policy, nanos, clock_cost);
    const auto result = Simulate(*scenario, *profile, timed);
    if (!result) return std::unexpected(result.error());
    if (timed.decisions() != nanos.size()) return Internal("two equal runs were not the same");
    cost.allocations += static_cast<double>(timed.allocated());
  }
  std::sort(nanos.begin(), nanos.end());
  cost.decisions = nanos.size();
  cost.median = nanos[nanos.size() / 2];
  cost.p99 = nanos[nanos.size() * 99 / 100];
  cost.worst = nanos.back();
  return cost;
}

int Run(const std::string& json) {
  const double clock_cost = ClockCost();
  Cost most;
  fmt::print(
      "strait, 12 models, 4 devices of 4 slots: ns a decision\n{:<10} {:>10} {:>8} {:>8} "
      "{:>8} {:>12}\n",
      "workload", "decisions", "median", "P99", "worst", "allocations");
  for (const char* workload : {"high", "low", "balanced", "uniform"}) {
    const auto cost = Measure(workload, clock_cost);
    if (!cost) return CannotRun(kProgram, cost.error());
    fmt::print("{:<10} {:>10} {:>8.0f} {:>8.0f} {:>8.0f} {:>12.0f}\n", workload, cost->decisions,
               cost->median, cost->p99, cost->worst, cost->allocations);
    most.median = std::max(most.median, cost->median);
    most.p99 = std::max(most.p99, cost->p99);
    most.worst = std::max(most.worst, cost->worst);
    most.allocations += cost->allocations;
  }
  Report report;
  report.checks = {
      AtMost("strait: ns a decision, median of the slowest workload", most.median, 1e4),
      AtMost("strait: ns a decision, P99 of the slowest workload", most.p99, 2e4),
      AtMost("strait: ns a decision, the worst of all", most.worst, 5e4),
      AtMost("strait: allocations in decisions", most.allocations, 0)};
  return Conclude(kProgram, report, json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"What a decision of Strait costs with 12 models and 4 devices."};
  std::string json;
  app.add_option("--json", json, "Write the checks to this file");
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(json);
}
