// The paper's rule as tables of states, and the fast version against the plain one.
#include "policies/edgeserving/edgeserving.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/feasible.h"
#include "policies/edgeserving/edgeserving_plain.h"

namespace tactus {
namespace {

ModelId M(std::size_t i) { return ModelId{static_cast<ModelId::rep>(i)}; }

// The world of a policy without a dispatcher: queues that are pushed to and popped by hand, and
// lanes that are taken and given back by hand. Every change is told to the policies that listen.
struct World {
  std::vector<Model> models;
  std::vector<ProfileTable::ModelRows> rows;
  ProfileTable profile;
  std::vector<RequestQueue> queues;
  std::vector<Lane> lanes;
  std::vector<Policy*> listeners;
  std::uint64_t next_id = 0;

  // Latency of exit e at batch b: (e + 1) * step * (1 + 0.1 (b - 1)).
  void AddModel(Duration slo, int exits, int max_batch, Duration step, std::size_t capacity = 64) {
    Model model;
    model.name = "m" + std::to_string(models.size());
    model.slo = slo;
    model.max_batch = max_batch;
    model.exits.resize(exits);
    models.push_back(model);
    ProfileTable::ModelRows row{.exits = exits, .max_batch = max_batch};
    for (int e = 0; e < exits; ++e) {
      for (int b = 1; b <= max_batch; ++b) {
        row.latency.push_back(Duration{(e + 1) * step.count() * (9 + b) / 10});
      }
    }
    rows.push_back(row);
    queues.emplace_back(capacity);
    profile = ProfileTable(1, rows);
  }
  void AddLanes(int count, int slots = 1) {
    for (int i = 0; i < count; ++i) {
      Lane& lane = lanes.emplace_back();
      lane.id = LaneId{static_cast<LaneId::rep>(lanes.size() - 1)};
      lane.slots = slots;
      lane.batches = FixedVector<RunningBatch>(slots);
    }
  }
  View view() const { return {models, queues, lanes, profile}; }
  void Prepare() {
    for (Policy* policy : listeners) policy->Prepare(view());
  }
  bool Push(ModelId m, TimePoint deadline, std::uint32_t shape = 0) {
    const Request request{.id = RequestId{next_id++},
                          .arrival = deadline - models[m.value()].slo,
                          .deadline = deadline,
                          .shape = shape};
    if (!queues[m.value()].Push(request)) return false;
    for (Policy* policy : listeners) policy->OnArrive(m, request);
    return true;
  }
  void Pop(ModelId m, int count) {
    for (Policy* policy : listeners) policy->OnPopFront(m, count);
    queues[m.value()].PopFront(count);
  }
  void Remove(ModelId m, std::size_t position) {
    const RequestId id = queues[m.value()][position].id;
    ASSERT_TRUE(queues[m.value()].Remove(id).has_value());
    for (Policy* policy : listeners) policy->OnQueueChange(m);
  }
  void CarryOut(const Dispatch& d) {
    Lane& lane = lanes[d.lane.value()];
    ASSERT_TRUE(lane.HasFreeSlot());
    ASSERT_EQ(queues[d.model.value()].Batchable(d.batch), d.batch);
    lane.batches.push_back({.id = BatchId{next_id++}, .model = d.model, .exit = d.exit});
    Pop(d.model, d.batch);
  }
};

Decision Ask(const World& world, TimePoint now, EdgeServingOptions options = {}) {
  PlainEdgeServing plain("plain", options);
  EdgeServing fast("fast", options);
  plain.Prepare(world.view());
  fast.Prepare(world.view());
  const Decision decision = plain.Decide(world.view(), now);
  EXPECT_EQ(decision, fast.Decide(world.view(), now));
  return decision;
}

TEST(Urgency, IsOneAtTheDeadlineAndClipped) {
  const TimePoint deadline = kStart + Millis(100);
  EXPECT_DOUBLE_EQ(Urgency(deadline, Millis(50), deadline, 10), 1);
  EXPECT_DOUBLE_EQ(Urgency(deadline, Millis(50), deadline - Millis(50), 10), std::exp(-1.0));
  EXPECT_DOUBLE_EQ(Urgency(deadline, Millis(50), deadline + Millis(50), 10), std::exp(1.0));
  EXPECT_DOUBLE_EQ(Urgency(deadline, Millis(50), deadline + Millis(5000), 10), 10);
}

// An idle system waits for an event, not for an instant.
TEST(EdgeServing, WaitsWhenNothingIsQueued) {
  World world;
  world.AddModel(Millis(50), 4, 10, Millis(3));
  world.AddLanes(1);
  EXPECT_EQ(Ask(world, kStart), Decision{Wait{}});
}

// Section III: no scheduling while a batch runs.
TEST(EdgeServing, WaitsWhileEveryLaneIsBusy) {
  World world;
  world.AddModel(Millis(50), 4, 10, Millis(3));
  world.AddLanes(1);
  world.lanes[0].batches.push_back({});
  world.Push(M(0), kStart + Millis(50));
  EXPECT_EQ(Ask(world, kStart), Decision{Wait{}});
}

// Eq. 6 for one waiting request, exits of 3, 6, 9 and 12 ms: each instant has its deepest exit, and
// past the last one the shallowest runs, late.
TEST(EdgeServing, TakesTheDeepestExitThatMeetsTheDeadline) {
  World world;
  world.AddModel(Millis(50), 4, 10, Millis(3));
  world.AddLanes(1);
  world.Push(M(0), kStart + Millis(50));
  const struct {
    Duration now;
    unsigned exit;
  } cases[] = {{Millis(0), 3},  {Millis(38), 3}, {Millis(38) + Nanos(1), 2},
               {Millis(41), 2}, {Millis(44), 1}, {Millis(47), 0},
               {Millis(49), 0}, {Millis(80), 0}};
  for (const auto& c : cases) {
    const Decision expected =
        Dispatch{.model = M(0), .exit = ExitId{c.exit}, .batch = 1, .lane = LaneId{0}};
    EXPECT_EQ(Ask(world, kStart + c.now), expected) << ToMillis(c.now) << " ms";
  }
}

// The exit is chosen for the batch that runs: 10 requests take 1.9 times as long as one.
TEST(EdgeServing, ChoosesTheExitForTheActualBatch) {
  World world;
  world.AddModel(Millis(50), 2, 10, Millis(10));
  world.AddLanes(1);
  world.Push(M(0), kStart + Millis(30));
  EXPECT_EQ(std::get<Dispatch>(Ask(world, kStart)).exit, ExitId{1});  // 20 ms
  for (int i = 0; i < 9; ++i) world.Push(M(0), kStart + Millis(31));
  EXPECT_EQ(Ask(world, kStart),  // exit 1 would take 38 ms
            (Decision{Dispatch{.model = M(0), .exit = ExitId{0}, .batch = 10, .lane = LaneId{0}}}));
  EXPECT_EQ(Ask(world, kStart, {.batch = 1}),
            (Decision{Dispatch{.model = M(0), .exit = ExitId{1}, .batch = 1, .lane = LaneId{0}}}));
}

// Requests of another shape cannot share the batch; those behind them wait for the next round.
TEST(EdgeServing, EndsTheBatchAtAnotherShape) {
  World world;
  world.AddModel(Millis(50), 1, 10, Millis(1));
  world.AddLanes(1);
  world.Push(M(0), kStart + Millis(10), 7);
  world.Push(M(0), kStart + Millis(11), 7);
  world.Push(M(0), kStart + Millis(12), 8);
  world.Push(M(0), kStart + Millis(13), 7);
  EXPECT_EQ(std::get<Dispatch>(Ask(world, kStart)).batch, 2);
}

// Eq. 4 by hand: serving model 0 (2 ms) leaves b at 48/50 of its SLO; serving model 1 (40 ms)
// leaves both of model 0 at 45/50.
TEST(EdgeServing, ScoresWhatWouldRemain) {
  World world;
  world.AddModel(Millis(50), 1, 10, Millis(2));
  world.AddModel(Millis(50), 1, 10, Millis(40));
  world.AddLanes(1);
  const TimePoint now = kStart + Millis(100);
  world.Push(M(0), now + Millis(45));
  world.Push(M(0), now + Millis(45));
  world.Push(M(1), now + Millis(4));
  const auto first = MakeCandidate(world.view(), M(0), {}, now);
  const auto second = MakeCandidate(world.view(), M(1), {}, now);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->latency, Micros(2200));
  EXPECT_NEAR(StabilityScore(world.view(), *first, 10, now), std::exp(-1.8 / 50), 1e-12);
  EXPECT_NEAR(StabilityScore(world.view(), *second, 10, now), 2 * std::exp(-5.0 / 50), 1e-12);
  EXPECT_EQ(std::get<Dispatch>(Ask(world, now)).model, M(0));
}

// The point of the score: EDF would serve the long batch that is due first and make six others
// late; the score serves the six first, because the one is lost less than they would be.
TEST(EdgeServing, DoesNotLetOneUrgentRequestBlockTheRest) {
  World world;
  world.AddModel(Millis(50), 1, 10, Millis(45));
  world.AddModel(Millis(50), 1, 10, Millis(4));
  world.AddLanes(1);
  world.Push(M(0), kStart + Millis(10));
  for (int i = 0; i < 6; ++i) world.Push(M(1), kStart + Millis(20));
  EXPECT_EQ(std::get<Dispatch>(Ask(world, kStart)).model, M(1));
}

// Without the clip the 20 requests that are lost anyway would be served first, one by one, and the
// ten that can still be saved would be lost as well.
TEST(EdgeServing, GivesLostRequestsBoundedWeight) {
  World world;
  world.AddModel(Millis(50), 1, 1, Millis(20));
  world.AddModel(Millis(50), 1, 10, Millis(5));
  world.AddLanes(1);
  const TimePoint now = kStart + Seconds(2);
  for (int i = 0; i < 20; ++i) world.Push(M(0), now - Seconds(1));
  for (int i = 0; i < 10; ++i) world.Push(M(1), now + Millis(1));
  EXPECT_EQ(std::get<Dispatch>(Ask(world, now)).model, M(1));
  EXPECT_EQ(std::get<Dispatch>(Ask(world, now, {.clip = 1e6})).model, M(0));
}

TEST(EdgeServing, EqualScoresGoToTheLowerModel) {
  World world;
  for (int i = 0; i < 3; ++i) world.AddModel(Millis(50), 4, 10, Millis(3));
  world.AddLanes(1);
  for (int i = 3; i-- > 0;) world.Push(M(i), kStart + Millis(50));
  EXPECT_EQ(std::get<Dispatch>(Ask(world, kStart)).model, M(0));
}

TEST(EdgeServing, TakesTheFirstFreeLaneThatServesTheModel) {
  World world;
  world.AddModel(Millis(50), 1, 10, Millis(3));
  world.AddLanes(3);
  world.lanes[0].open = false;
  world.lanes[1].serves = ModelSet::None(1);
  world.Push(M(0), kStart + Millis(50));
  EXPECT_EQ(std::get<Dispatch>(Ask(world, kStart)).lane, LaneId{2});
  world.lanes[2].batches.push_back({});
  EXPECT_EQ(Ask(world, kStart), Decision{Wait{}});
}

TEST(EdgeServing, WithoutEarlyExitsRunsTheFinalOneHoweverLate) {
  World world;
  world.AddModel(Millis(50), 4, 10, Millis(3));
  world.AddLanes(1);
  world.Push(M(0), kStart);
  EXPECT_EQ(std::get<Dispatch>(Ask(world, kStart + Millis(70), {.early_exits = false})).exit,
            ExitId{3});
}

// One random life of a system, told to both versions, which must answer every question alike.
class EdgeServingLife {
 public:
  explicit EdgeServingLife(std::uint64_t seed)
      : rng_(Rng::Stream(seed, "life")), plain_("plain", Options()), fast_("fast", Options()) {
    const auto models = 1 + rng_.Below(8);
    const auto slos = 1 + rng_.Below(3);
    for (std::uint64_t i = 0; i < models; ++i) {
      const Duration slo = Millis(20 + 40 * static_cast<int>(rng_.Below(slos)));
      world_.AddModel(slo, 1 + static_cast<int>(rng_.Below(4)),
                      1 + static_cast<int>(rng_.Below(12)),
                      Micros(200 + static_cast<int>(rng_.Below(4000))), 2048);
    }
    world_.AddLanes(1 + static_cast<int>(rng_.Below(3)), 1 + static_cast<int>(rng_.Below(2)));
    load_ = rng_.Uniform() * 8;
    world_.listeners = {&plain_, &fast_};
    world_.Prepare();
  }

