// EdgeServing's behaviour as its paper describes it, as transcripts in serving time: the
// dispatcher, the policy and one lane whose batches take exactly the profiled time. The latencies
// are those of the stand-in table (docs/research/papers/edgeserving.md), l(b) = l(5) (1 + 0.06 (b -
// 5)); every instant below can be worked out by hand from it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "dispatch/dispatcher.h"
#include "policies/registry.h"

namespace tactus {
namespace {

constexpr int kResNet50 = 0;
constexpr int kResNet101 = 1;
constexpr int kResNet152 = 2;

std::shared_ptr<ServedModels> ThreeResNets() {
  const double at_batch_5[3][4] = {
      {1.65, 2.79, 4.20, 5.06}, {1.66, 2.79, 8.32, 9.24}, {1.67, 3.69, 12.61, 13.53}};
  auto served_models = std::make_shared<ServedModels>();
  std::vector<ProfileTable::ModelRows> rows;
  for (int m = 0; m < 3; ++m) {
    Model model{.name = "ResNet", .slo = Millis(50), .max_batch = 10};
    model.exits.resize(4);
    served_models->models.push_back(model);
    ProfileTable::ModelRows row{.exits = 4, .max_batch = 10};
    for (const double l5 : at_batch_5[m]) {
      for (int b = 1; b <= 10; ++b) row.latency.push_back(FromMillis(l5 * (1 + 0.06 * (b - 5))));
    }
    rows.push_back(row);
  }
  served_models->profile = ProfileTable(1, rows);
  return served_models;
}

// Plays arrivals against a policy on one lane and writes down what is run: "10.283 R50 x3 exit 4",
// followed by "late N" when N of the batch end after their deadline.
class Transcript final : public Outbox {
 public:
  explicit Transcript(const std::string& policy)
      : policy_(*MakePolicy(policy)),
        dispatcher_({.queue_capacity = 4096, .expiry = Expiry::kNever}, {LaneSpec{}}, *policy_,
                    *this) {
    dispatcher_.Configure(ThreeResNets());
  }

  void Arrive(int model, double at_ms, int count = 1) {
    for (int i = 0; i < count; ++i) arrivals_.push_back({kStart + FromMillis(at_ms), model});
  }

