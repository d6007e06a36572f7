// Batches that run one at a time, each to its answer: for those who measure, not for those who
// serve.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "core/engine.h"

namespace tactus {

// A made-up row that takes longer is taken for one that does not end: a graph may go on until its
// numbers converge, and those that are made up do not.
inline constexpr Duration kLongestRun = Seconds(10);

// From one thread at a time.
class LimitedRuns {
 public:
  LimitedRuns();

  // Blocks. kCancelled where the run took longer than `longest` and was ended; engines that end no
  // run (EngineTraits::terminates) have no limit.
  BatchResult Run(Engine& engine, ModelHandle handle, const BatchJob& job, Duration longest);

 private:
  using Clock = std::chrono::steady_clock;
  struct Current {
    Engine& engine;
    BatchId batch;
    Clock::time_point until;
    bool ended = false;
  };
  void Watch(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Current> current_;
  std::jthread watcher_;  // last: it uses the others
};

}  // namespace tactus