  void Run(int events) {
    for (int i = 0; i < events && !::testing::Test::HasFailure(); ++i) {
      Happen();
      Settle();
    }
  }
  int dispatches() const { return dispatches_; }

 private:
  EdgeServingOptions Options() {
    if (options_.clip == 0)
      options_ = {.batch = 1 + static_cast<int>(rng_.Below(16)),
                  .clip = 1 + 20 * rng_.Uniform(),
                  .early_exits = rng_.Below(4) != 0};
    return options_;
  }

  // Time passes; then requests come, or one is cancelled, or a batch ends.
  void Happen() {
    now_ += Duration{static_cast<std::int64_t>(rng_.Exponential(1e-6))};
    if (rng_.Below(500) == 0) now_ += Millis(static_cast<int>(rng_.Below(400)));  // a stall
    const std::uint64_t what = rng_.Below(100);
    if (what < 50) return Arrive();
    if (what < 55) return Cancel();
    if (what < 56) return world_.Prepare();  // the served models changed
    if (what < 58) return Expire();
    Lane& lane = world_.lanes[rng_.Below(world_.lanes.size())];
    if (!lane.batches.empty()) lane.batches.SwapErase(rng_.Below(lane.batches.size()));
  }
  void Arrive() {
    const ModelId m = M(rng_.Below(world_.models.size()));
    const auto count = static_cast<int>(load_ * 2 * rng_.Uniform() + 1);
    for (int i = 0; i < count; ++i) {
      TimePoint deadline = now_ + world_.models[m.value()].slo;
      // A client's own deadline, a request that was late already, one given back by a dead lane.
      if (rng_.Below(5) == 0) {
        deadline -= Duration{static_cast<std::int64_t>(rng_.Exponential(4e-8))};
      }
      world_.Push(m, deadline, static_cast<std::uint32_t>(rng_.Below(20) / 19));
    }
  }
  void Cancel() {
    const std::size_t m = rng_.Below(world_.models.size());
    if (!world_.queues[m].empty()) world_.Remove(M(m), rng_.Below(world_.queues[m].size()));
  }
  void Expire() {
    const std::size_t m = rng_.Below(world_.models.size());
    if (!world_.queues[m].empty()) {
      world_.Pop(M(m), static_cast<int>(1 + rng_.Below(world_.queues[m].size())));
    }
  }
  void Settle() {
    for (;;) {
      const Decision expected = plain_.Decide(world_.view(), now_);
      ASSERT_EQ(fast_.Decide(world_.view(), now_), expected);
      if (!std::holds_alternative<Dispatch>(expected)) return;
      ++dispatches_;
      world_.CarryOut(std::get<Dispatch>(expected));
    }
  }

