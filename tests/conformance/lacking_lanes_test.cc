// Lanes that lose models and get them again while they serve: a policy that went on with what it
// knew of the lanes would end the process (Dispatcher::Validate), or leave requests behind.
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "dispatch/dispatcher.h"
#include "policies/registry.h"

namespace tactus {
namespace {

constexpr int kModels = 3;
constexpr int kLanes = 3;

std::shared_ptr<const ServedModels> ThreeModels() {
  auto served_models = std::make_shared<ServedModels>();
  std::vector<ProfileTable::ModelRows> rows;
  for (const char* name : {"a", "b", "c"}) {
    served_models->models.push_back(
        {.name = name, .slo = Millis(80), .max_batch = 4, .exits = {{}, {}}});
    rows.push_back({.exits = 2, .max_batch = 4});
    for (int i = 0; i < 8; ++i) rows.back().latency.push_back(Millis(i < 4 ? 4 : 8));
  }
  served_models->profile = ProfileTable(1, rows);
  return served_models;
}

class CountedEnds final : public Outbox {
 public:
  void Launch(const Batch& batch) override {
    running[batch.id] = batch.lane;
    ++launched[batch.lane.value()];
  }
  void Abort(LaneId, BatchId) override {}
  void Reject(ModelId, const Request& request, DropReason) override { ++ends[request.id.value()]; }
  void Complete(const Batch& batch, const BatchReport&) override {
    for (const Request& request : batch.requests) ++ends[request.id.value()];
  }
  std::map<BatchId, LaneId> running;
  std::map<std::uint64_t, int> ends;
  std::map<std::uint32_t, int> launched;
};

TEST(EveryPolicy, EndsEachRequestOnceWhileLanesLoseModelsAndGetThemAgain) {
  for (const PolicyInfo& info : Policies()) {
    SCOPED_TRACE(info.name);
    const unsigned seed = 7;
    std::mt19937 random(seed);
    const auto policy = MakePolicy(info.name);
    ASSERT_TRUE(policy) << policy.error().message;
    CountedEnds ends;
    Dispatcher dispatcher({}, std::vector<LaneSpec>(kLanes), **policy, ends);
    dispatcher.Configure(ThreeModels());
    std::uint64_t last = 0;
    for (int ms = 0; ms < 4000; ++ms) {
      const TimePoint now = kStart + Millis(ms);
      if (ms < 3000 && random() % 2 == 0) {
        dispatcher.Arrive(ModelId{static_cast<ModelId::rep>(random() % kModels)},
                          {.id = RequestId{++last}, .arrival = now, .deadline = now + Millis(80)});
      }
      if (random() % 8 == 0) {
        dispatcher.SetLaneHolds(LaneId{static_cast<LaneId::rep>(random() % kLanes)},
                                ModelId{static_cast<ModelId::rep>(random() % kModels)},
                                random() % 2 == 0);
      }
      if (!ends.running.empty() && (ms >= 3000 || random() % 4 == 0)) {
        const auto [batch, lane] = *ends.running.begin();
        ends.running.erase(ends.running.begin());
        dispatcher.Finish(lane, batch, {.started = now - Millis(1), .ended = now}, now);
      }
      dispatcher.Step(now);
    }
    EXPECT_EQ(ends.ends.size(), last) << "seed " << seed;
    for (const auto& [request, times] : ends.ends) EXPECT_EQ(times, 1) << request;
    EXPECT_TRUE(ends.launched.empty() || ends.launched.size() == kLanes);
  }
}

}  // namespace
}  // namespace tactus
