// Once configured, a dispatcher with EdgeServing allocates nothing: this binary counts operator
// new.
#include <cctype>

#include <gtest/gtest.h>

#include "base/allocation_count.h"
#include "base/rng.h"
#include "dispatch/dispatcher.h"
#include "policies/registry.h"

namespace tactus {
namespace {

// Remembers the running batches in storage of its own, so that the test adds no allocation.
struct Lanes final : Outbox {
  explicit Lanes(std::size_t room) : running(room) {}
  void Launch(const Batch& batch) override { running.push_back(batch); }
  void Abort(LaneId, BatchId) override { ++aborts; }
  void Reject(ModelId, const Request&, DropReason) override { ++ended; }
  void Complete(const Batch& batch, const BatchReport&) override { ended += batch.requests.size(); }
  void Followed(ModelId, LaneClass, double) override { ++followed; }

  FixedVector<Batch> running;
  std::size_t aborts = 0;
  std::size_t followed = 0;
  std::size_t ended = 0;
};

std::shared_ptr<ServedModels> Models(int count) {
  auto served_models = std::make_shared<ServedModels>();
  std::vector<ProfileTable::ModelRows> rows;
  for (int m = 0; m < count; ++m) {
    served_models->models.push_back({.name = "m" + std::to_string(m),
                                     .slo = Millis(20 + 10 * (m % 3)),
                                     .max_batch = 8,
                                     .exits = {{}, {}, {}}});
    ProfileTable::ModelRows row{.exits = 3, .max_batch = 8};
    for (int e = 1; e <= 3; ++e) {
      for (int b = 1; b <= 8; ++b) row.latency.push_back(Micros(400 * e + 100 * e * b));
    }
    rows.push_back(row);
  }
  served_models->profile = ProfileTable(1, rows);
  return served_models;
}

// Arrivals past capacity, clients' deadlines, cancellations, failures and lost lanes.
void Serve(Dispatcher& dispatcher, Lanes& lanes, Rng& rng, int events) {
  TimePoint now = kStart;
  static std::uint64_t id = 0;
  for (int i = 0; i < events; ++i) {
    now += Micros(static_cast<int>(rng.Below(400)));
    const ModelId m{static_cast<ModelId::rep>(rng.Below(5))};
    const std::uint64_t what = rng.Below(10);
    if (what < 6) {
      dispatcher.Arrive(m, {.id = RequestId{++id},
                            .arrival = now,
                            .deadline = now + Millis(static_cast<int>(10 + rng.Below(40)))});
    } else if (what < 7) {
      dispatcher.Cancel(m, RequestId{id - rng.Below(30)});
    } else if (!lanes.running.empty()) {
      const std::size_t at = rng.Below(lanes.running.size());
      const Batch batch = lanes.running[at];
      lanes.running.SwapErase(at);
      const auto status = what < 9 ? BatchStatus::kOk : BatchStatus::kLost;
      dispatcher.Finish(batch.lane, batch.id,
                        {.started = batch.start, .ended = now, .status = status}, now);
      if (status == BatchStatus::kLost) dispatcher.SetLaneOpen(batch.lane, true);
    }
    dispatcher.Step(now);
  }
}

class NoAllocation : public ::testing::TestWithParam<const char*> {};

TEST_P(NoAllocation, AfterConfigure) {
  auto policy = MakePolicy(GetParam());
  ASSERT_TRUE(policy.has_value());
  Lanes lanes(8);
  Dispatcher dispatcher({.queue_capacity = 64, .follow = {.on = true, .stalls = true}},
                        {LaneSpec{}, LaneSpec{.slots = 2}}, **policy, lanes);
  dispatcher.Configure(Models(5));
  lanes.followed = 0;
  Rng rng = Rng::Stream(7, "allocation");
  const std::size_t before = allocations_here;
  Serve(dispatcher, lanes, rng, 20'000);
  EXPECT_EQ(allocations_here - before, 0u);
  EXPECT_GT(lanes.ended, 5'000u);
  EXPECT_GT(lanes.followed, 10u);
}

INSTANTIATE_TEST_SUITE_P(Policies, NoAllocation,
                         ::testing::Values("edgeserving", "edgeserving-plain", "early-exit-edf",
                                           "symphony", "symphony:published", "symphony-plain",
                                           "clockwork", "nexus", "planned", "shepherd", "timeout",
                                           "all-final", "strait", "static-spatial",
                                           "reactive-spatial", "horizon"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

// Where no lane runs two batches at once it plans with exits, which the two slots above leave to
// Strait's rule.
TEST(NoAllocationOfHorizon, WithOneBatchALane) {
  auto policy = MakePolicy("horizon");
  Lanes lanes(8);
  Dispatcher dispatcher({.queue_capacity = 64}, {LaneSpec{}, LaneSpec{}}, **policy, lanes);
  dispatcher.Configure(Models(5));
  Rng rng = Rng::Stream(7, "allocation");
  const std::size_t before = allocations_here;
  Serve(dispatcher, lanes, rng, 20'000);
  EXPECT_EQ(allocations_here - before, 0u);
  EXPECT_GT(lanes.ended, 5'000u);
}

// The counter itself works: taking storage is seen.
TEST(NoAllocationCounter, CountsConfigure) {
  auto policy = MakePolicy("edgeserving");
  Lanes lanes(1);
  const std::size_t before = allocations_here;
  Dispatcher dispatcher({}, {LaneSpec{}}, **policy, lanes);
  dispatcher.Configure(Models(1));
  EXPECT_GT(allocations_here - before, 5u);
}

}  // namespace
}  // namespace tactus