  Rng rng_;
  EdgeServingOptions options_{.clip = 0};
  World world_;
  PlainEdgeServing plain_;
  EdgeServing fast_;
  TimePoint now_ = kStart;
  double load_ = 1;
  int dispatches_ = 0;
};

TEST(EdgeServing, DecidesAsThePlainVersionDoes) {
  int dispatches = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EdgeServingLife life(seed);
    life.Run(600);
    if (HasFailure()) return;
    dispatches += life.dispatches();
  }
  EXPECT_GT(dispatches, 20'000);
}

// Overload that nobody sheds: queues of thousands, most of it clipped, served to the end.
TEST(EdgeServing, DecidesAsThePlainVersionDoesUnderABacklogOfTenThousand) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "backlog");
    World world;
    PlainEdgeServing plain("plain", {});
    EdgeServing fast("fast", {});
    world.listeners = {&plain, &fast};
    for (int i = 0; i < 3; ++i) world.AddModel(Millis(50), 4, 10, Millis(3), 16384);
    world.AddLanes(1);
    world.Prepare();
    TimePoint now = kStart;
    for (int i = 0; i < 10'000; ++i) {
      now += Duration{static_cast<std::int64_t>(rng.Exponential(2e-5))};
      world.Push(M(rng.Below(3)), now + Millis(50));
    }
    for (int round = 0; round < 60; ++round) {
      const Decision expected = plain.Decide(world.view(), now);
      ASSERT_EQ(fast.Decide(world.view(), now), expected) << "round " << round;
      world.CarryOut(std::get<Dispatch>(expected));
      world.lanes[0].batches.clear();
      now += Millis(3);
      for (int i = 0; i < 40; ++i) world.Push(M(rng.Below(3)), now + Millis(50));
    }
  }
}

}  // namespace
}  // namespace tactus
