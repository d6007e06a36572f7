// How many requests the simulator handles in a CPU-second. Bars: 2 million; 3 million with Symphony
// on the 35-model zoo.
#include <benchmark/benchmark.h>

#include "base/source_path_for_test.h"
#include "policies/registry.h"
#include "sim/sim_testing.h"
#include "sim/simulation.h"

namespace tactus {
namespace {

ProfileFile Models(int count) {
  ProfileFile profile;
  for (int i = 0; i < count; ++i) {
    profile.models.push_back(AffineModelOf("m" + std::to_string(i), Millis(2), Micros(300), 10));
    for (ProfileCell& cell : profile.models.back().exits[0].cells) {
      cell.repetitions = 100;
      cell.max_ms = 1.2 * cell.p99_ms;
    }
  }
  return profile;
}

void Simulating(benchmark::State& state, const char* policy_text) {
  const int models = static_cast<int>(state.range(0));
  const ProfileFile profile = Models(models);
  // Some 80 % of what one lane sustains in full batches.
  const Scenario scenario = ScenarioOf(profile, 1600, 200);
  std::int64_t requests = 0;
  for (auto _ : state) {
    auto policy = MakePolicy(policy_text);
    if (!policy) return state.SkipWithError(policy.error().message.c_str());
    const auto result = Simulate(scenario, profile, **policy);
    requests += static_cast<std::int64_t>(result->records.size());
  }
  state.SetItemsProcessed(requests);
}

void Fifo(benchmark::State& state) { Simulating(state, "fifo"); }
void AllFinal(benchmark::State& state) { Simulating(state, "all-final"); }
void EdgeServing(benchmark::State& state) { Simulating(state, "edgeserving"); }

// The zoo of the paper's Table 3 on 64 lanes, at nine tenths of what they sustain.
void SymphonyZoo(benchmark::State& state, const char* policy_text) {
  auto scenario = LoadScenario(SourcePath("scenarios/symphony/zoo-1080ti-all.toml"));
  if (!scenario) return state.SkipWithError(scenario.error().message.c_str());
  const auto profile = LoadProfile(scenario->profile);
  if (!profile) return state.SkipWithError(profile.error().message.c_str());
  scenario->rate_rps = 7000;
  scenario->duration_s = 100;
  std::int64_t requests = 0;
  for (auto _ : state) {
    const auto policy = MakePolicy(policy_text);
    const auto result = Simulate(*scenario, *profile, **policy);
    requests += static_cast<std::int64_t>(result->records.size());
  }
  state.SetItemsProcessed(requests);
}
BENCHMARK_CAPTURE(SymphonyZoo, published, "symphony:published")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SymphonyZoo, ours, "symphony:gather=window,aim=0.8,lead=0.1")
    ->Unit(benchmark::kMillisecond);

BENCHMARK(Fifo)->Arg(1)->Arg(3)->Arg(30)->Unit(benchmark::kMillisecond);
BENCHMARK(AllFinal)->Arg(1)->Arg(3)->Arg(30)->Unit(benchmark::kMillisecond);
BENCHMARK(EdgeServing)->Arg(1)->Arg(3)->Arg(30)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tactus
