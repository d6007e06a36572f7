// What a leader's processor does for a thousand cameras and their server, each of which reports
// once a second: in a settled fleet, where a plan serves everywhere, and in one whose nodes load.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <benchmark/benchmark.h>

#include "fleet/leader.h"
#include "fleet/made_fleet_test.h"
#include "fleet/node_state.h"

namespace tactus {
namespace {

constexpr int kCameras = 1000;
constexpr int kTogether = 5;  // reports that a controller looks at together
constexpr Duration kLong = Seconds(1'000'000);

// Each camera's frames go on to the server.
Expected<FleetPlan> PlanToTheServer(const FleetInput& input) {
  FleetPlan plan;
  for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
    plan.instances.push_back({FleetPipelineId{p}, FleetStageId{0}, input.pipelines[p].source});
    plan.instances.push_back({FleetPipelineId{p}, FleetStageId{1}, DeviceId{0}});
  }
  plan.routes = RoutesOf(plan.instances);
  return plan;
}

LeaderOptions WithoutNewPlans() {
  LeaderOptions options;
  options.replan_every = kLong;
  options.rollout.prepare_within = kLong;
  return options;
}

class Street {
 public:
  // Until the roll-out of the first plan is in this phase.
  explicit Street(Rollout::Phase phase) {
    const FleetInput fleet = FleetOfServersAndEdges(1, kCameras);
    for (const FleetDevice& device : fleet.devices) {
      NodeKept kept;
      kept.who = {1 + agents_.size(), 1};
      NodeState agent({.name = device.name}, kept);
      agent.WorkerUp({}, "", "", device.name + ":1");
      agent.Measure({{"find", 10}, {"name", 20}});
      agents_.emplace(device.name, std::move(agent));
    }
    constexpr int kMostTurns = 100;  // each a tenth of a second
    for (int i = 0; i < kMostTurns && !Is(phase); ++i) Turn();
  }

  bool Is(Rollout::Phase phase) const {
    return leader_.rollout() != nullptr && leader_.rollout()->phase() == phase;
  }

  // All say once more what they said last, and nobody hears the leader. How many orders it has.
  std::size_t RepeatReports() {
    std::size_t orders = 0;
    int together = 0;
    for (auto& [name, report] : reports_) {
      ++report.sequence;
      leader_.Receive(report, now_);
      if (++together % kTogether != 0) continue;
      now_ += Seconds(1) * kTogether / kCameras;
      leader_.Step(now_);
      orders += leader_.Take().send.size();
      leader_.WasKept();
      benchmark::DoNotOptimize(leader_.Next());
    }
    return orders;
  }

 private:
  // All agents do what they were told, at once, and report it.
  void Turn() {
    for (auto& [name, agent] : agents_) {
      NodeActions actions = agent.Take(now_);
      agent.WasKept();
      for (const std::string& model : actions.load) agent.Loaded(model);
      for (const std::string& model : actions.unload) agent.Unloaded(model);
      for (FromNode& message : actions.send) {
        leader_.Receive(message, now_);
        if (std::holds_alternative<NodeBeat>(message.what)) reports_[name] = std::move(message);
      }
    }
    leader_.Step(now_);
    const LeaderActions actions = leader_.Take();
    leader_.WasKept();
    for (const ToNode& order : actions.send) agents_.at(order.node).Receive(order, now_);
    now_ += Millis(100);
  }

  TimePoint now_ = kStart;
  FleetLeader leader_{
      FleetOfServersAndEdges(1, kCameras), PlanToTheServer, WithoutNewPlans(), {}, kStart};
  std::map<std::string, NodeState> agents_;
  std::map<std::string, FromNode> reports_;  // the last of each node
};

// Each iteration is a second of reports.
void Reports(benchmark::State& state, Rollout::Phase phase) {
  Street street(phase);
  std::size_t orders = 0;
  for (auto _ : state) orders += street.RepeatReports();
  // What is measured must have been that state from the first report to the last.
  if (!street.Is(phase)) state.SkipWithError("the fleet did not stay in this phase");
  state.counters["orders"] =
      benchmark::Counter(static_cast<double>(orders), benchmark::Counter::kAvgIterations);
}
BENCHMARK_CAPTURE(Reports, settled, Rollout::Phase::kDone)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Reports, loading, Rollout::Phase::kPreparing)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tactus
