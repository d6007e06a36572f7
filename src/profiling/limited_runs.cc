#include "profiling/limited_runs.h"

#include <utility>

#include <fmt/format.h>

#include "profiling/one_answer.h"

namespace tactus {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(250);

}  // namespace

LimitedRuns::LimitedRuns() : watcher_([this](const std::stop_token& stop) { Watch(stop); }) {}

// It is not woken for each run: most are short.
void LimitedRuns::Watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, kLookAgain, [] { return false; });
    if (!current_ || Clock::now() < current_->until) continue;
    current_->ended = true;
    current_->engine.Terminate(current_->batch);
  }
}

BatchResult LimitedRuns::Run(Engine& engine, ModelHandle handle, const BatchJob& job,
                             Duration longest) {
  {
    const std::lock_guard lock(mutex_);
    current_.emplace(engine, job.id, Clock::now() + longest);
  }
  OneAnswer answer;
  engine.Submit(handle, job, answer);
  BatchResult result = answer.Wait();
  const std::lock_guard lock(mutex_);
  const bool ended = current_->ended;
  current_.reset();
  if (ended && !result.status) {
    result.status = Fail(ErrorCode::kCancelled,
                         fmt::format("a run of made-up rows took more than {:g} s and was ended",
                                     ToSeconds(longest)));
  }
  return result;
}

}  // namespace tactus
