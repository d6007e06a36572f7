// Each baseline as one table: what it answers in the same three states.
#include "policies/baselines/ranked.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

// Two models of 4 exits (exit e takes (e + 1) * 5 ms whatever the batch) on one lane. Model 0 has
// one old request that is due soon; model 1 has three that have time.
class Baselines : public ::testing::Test {
 protected:
  Baselines() : lanes_(1) {
    models_.resize(2, Model{.name = "m", .slo = Millis(50), .max_batch = 2});
    for (int i = 0; i < 2; ++i) {
      ProfileTable::ModelRows row{.exits = 4, .max_batch = 2};
      for (int e = 1; e <= 4; ++e) row.latency.insert(row.latency.end(), 2, Millis(5 * e));
      rows_.push_back(row);
      queues_.emplace_back(8);
    }
    profile_ = ProfileTable(1, rows_);
    lanes_[0].id = LaneId{0};
    lanes_[0].batches = FixedVector<RunningBatch>(1);
  }
  void Push(int model, Duration arrival, Duration deadline) {
    queues_[model].Push(
        {.id = RequestId{next_id_++}, .arrival = kStart + arrival, .deadline = kStart + deadline});
  }
  Decision Ask(QueueRank rank, ExitRule exit_rule, int batch = 10) {
    RankedPolicy policy("p", rank, exit_rule, batch);
    return policy.Decide({models_, queues_, lanes_, profile_}, kStart + Millis(30));
  }
  static Decision Run(unsigned model, unsigned exit, int batch) {
    return Dispatch{
        .model = ModelId{model}, .exit = ExitId{exit}, .batch = batch, .lane = LaneId{0}};
  }

  std::vector<Model> models_;
  std::vector<ProfileTable::ModelRows> rows_;
  ProfileTable profile_;
  std::vector<RequestQueue> queues_;
  std::vector<Lane> lanes_;
  std::uint64_t next_id_ = 0;
};

TEST_F(Baselines, ServeTheQueueThatRanksFirst) {
  Push(0, Millis(20), Millis(42));
  Push(1, Millis(10), Millis(60));
  Push(1, Millis(25), Millis(75));
  Push(1, Millis(26), Millis(76));
  EXPECT_EQ(Ask(LongestQueueFirst, ExitRule::kFinal), Run(1, 3, 2));
  EXPECT_EQ(Ask(LongestQueueFirst, ExitRule::kShallowest), Run(1, 0, 2));
  EXPECT_EQ(Ask(LongestQueueFirst, ExitRule::kDeepestFeasible), Run(1, 3, 2));
  EXPECT_EQ(Ask(EarliestDeadlineFirst, ExitRule::kFinal), Run(0, 3, 1));
  EXPECT_EQ(Ask(EarliestDeadlineFirst, ExitRule::kDeepestFeasible), Run(0, 1, 1));
  EXPECT_EQ(Ask(EarliestArrivalFirst, ExitRule::kFinal), Run(1, 3, 2));
  EXPECT_EQ(Ask(EarliestArrivalFirst, ExitRule::kFinal, 1), Run(1, 3, 1));
}

TEST_F(Baselines, GiveTiesToTheLowerModel) {
  for (int model : {1, 0}) Push(model, Millis(20), Millis(70));
  for (QueueRank rank : {LongestQueueFirst, EarliestDeadlineFirst, EarliestArrivalFirst}) {
    EXPECT_EQ(Ask(rank, ExitRule::kFinal), Run(0, 3, 1));
  }
}

TEST_F(Baselines, WaitForRequestsAndForLanes) {
  EXPECT_EQ(Ask(LongestQueueFirst, ExitRule::kFinal), Decision{Wait{}});
  Push(0, Millis(20), Millis(70));
  lanes_[0].serves = ModelSet::None(2);
  EXPECT_EQ(Ask(LongestQueueFirst, ExitRule::kFinal), Decision{Wait{}});
  lanes_[0].serves.Insert(ModelId{0});
  EXPECT_EQ(Ask(LongestQueueFirst, ExitRule::kFinal), Run(0, 3, 1));
  lanes_[0].batches.push_back({});
  EXPECT_EQ(Ask(LongestQueueFirst, ExitRule::kFinal), Decision{Wait{}});
}

}  // namespace
}  // namespace tactus
