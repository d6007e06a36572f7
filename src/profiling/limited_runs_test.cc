// Without these, a graph that does not end for the numbers that are made up would hold up a start.
#include "profiling/limited_runs.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace tactus {
namespace {

// Runs until it is told to end, or no time at all.
class Runner final : public Engine {
 public:
  EngineTraits traits() const override { return {.name = "runner", .terminates = true}; }
  Expected<ModelHandle> Load(ModelSpec&, const LaneSpec&) override { return ModelHandle{1}; }
  void Unload(ModelHandle) override {}
  void Submit(ModelHandle, const BatchJob& job, Completions& done) noexcept override {
    while (endless && told_to_end != job.id.value()) std::this_thread::yield();
    BatchResult result;
    if (endless) result.status = Fail(ErrorCode::kCancelled, "it was stopped");
    done.Done(job.id, std::move(result));
  }
  void Terminate(BatchId batch) noexcept override { told_to_end = batch.value(); }

  bool endless = false;
  std::atomic<std::uint64_t> told_to_end{0};
};

TEST(LimitedRuns, ARunThatTakesTooLongIsEndedAndTheNextRuns) {
  Runner engine;
  LimitedRuns runs;
  const auto run = [&](std::uint64_t id, Duration longest) {
    return runs.Run(engine, ModelHandle{1}, {BatchId{id}, ModelId{}, ExitId{}, {}}, longest).status;
  };
  EXPECT_TRUE(run(1, Seconds(3600)));
  engine.endless = true;
  const Status ended = run(2, Millis(1));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(ended.error().message, "a run of made-up rows took more than 0.001 s and was ended");
  engine.endless = false;
  EXPECT_TRUE(run(3, Millis(1)));
}

}  // namespace
}  // namespace tactus
