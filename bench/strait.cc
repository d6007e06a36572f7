// What a decision of Strait costs, and what it costs to learn from a batch that ended: 12 models on
// 4 devices of four slots, in the four workloads of its paper at full load. Each Decide and each
// OnBatchDone (the step of Adam, the clocks of the link, the cap) of a whole simulated run is
// timed; the run is the same each time, so the least of several repetitions of one call is what it
// costs without what the machine's other work adds.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/allocation_count.h"
#include "base/source_path_for_test.h"
#include "core/learner.h"
#include "metrics/report.h"
#include "policies/registry.h"
#include "program.h"
#include "sim/simulation.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_strait";

// The calls of one kind in a run that is the same each time.
class Calls {
 public:
  void Restart() { next_ = 0; }
  void Took(double nanos, std::size_t allocations) {
    allocated_ += allocations;
    if (next_ == least_.size()) least_.push_back(nanos);
    least_[next_] = std::min(least_[next_], nanos);
    ++next_;
  }
  // Whether this run had as many as those before.
  bool complete() const { return next_ == least_.size(); }
  const std::vector<double>& least() const { return least_; }
  std::size_t allocated() const { return allocated_; }

 private:
  std::vector<double> least_;  // ns that each took, in order; grows in the first run
  std::size_t next_ = 0;
  std::size_t allocated_ = 0;  // in all runs
};

// Times calls of another policy, one that learns, and passes everything on.
class Timed final : public Policy, public Learner {
 public:
  Timed(Policy& policy, Calls& decisions, Calls& reports, double clock_cost)
      : Policy(policy.traits()),
        policy_(policy),
        learner_(*LearnerOf(policy)),
        decisions_(decisions),
        reports_(reports),
        clock_cost_(clock_cost) {}

  Decision Decide(const View& view, TimePoint now) override {
    const std::size_t before = allocations_here;
    const auto start = BenchClock::now();
    const Decision decision = policy_.Decide(view, now);
    const double took = std::max(0.0, NanosSince(start) - clock_cost_);
    decisions_.Took(took, allocations_here - before);
    CountExamined(policy_.examined() - examined());
    return decision;
  }
  void Prepare(const View& view) override { policy_.Prepare(view); }
  void OnPlan(const View& view) override { policy_.OnPlan(view); }
  const PredictionErrors* prediction_errors() const override {
    return learner_.prediction_errors();
  }
  void OnArrive(ModelId m, const Request& request) override { policy_.OnArrive(m, request); }
  void OnPopFront(ModelId m, int count) override { policy_.OnPopFront(m, count); }
  void OnQueueChange(ModelId m) override { policy_.OnQueueChange(m); }
  void OnLaneChange(const Lane& lane) override { policy_.OnLaneChange(lane); }
  void OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                   TimePoint now) override {
    const std::size_t before = allocations_here;
    const auto start = BenchClock::now();
    learner_.OnBatchDone(lane, batch, report, now);
    const double took = std::max(0.0, NanosSince(start) - clock_cost_);
    reports_.Took(took, allocations_here - before);
  }

 private:
  Policy& policy_;
  Learner& learner_;  // the same
  Calls& decisions_;
  Calls& reports_;
  const double clock_cost_;
};

struct Cost {
  std::size_t calls = 0;
  double median = 0;  // ns
  double p99 = 0;
  double worst = 0;
  double allocations = 0;

  explicit Cost(const Calls& calls_of_one_kind)
      : calls(calls_of_one_kind.least().size()),
        allocations(static_cast<double>(calls_of_one_kind.allocated())) {
    std::vector<double> nanos = calls_of_one_kind.least();
    if (nanos.empty()) return;
    std::sort(nanos.begin(), nanos.end());
    median = nanos[nanos.size() / 2];
    p99 = nanos[nanos.size() * 99 / 100];
    worst = nanos.back();
  }
  Cost() = default;

  // The largest of each figure, and all allocations.
  void Include(const Cost& other) {
    calls += other.calls;
    median = std::max(median, other.median);
    p99 = std::max(p99, other.p99);
    worst = std::max(worst, other.worst);
    allocations += other.allocations;
  }
};

struct Costs {
  Cost decisions;
  Cost reports;
};

Expected<Costs> Measure(const std::string& workload, double clock_cost) {
  auto scenario = LoadScenario(fmt::format("{}/scenarios/strait/{}.toml", kSourceDir, workload));
  if (!scenario) return std::unexpected(scenario.error());
  constexpr int kDevices = 4;
  scenario->lanes = kDevices;
  scenario->rate_rps *= kDevices;
  scenario->duration_s = 10;
  scenario->warmup_s = 1;
  const auto profile = LoadProfile(scenario->profile);
  if (!profile) return std::unexpected(profile.error());
  Calls decisions;
  Calls reports;
  constexpr int kRepetitions = 7;
  for (int i = 0; i < kRepetitions; ++i) {
    decisions.Restart();
    reports.Restart();
    auto policy = MakePolicy("strait");
    Timed timed(**policy, decisions, reports, clock_cost);
    const auto result = Simulate(*scenario, *profile, timed);
    if (!result) return std::unexpected(result.error());
    if (!decisions.complete() || !reports.complete()) {
      return Internal("two equal runs were not the same");
    }
  }
  if (decisions.least().empty() || reports.least().empty()) {
    return Internal("a run with no decision or no batch that ended");
  }
  return Costs{Cost(decisions), Cost(reports)};
}

void PrintCost(const char* workload, const char* what, const Cost& cost) {
  fmt::print("{:<10} {:<9} {:>9} {:>8.0f} {:>8.0f} {:>8.0f} {:>12.0f}\n", workload, what,
             cost.calls, cost.median, cost.p99, cost.worst, cost.allocations);
}

void AddChecks(const char* what, const Cost& most, Report& report) {
  const auto text = [&](const char* figure) {
    return fmt::format("strait: ns a {}, {}", what, figure);
  };
  report.checks.push_back(AtMost(text("median of the slowest workload"), most.median, 1e4));
  report.checks.push_back(AtMost(text("P99 of the slowest workload"), most.p99, 2e4));
  report.checks.push_back(AtMost(text("the worst of all"), most.worst, 5e4));
  report.checks.push_back(
      AtMost(fmt::format("strait: allocations in {}s", what), most.allocations, 0));
}

int Run(const std::string& json) {
  const double clock_cost = ClockCost();
  Costs most;
  fmt::print(
      "strait, 12 models, 4 devices of 4 slots: ns a call\n{:<10} {:<9} {:>9} {:>8} {:>8} {:>8} "
      "{:>12}\n",
      "workload", "", "calls", "median", "P99", "worst", "allocations");
  for (const char* workload : {"high", "low", "balanced", "uniform"}) {
    const auto costs = Measure(workload, clock_cost);
    if (!costs) return CannotRun(kProgram, costs.error());
    PrintCost(workload, "decision", costs->decisions);
    PrintCost(workload, "report", costs->reports);
    most.decisions.Include(costs->decisions);
    most.reports.Include(costs->reports);
  }
  Report report;
  AddChecks("decision", most.decisions, report);
  AddChecks("report", most.reports, report);
  return Conclude(kProgram, report, json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"What Strait costs a decision and a report, with 12 models and 4 devices."};
  std::string json;
  app.add_option("--json", json, "Write the checks to this file");
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(json);
}
