// Once made, shards, mailbox and rank allocate nothing: this binary counts operator new.
#include <gtest/gtest.h>

#include "base/allocation_count.h"
#include "base/rng.h"
#include "shards/stepped_scheduler.h"

namespace tactus {
namespace {

struct Ends final : ShardOutbox {
  void Launch(const GrantedBatch& batch) override { launched += batch.requests.size(); }
  void Reject(ModelId, const Request&, DropReason, TimePoint) override { ++dropped; }

  std::size_t launched = 0;
  std::size_t dropped = 0;
};

// Arrivals past capacity and cancellations, with both ways to gather.
TEST(SchedulerAllocation, NoneWhileRequestsAreScheduled) {
  for (const Gather gather : {Gather::kPrefix, Gather::kWindow}) {
    constexpr std::size_t kModels = 70;
    std::vector<Model> models(kModels,
                              Model{.name = "m", .slo = Millis(20), .max_batch = 4, .exits = {{}}});
    const ProfileTable::ModelRows row{
        .exits = 1, .max_batch = 4, .latency = {Millis(2), Millis(3), Millis(4), Millis(5)}};
    Ends ends;
    SteppedScheduler scheduler(
        2, models, ProfileTable(1, std::vector(kModels, row)), 12,
        {.policy = {.candidate = {.gather = gather}, .rate_window = Millis(50)},
         .queue_capacity = 32},
        LaneRelease::kAtProfiledEnd, ends);
    Rng rng = Rng::Stream(7, "scheduler allocation");
    TimePoint now = kStart;
    const std::size_t before = allocations_here;
    for (std::uint64_t id = 0; id < 50'000; ++id) {
      now += Micros(static_cast<int>(rng.Below(200)));
      const ModelId m{static_cast<ModelId::rep>(rng.Below(kModels))};
      const Duration hurry = Millis(static_cast<int>(rng.Below(10)));
      scheduler.Arrive(m,
                       {.id = RequestId{id}, .arrival = now, .deadline = now + Millis(20) - hurry});
      if (rng.Below(20) == 0) scheduler.Cancel(m, RequestId{id - rng.Below(id + 1)}, now);
      scheduler.Step(now);
    }
    EXPECT_EQ(allocations_here - before, 0u);
    EXPECT_GT(ends.launched, 10'000u);
    EXPECT_GT(ends.dropped, 1'000u);
  }
}

}  // namespace
}  // namespace tactus
