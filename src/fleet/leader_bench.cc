// What a leader's processor does for a thousand nodes that beat once a second.
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "fleet/fleet_world_test.h"
#include "fleet/leader.h"

namespace tactus {
namespace {

constexpr int kNodes = 1000;
constexpr Duration kTogether = Millis(5);  // reports that a controller looks at together

FromNode Message(int node, std::uint64_t sequence, std::uint64_t term) {
  FromNode message{"edge" + std::to_string(node), {std::uint64_t{1} + node, 1}, sequence, {}};
  NodeReport report;
  report.term = term;
  if (sequence == 1) message.what = NodeHello{report, {}};
  if (sequence > 1) message.what = NodeBeat{report, {{"find", 10}, {"name", 20}}};
  return message;
}

// Each iteration is a second of beats.
void Beats(benchmark::State& state) {
  LeaderOptions options;
  options.replan_every = Seconds(1'000'000);
  FleetLeader leader(
      FleetWorld::MadeFleet(1, kNodes),
      [](const FleetInput&) -> Expected<FleetPlan> { return FleetPlan{}; }, options, {}, kStart);
  TimePoint now = kStart;
  std::uint64_t sequence = 0;
  for (auto _ : state) {
    ++sequence;
    for (int node = 0; node < kNodes; ++node) {
      leader.Receive(Message(node, sequence, leader.leads() ? leader.term() : 0), now);
      if (node % 5 != 4) continue;
      now += kTogether;
      leader.Step(now);
      benchmark::DoNotOptimize(leader.Take());
      leader.WasKept();
    }
  }
}
BENCHMARK(Beats)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tactus
