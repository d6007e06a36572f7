// How batches gain from threads, for whoever chooses how many a lane has.
#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "platform/cpu_affinity.h"
#include "profiling/model_trial.h"
#include "profiling/profiler.h"

namespace tactus {
namespace {

constexpr int kThreadsRounds = 7;
constexpr int kThreadsLeastRounds = 2;
constexpr Duration kThreadsBudget =
    Millis(500);  // of an exit and a batch with one number of threads

Duration Median(std::vector<Duration> runs) {
  const auto middle = runs.begin() + std::ssize(runs) / 2;
  std::ranges::nth_element(runs, middle);
  return *middle;
}

}  // namespace

std::vector<int> ThreadsToTry(int measured, int processors) {
  std::set<int> threads = {measured, processors};
  for (int t = 1; t <= processors; t *= 2) threads.insert(t);
  if (threads.size() == 1) return {};
  return {threads.begin(), threads.end()};
}

// One number of threads after the other in each round, so that what disturbs the machine disturbs
// all of them.
Status Profiler::RunTurns(const std::vector<OnThreads>& loaded, std::size_t subject,
                          ProfiledModel& model) {
  for (std::size_t e = 0; e < model.exits.size(); ++e) {
    std::vector<std::vector<Duration>> one(loaded.size());
    std::vector<std::vector<Duration>> largest(loaded.size());
    Duration spent{};
    for (int round = 0; round < kThreadsRounds; ++round) {
      const Duration budget = 2 * kThreadsBudget * static_cast<std::int64_t>(loaded.size());
      if (round >= kThreadsLeastRounds && spent >= budget) break;
      for (std::size_t t = 0; t < loaded.size(); ++t) {
        PinThisThread(loaded[t].cores);
        for (auto [batch, runs] :
             {std::pair(1, &one[t]), std::pair(model.max_batch, &largest[t])}) {
          const Cell cell{.subject = subject, .exit = static_cast<int>(e), .batch = batch};
          for (int run = 0; run < options_.in_a_row; ++run) {
            const auto done = RunOn(loaded[t].handle, cell);
            if (!done) return std::unexpected(done.error());
            spent += done->took;
            runs->push_back(done->took);
          }
        }
      }
    }
    for (std::size_t t = 0; t < loaded.size(); ++t) {
      const Duration single = Median(one[t]);
      model.exits[e].by_threads.push_back(
          {loaded[t].threads, ToMillis(single), ToMillis(std::max(single, Median(largest[t])))});
    }
  }
  return {};
}

std::vector<std::string> Profiler::AddThreads(const std::vector<int>& threads,
                                              std::vector<ProfiledModel>& models) {
  std::vector<std::string> warnings;
  const std::vector<int> all = AllowedCores();
  for (std::size_t s = 0; s < subjects_.size() && !threads.empty(); ++s) {
    Subject& subject = *subjects_[s];
    if (&subject.engine != &engine_) continue;
    std::vector<OnThreads> loaded;
    Status ran;
    for (const int each : threads) {
      const LaneSpec lane = Lane(each);
      const std::vector<int> cores = CoresOf(lane.placement);
      auto handle = LoadOnLane(subject.spec, engine_, lane);
      if (!handle) {
        ran = std::unexpected(std::move(handle.error()));
        break;
      }
      loaded.push_back({each, cores.empty() ? all : cores, *handle});
    }
    if (ran) std::thread([&] { ran = RunTurns(loaded, s, models[s]); }).join();
    for (const OnThreads& each : loaded) engine_.Unload(each.handle);
    if (ran) continue;
    for (ProfiledExit& exit : models[s].exits) exit.by_threads.clear();
    warnings.push_back(fmt::format("model '{}': how it gains from threads is not known: {}",
                                   subject.spec.name, ran.error().message));
  }
  return warnings;
}

}  // namespace tactus
