// The candidate and the match as tables of states, and the indexed version against the plain one.
#include "policies/symphony/symphony.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "policies/symphony/symphony_plain_for_test.h"

namespace tactus {
namespace {

ModelId Id(std::size_t i) { return ModelId{static_cast<ModelId::rep>(i)}; }

// l(b) = b + 5 ms, as in the paper's Section 3.3.
BatchCosts FivePlus(int max_batch, NetworkDelays delays = {}) {
  std::vector<Duration> latency;
  for (int b = 1; b <= max_batch; ++b) latency.push_back(Millis(b + 5));
  return BatchCosts(latency, delays);
}

RequestQueue QueueOf(std::vector<int> deadlines_ms, std::vector<std::uint32_t> shapes = {}) {
  RequestQueue queue(64);
  for (std::size_t i = 0; i < deadlines_ms.size(); ++i) {
    queue.Push({.id = RequestId{i},
                .arrival = kStart + Millis(deadlines_ms[i] - 12),
                .deadline = kStart + Millis(deadlines_ms[i]),
                .shape = shapes.empty() ? 0 : shapes[i]});
  }
  return queue;
}

SymphonyCandidate Candidate(int drop, int batch, int exec_ms, int latest_ms) {
  return {drop, batch, kStart + Millis(exec_ms), kStart + Millis(latest_ms)};
}

// A table that holds a quicker larger batch must not make bisection miss it, nor promise too much.
TEST(BatchCosts, RiseWithTheBatch) {
  const std::vector<Duration> latency = {Millis(4), Millis(9), Millis(7), Millis(10)};
  const BatchCosts costs(latency);
  EXPECT_EQ(costs(3), Millis(9));
  EXPECT_EQ(costs.Largest(4, Millis(9)), 3);
  EXPECT_EQ(costs.Largest(4, Millis(8)), 1);
  EXPECT_EQ(costs.Largest(2, Millis(100)), 2);
  EXPECT_EQ(costs.Largest(4, Millis(3)), 0);
  EXPECT_EQ(costs.Largest(0, Millis(100)), 0);
}

TEST(BatchCosts, CountTheWayToTheLane) {
  const BatchCosts costs = FivePlus(8, {.control = Micros(100), .per_request = Micros(50)});
  EXPECT_EQ(costs(1), Micros(6150));
  EXPECT_EQ(costs(4), Micros(9300));
}

// Section 3.1: with four of 12 ms SLO the window is [d - l(5), d - l(4)].
TEST(SymphonyCandidate, IsSchedulableFromFrontrunToLatest) {
  const RequestQueue queue = QueueOf({12, 13, 14, 15});
  EXPECT_EQ(MakeCandidate(queue, FivePlus(16), {}, 1, kStart), Candidate(0, 4, 2, 3));
  const auto with = [&](Schedulable when, int k = 0) {
    return *MakeCandidate(queue, FivePlus(16), {.schedulable = when, .timeout = Millis(k)}, 1,
                          kStart);
  };
  EXPECT_EQ(MakeCandidate(queue, FivePlus(16), {.lead = Millis(1)}, 1, kStart),
            Candidate(0, 4, 1, 3));
  EXPECT_EQ(with(Schedulable::kEager), Candidate(0, 4, 0, 3));
  EXPECT_EQ(with(Schedulable::kLatest), Candidate(0, 4, 3, 3));
  EXPECT_EQ(with(Schedulable::kTimeout, 2), Candidate(0, 4, 2, 3));
  EXPECT_EQ(with(Schedulable::kTimeout, 9), Candidate(0, 4, 3, 3)) << "a timeout beyond latest";
}

TEST(SymphonyCandidate, ShrinksAsItsHeadRunsOutOfTime) {
  const RequestQueue queue = QueueOf({12, 13, 14, 15});
  const struct {
    int now;
    int batch;
  } cases[] = {{3, 4}, {4, 3}, {5, 2}, {6, 1}};
  for (const auto& c : cases) {
    const auto made = MakeCandidate(queue, FivePlus(16), {}, 1, kStart + Millis(c.now));
    ASSERT_TRUE(made) << c.now;
    EXPECT_EQ(made->batch, c.batch);
  }
  EXPECT_FALSE(MakeCandidate(queue, FivePlus(16), {}, 1, kStart + Millis(7))) << "lost";
  EXPECT_FALSE(MakeCandidate(RequestQueue(4), FivePlus(16), {}, 1, kStart));
}

// Waiting for what cannot join would only cost time.
TEST(SymphonyCandidate, GoesAtOnceWhenNothingCanJoin) {
  EXPECT_EQ(MakeCandidate(QueueOf({50, 50, 50}), FivePlus(3), {}, 1, kStart),
            Candidate(0, 3, 0, 42));
  EXPECT_EQ(MakeCandidate(QueueOf({50, 50, 50}, {1, 1, 2}), FivePlus(8), {}, 1, kStart),
            Candidate(0, 2, 0, 43));
}

// Window: heads that allow fewer than the target go, if that leaves enough; the batch then grows as
// far as the new head allows.
TEST(SymphonyCandidate, WindowGivesUpHeadsThatHoldTheBatchUnderTheTarget) {
  const CandidateOptions window{.gather = Gather::kWindow};
  const RequestQueue queue = QueueOf({7, 8, 11, 11, 12, 13, 14});
  EXPECT_EQ(MakeCandidate(queue, FivePlus(16), window, 4, kStart), Candidate(2, 5, 0, 1));
  EXPECT_EQ(MakeCandidate(queue, FivePlus(16), window, 2, kStart), Candidate(0, 2, -1, 0));
  EXPECT_EQ(MakeCandidate(queue, FivePlus(16), window, 3, kStart), Candidate(1, 3, -1, 0));
  // Too few behind the first head that allows seven: none is worth giving up.
  EXPECT_EQ(MakeCandidate(queue, FivePlus(16), window, 7, kStart), Candidate(0, 2, -1, 0));
}

// By hand, SLO 25 ms and l(b) = 5 + b: 8 lanes at a high rate allow 9/8 l(b) <= 25, so 17; 200
// requests a second need one lane and 5 + b + 5 b <= 25, so 3; 1000 need n = (5 + b) / b lanes.
TEST(SymphonyTarget, IsWhatStaggeredExecutionSustains) {
  const BatchCosts costs = FivePlus(64);
  EXPECT_EQ(TargetBatch(costs, Millis(25), 1e6, 8), 17);
  EXPECT_EQ(TargetBatch(costs, Millis(25), 200, 8), 3);
  EXPECT_EQ(TargetBatch(costs, Millis(25), 1000, 8), 10);
  EXPECT_EQ(TargetBatch(costs, Millis(25), 1e6, 1), 7);
  EXPECT_EQ(TargetBatch(costs, Millis(25), 0, 8), 1);
  EXPECT_EQ(TargetBatch(costs, Millis(5), 1e6, 8), 1);
}

TEST(ArrivalRate, CountsCompleteStepsOfTheWindow) {
  ArrivalRate rate(Seconds(1));
  EXPECT_EQ(rate.per_second(), 0);
  for (int ms = 50; ms < 2000; ms += 5) rate.Count(kStart + Millis(ms));
  EXPECT_DOUBLE_EQ(rate.per_second(), 200);
  // Nothing for 700 ms: seven of the ten steps are empty.
  EXPECT_TRUE(rate.Count(kStart + Millis(2700)));
  EXPECT_DOUBLE_EQ(rate.per_second(), 60);
  EXPECT_FALSE(rate.Count(kStart + Millis(2701)));
  rate.Count(kStart + Seconds(60));
  EXPECT_EQ(rate.per_second(), 0);
}

TEST(Match, GivesTheLeastFreeLaneToWhatExpiresFirst) {
  Match match;
  match.Resize(3, {0, 0, 0}, 1);
  match.SetFree(LaneId{2}, true);
  match.SetFree(LaneId{1}, true);
  match.Put(Id(0), 0, Candidate(0, 1, 2, 9));
  match.Put(Id(1), 0, Candidate(0, 1, 2, 8));
  match.Put(Id(2), 0, Candidate(0, 1, 5, 6));
  using Kind = Match::Outcome::Kind;
  EXPECT_EQ(match.Next(kStart), (Match::Outcome{.until = kStart + Millis(2)}));
  const auto first = match.Next(kStart + Millis(2));
  EXPECT_EQ(first.kind, Kind::kGrant);
  EXPECT_EQ(first.model, Id(1));
  EXPECT_EQ(first.lane, LaneId{1});
  EXPECT_EQ(match.Next(kStart + Millis(5)).model, Id(2)) << "now it expires first";
  EXPECT_EQ(match.Next(kStart + Millis(7)).kind, Kind::kStale) << "its latest has passed";
  match.Erase(Id(2), 0);
  match.SetFree(LaneId{1}, false);
  EXPECT_EQ(match.Next(kStart + Millis(7)).lane, LaneId{2});
  match.SetFree(LaneId{2}, false);
  EXPECT_EQ(match.Next(kStart + Millis(7)), Match::Outcome{}) << "no lane: only events matter";
}

// One random life of a system, told to both versions, which must answer every question alike.
class SymphonyLife {
 public:
  explicit SymphonyLife(std::uint64_t seed)
      : rng_(Rng::Stream(seed, "life")), plain_("plain", Options()), fast_("fast", Options()) {
    const int classes = 1 + static_cast<int>(rng_.Below(3));
    const std::size_t models = 1 + rng_.Below(8);
    for (std::size_t i = 0; i < models; ++i) AddModel(classes);
    profile_ = ProfileTable(classes, rows_);
    profiled_ = profile_;
    const std::uint64_t lanes = 1 + rng_.Below(6);
    for (std::uint64_t i = 0; i < lanes; ++i) AddLane(classes);
    load_ = 4 * rng_.Uniform();
    Prepare();
  }