  std::string Run() {
    std::stable_sort(arrivals_.begin(), arrivals_.end(),
                     [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
    std::size_t next = 0;
    while (next < arrivals_.size() || busy_) {
      const TimePoint arrival = next < arrivals_.size() ? arrivals_[next].at : kNever;
      now_ = busy_ ? std::min(arrival, end_) : arrival;
      if (busy_ && end_ == now_) {
        busy_ = false;
        dispatcher_.Finish(LaneId{0}, batch_, {.started = started_, .ended = now_}, now_);
      }
      for (; next < arrivals_.size() && arrivals_[next].at == now_; ++next) {
        const ModelId m{static_cast<ModelId::rep>(arrivals_[next].model)};
        dispatcher_.Arrive(m,
                           {.id = RequestId{next}, .arrival = now_, .deadline = now_ + Millis(50)});
      }
      dispatcher_.Step(now_);
    }
    EXPECT_EQ(answered_ + refused_, static_cast<int>(arrivals_.size()));
    return said_;
  }
  int late() const { return late_; }
  int refused() const { return refused_; }

  void Launch(const Batch& batch) override {
    static constexpr const char* kNames[] = {"R50", "R101", "R152"};
    ASSERT_FALSE(busy_) << "time division: one batch at a time";
    busy_ = true;
    batch_ = batch.id;
    started_ = batch.start;
    end_ = batch.expected_end;
    char line[80];
    std::snprintf(line, sizeof(line), "%.3f %s x%zu exit %u", ToMillis(batch.start - kStart),
                  kNames[batch.model.value()], batch.requests.size(), batch.exit.value() + 1);
    said_ += line;
    const auto late = std::count_if(batch.requests.begin(), batch.requests.end(),
                                    [this](const Request& r) { return r.deadline < end_; });
    if (late > 0) said_ += " late " + std::to_string(late);
    said_ += "\n";
    late_ += static_cast<int>(late);
  }
  void Abort(LaneId, BatchId) override { FAIL() << "nothing is stopped here"; }
  void Reject(ModelId, const Request&, DropReason) override { ++refused_; }
  void Complete(const Batch& batch, const BatchReport&) override {
    answered_ += static_cast<int>(batch.requests.size());
  }

 private:
  struct Arrival {
    TimePoint at;
    int model;
  };
  std::unique_ptr<Policy> policy_;
  Dispatcher dispatcher_;
  std::vector<Arrival> arrivals_;
  TimePoint now_ = kStart;
  bool busy_ = false;
  BatchId batch_;
  TimePoint started_;
  TimePoint end_;
  std::string said_;
  int late_ = 0;
  int answered_ = 0;
  int refused_ = 0;
};

class EdgeServingConformance : public ::testing::TestWithParam<const char*> {};

// Section III: while a batch runs nothing is scheduled and all is accepted; its end starts the next
// round. At 10.283 three of ResNet50 go before one of ResNet101: serving them leaves urgency 0.46,
// serving it would leave 1.50 (Eq. 7).
TEST_P(EdgeServingConformance, RunsInRounds) {
  Transcript play(GetParam());
  play.Arrive(kResNet152, 0);
  play.Arrive(kResNet50, 1);
  play.Arrive(kResNet50, 2);
  play.Arrive(kResNet50, 3);
  play.Arrive(kResNet101, 4);
  EXPECT_EQ(play.Run(),
            "0.000 R152 x1 exit 4\n"
            "10.283 R50 x3 exit 4\n"
            "14.736 R101 x1 exit 4\n");
}

// Section VI-B, Figure 5: the deeper the queue, the shallower the exit. 40 requests at once: the
// first two batches may run to the end (17.589 ms each); the third would end at 52.8 there and
// at 51.6 at exit 3, so it leaves at exit 2. Nobody is late.
TEST_P(EdgeServingConformance, RetreatsToShallowerExitsUnderPressure) {
  Transcript play(GetParam());
  play.Arrive(kResNet152, 0, 40);
  EXPECT_EQ(play.Run(),
            "0.000 R152 x10 exit 4\n"
            "17.589 R152 x10 exit 4\n"
            "35.178 R152 x10 exit 2\n"
            "39.975 R152 x10 exit 2\n");
}

// It never drops: what cannot be in time any more runs at the shallowest exit, and late.
TEST_P(EdgeServingConformance, ServesWhatIsLostAtTheShallowestExit) {
  Transcript play(GetParam());
  play.Arrive(kResNet152, 0, 70);
  EXPECT_EQ(play.Run(),
            "0.000 R152 x10 exit 4\n"
            "17.589 R152 x10 exit 4\n"
            "35.178 R152 x10 exit 2\n"
            "39.975 R152 x10 exit 2\n"
            "44.772 R152 x10 exit 2\n"
            "49.569 R152 x10 exit 1 late 10\n"
            "51.740 R152 x10 exit 1 late 10\n");
  EXPECT_EQ(play.refused(), 0);
}

// Section V-C, batch and exit: the batch is all that waits, up to 10, and never waits to fill.
TEST_P(EdgeServingConformance, BatchesWhatWaits) {
  Transcript play(GetParam());
  play.Arrive(kResNet50, 0);
  play.Arrive(kResNet50, 1, 12);
  EXPECT_EQ(play.Run(),
            "0.000 R50 x1 exit 4\n"
            "3.846 R50 x10 exit 4\n"
            "10.424 R50 x2 exit 4\n");
}

INSTANTIATE_TEST_SUITE_P(Versions, EdgeServingConformance,
                         ::testing::Values("edgeserving", "edgeserving-plain"),
                         [](const auto& info) {
                           return std::string(info.param) == "edgeserving" ? "Fast" : "Plain";
                         });

// Section VI-B: All-Final breaks where EdgeServing bends. The same 40 requests as above.
TEST(EdgeServingRivals, AllFinalIsLateWhereEdgeServingIsNot) {
  for (const char* policy : {"all-final", "all-final-deadline-aware", "fifo"}) {
    Transcript play(policy);
    play.Arrive(kResNet152, 0, 40);
    EXPECT_EQ(play.Run(),
              "0.000 R152 x10 exit 4\n"
              "17.589 R152 x10 exit 4\n"
              "35.178 R152 x10 exit 4 late 10\n"
              "52.767 R152 x10 exit 4 late 10\n")
        << policy;
  }
}

TEST(EdgeServingRivals, AllEarlyIsQuickAndShallow) {
  Transcript play("all-early");
  play.Arrive(kResNet152, 0, 20);
  EXPECT_EQ(play.Run(), "0.000 R152 x10 exit 1\n2.171 R152 x10 exit 1\n");
}

// Section VI-H: longest queue first starves the short queue, and earliest deadline first does not.
// Nor is the score free of it, as it sums over requests: ten that leave with each batch outweigh
// one that is nearly due (docs/research/papers/edgeserving.md, "What the rule leaves on the
// table").
TEST(EdgeServingRivals, OneRequestBesideALongQueue) {
  const struct {
    const char* policy;
    int late;
  } cases[] = {{"early-exit-lqf", 1}, {"edgeserving", 1}, {"early-exit-edf", 0}};
  for (const auto& c : cases) {
    Transcript play(c.policy);
    play.Arrive(kResNet152, 0, 10);
    play.Arrive(kResNet101, 1);
    for (int at = 2; at < 80; at += 4) play.Arrive(kResNet152, at, 3);
    const std::string said = play.Run();
    EXPECT_EQ(play.late(), c.late) << c.policy << "\n" << said;
  }
}

// Section VI-H, Ours+bs=1: without batching the same burst takes ten times as many rounds.
TEST(EdgeServingRivals, WithoutBatchingRunsOneByOne) {
  Transcript play("edgeserving:batch=1");
  play.Arrive(kResNet152, 0, 3);
  EXPECT_EQ(play.Run(),
            "0.000 R152 x1 exit 4\n"
            "10.283 R152 x1 exit 4\n"
            "20.566 R152 x1 exit 4\n");
}

}  // namespace
}  // namespace tactus