  void Run(int events) {
    for (int i = 0; i < events && !::testing::Test::HasFailure(); ++i) {
      Happen();
      Settle();
    }
  }
  int dispatches() const { return dispatches_; }
  int drops() const { return drops_; }

 private:
  SymphonyOptions Options() {
    if (!drawn_) {
      drawn_ = true;
      options_.candidate.schedulable = static_cast<Schedulable>(rng_.Below(4));
      options_.candidate.gather = static_cast<Gather>(rng_.Below(2));
      options_.candidate.timeout = Micros(static_cast<int>(rng_.Below(20'000)));
      if (rng_.Below(3) == 0) options_.timeout_share = rng_.Uniform();
      if (rng_.Below(3) == 0) options_.delays = {Micros(100), Micros(30)};
      if (rng_.Below(3) == 0) options_.lead_share = 0.3 * rng_.Uniform();
      options_.adaptive_lead = rng_.Below(3) == 0;
      if (rng_.Below(2) == 0) options_.aim = 0.5 + 0.5 * rng_.Uniform();
      options_.rate_window = Millis(static_cast<int>(20 + rng_.Below(500)));
    }
    return options_;
  }
  void AddModel(int classes) {
    Model model{.name = "m"};
    model.slo = Millis(static_cast<int>(8 + 10 * rng_.Below(4)));
    model.max_batch = 1 + static_cast<int>(rng_.Below(16));
    model.exits.resize(1 + rng_.Below(2));
    ProfileTable::ModelRows row{.exits = model.exit_count(), .max_batch = model.max_batch};
    for (int i = 0; i < classes * model.exit_count(); ++i) {
      const auto each = static_cast<int>(100 + rng_.Below(800));
      const auto base = static_cast<int>(rng_.Below(5000));
      for (int b = 1; b <= model.max_batch; ++b) {
        row.latency.push_back(Micros(base + each * b - static_cast<int>(rng_.Below(300))));
        if (row.latency.back() <= Duration{}) row.latency.back() = Micros(1);
      }
    }
    models_.push_back(model);
    rows_.push_back(row);
    queues_.emplace_back(2048);
  }
  void AddLane(int classes) {
    Lane& lane = lanes_.emplace_back();
    lane.id = LaneId{static_cast<LaneId::rep>(lanes_.size() - 1)};
    lane.lane_class = LaneClass{static_cast<LaneClass::rep>(rng_.Below(classes))};
    lane.slots = 1 + static_cast<int>(rng_.Below(2));
    lane.batches = FixedVector<RunningBatch>(lane.slots);
    if (rng_.Below(5) != 0) return;
    lane.serves = ModelSet::None(models_.size());
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (rng_.Below(2) == 0) lane.serves.Insert(Id(i));
    }
  }
  View view() const { return {models_, queues_, lanes_, profile_}; }
  void Prepare() {
    plain_.Prepare(view());
    fast_.Prepare(view());
  }
  void LaneChanged(const Lane& lane) {
    plain_.OnLaneChange(lane);
    fast_.OnLaneChange(lane);
  }
  void Pop(ModelId m, int count) {
    plain_.OnPopFront(m, count);
    fast_.OnPopFront(m, count);
    queues_[m.value()].PopFront(count);
  }

  // Time passes; then requests come, or one is cancelled, or a batch ends, or a lane changes.
  void Happen() {
    now_ += Duration{static_cast<std::int64_t>(rng_.Exponential(2e-6))};
    if (rng_.Below(300) == 0) now_ += Millis(static_cast<int>(rng_.Below(400)));  // a stall
    // Often the instant is the one that was waited for.
    if (wake_ > now_ && wake_ < now_ + Millis(5) && rng_.Below(2) == 0) now_ = wake_;
    const std::uint64_t what = rng_.Below(100);
    if (what < 60) return Arrive();
    if (what < 63) return Cancel();
    if (what < 64) return Prepare();
    if (what < 65) {
      return profile_.Follow(profiled_, Id(rng_.Below(models_.size())),
                             LaneClass{static_cast<LaneClass::rep>(
                                 rng_.Below(static_cast<std::uint64_t>(profile_.lane_classes())))},
                             0.5 + 1.5 * rng_.Uniform());
    }
    Lane& lane = lanes_[rng_.Below(lanes_.size())];
    if (what < 67) lane.open = !lane.open;
    if (!lane.batches.empty()) lane.batches.SwapErase(rng_.Below(lane.batches.size()));
    LaneChanged(lane);
  }
  void Arrive() {
    const ModelId m = Id(rng_.Below(models_.size()));
    const auto count = static_cast<int>(load_ * rng_.Uniform() + 1);
    for (int i = 0; i < count; ++i) {
      Request request{.id = RequestId{next_id_++},
                      .arrival = now_,
                      .deadline = now_ + models_[m.value()].slo,
                      .shape = static_cast<std::uint32_t>(rng_.Below(20) / 19)};
      // A client's own deadline; one that was late already.
      if (rng_.Below(5) == 0) {
        request.deadline -= Duration{static_cast<std::int64_t>(rng_.Exponential(2e-7))};
      }
      ASSERT_TRUE(queues_[m.value()].Push(request));
      plain_.OnArrive(m, request);
      fast_.OnArrive(m, request);
    }
  }
  void Cancel() {
    const ModelId m = Id(rng_.Below(models_.size()));
    RequestQueue& queue = queues_[m.value()];
    if (queue.empty()) return;
    ASSERT_TRUE(queue.Remove(queue[rng_.Below(queue.size())].id));
    plain_.OnQueueChange(m);
    fast_.OnQueueChange(m);
  }
  void Settle() {
    for (;;) {
      const Decision expected = plain_.Decide(view(), now_);
      ASSERT_EQ(fast_.Decide(view(), now_), expected);
      if (const auto* wait = std::get_if<Wait>(&expected)) {
        ASSERT_GT(wait->until, now_);
        wake_ = wait->until;
        return;
      }
      if (const auto* drop = std::get_if<Drop>(&expected)) {
        ++drops_;
        Pop(drop->model, drop->count);
        continue;
      }
      CarryOut(std::get<Dispatch>(expected));
    }
  }
  void CarryOut(const Dispatch& d) {
    ++dispatches_;
    Lane& lane = lanes_[d.lane.value()];
    const RequestQueue& queue = queues_[d.model.value()];
    ASSERT_TRUE(lane.HasFreeSlot() && lane.serves.contains(d.model));
    ASSERT_EQ(queue.Batchable(d.batch), d.batch);
    EXPECT_LE(now_ + profile_.Latency(d.model, d.exit, d.batch, lane.lane_class),
              queue.front().deadline)
        << "launched though known to be late";
    lane.batches.push_back({.id = BatchId{next_id_++}, .model = d.model, .exit = d.exit});
    Pop(d.model, d.batch);
    LaneChanged(lane);
  }

  Rng rng_;
  bool drawn_ = false;
  SymphonyOptions options_;
  std::vector<Model> models_;
  std::vector<ProfileTable::ModelRows> rows_;
  ProfileTable profile_;
  ProfileTable profiled_;  // which it follows
  std::vector<RequestQueue> queues_;
  std::vector<Lane> lanes_;
  PlainSymphony plain_;
  Symphony fast_;
  TimePoint now_ = kStart;
  TimePoint wake_ = kNever;
  double load_ = 1;
  std::uint64_t next_id_ = 0;
  int dispatches_ = 0;
  int drops_ = 0;
};

TEST(Symphony, DecidesAsThePlainVersionDoes) {
  int dispatches = 0;
  int drops = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SymphonyLife life(seed);
    life.Run(600);
    if (HasFailure()) return;
    dispatches += life.dispatches();
    drops += life.drops();
  }
  EXPECT_GT(dispatches, 20'000);
  EXPECT_GT(drops, 20'000);
}

}  // namespace
}  // namespace tactus
