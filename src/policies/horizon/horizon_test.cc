// The default policy as tables of states, and its schedule on one lane against every possible one.
#include "policies/horizon/horizon.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "policies/registry.h"
#include "policies/table_for_test.h"

namespace tactus {
namespace {

constexpr auto ModelAt = &TableForTest::M;

struct HorizonTable : TableForTest {
  // Exits of these accuracies; exit e of n takes (e + 1) / n of base + b * each.
  void AddExits(Duration slo, Duration base, Duration each, int max_batch,
                std::vector<double> accuracy) {
    Model model{.name = "m", .slo = slo, .max_batch = max_batch};
    const int exits = static_cast<int>(accuracy.size());
    ProfileTable::ModelRows row{.exits = exits, .max_batch = max_batch};
    for (int e = 0; e < exits; ++e) {
      model.exits.push_back({.name = std::to_string(e + 1), .accuracy = accuracy[e]});
      for (int b = 1; b <= max_batch; ++b) {
        row.latency.push_back((e + 1) * (base + b * each) / exits);
      }
    }
    models.push_back(model);
    rows.push_back(row);
    queues.emplace_back(256);
    profile = ProfileTable(1, rows);
  }
  void Prepare() {
    policy = *MakePolicy("horizon");
    policy->Prepare(view());
  }
  void PushAt(std::size_t m, int deadline_ms, int count = 1) {
    Push(*policy, m, kStart + Millis(deadline_ms), count);
  }
  Decision Ask(int ms = 0) { return policy->Decide(view(), kStart + Millis(ms)); }
  void RunOn(std::size_t lane, std::size_t m, int batch) {
    Run(lane, m, batch, kStart);
    policy->OnLaneChange(lanes[lane]);
  }

  std::unique_ptr<Policy> policy;
};

Decision Dispatched(std::size_t m, int exit, int batch, std::size_t lane = 0) {
  return Dispatch{.model = ModelAt(m),
                  .exit = ExitId{static_cast<ExitId::rep>(exit)},
                  .batch = batch,
                  .lane = LaneId{static_cast<LaneId::rep>(lane)}};
}

// An exit under the line between its neighbours buys less accuracy for a second than they do.
TEST(LaneKinds, KeepTheExitsThatAreWorthTheirTime) {
  HorizonTable world;
  world.AddExits(Millis(50), Millis(4), Millis(1), 8, {0.4, 0.5, 0.8, 0.8});
  world.AddLanes(2);
  world.lanes.back().serves = ModelSet::None(1);
  LaneKinds kinds;
  kinds.Prepare(world.view());
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].courses[0].hull, (std::vector{0, 2}));
  EXPECT_FALSE(kinds[1].courses[0].served());
  ASSERT_EQ(kinds[0].steps.size(), 1u);
  EXPECT_NEAR(kinds[0].steps[0].price, 0.4 / (0.5 * 0.012 / 8), 1e-6);
  EXPECT_EQ(kinds.Least(ModelAt(0)), Micros(1250));
  EXPECT_EQ(kinds.QuickestFor(ModelAt(0)), 0u);
  EXPECT_EQ(kinds.ShareOf(0, ModelAt(0)), 1);
}

// Batches of 6 ms at the last of two exits, 3 ms at the first.
TEST(Horizon, GoesAsDeepAsTheOthersLeaveTimeFor) {
  const struct {
    int other_deadline;
    int exit;
  } cases[] = {{12, 1}, {11, 1}, {9, 1}, {8, 0}, {6, 0}};
  for (const auto& c : cases) {
    HorizonTable world;
    for (int m = 0; m < 2; ++m) world.AddExits(Millis(50), Millis(5), Millis(1), 1, {0.3, 0.9});
    world.AddLanes(1);
    world.Prepare();
    world.PushAt(0, 6);
    world.PushAt(1, c.other_deadline);
    EXPECT_EQ(world.Ask(), Dispatched(0, c.exit, 1)) << c.other_deadline;
  }
}

// A machine that turns out to be slower: what was derived from latencies is derived anew.
TEST(Horizon, FollowsTheProfile) {
  HorizonTable world;
  world.AddExits(Millis(50), Millis(8), Millis(2), 1, {0.5, 0.8});
  world.AddLanes(1);
  world.Prepare();
  const ProfileTable profiled = world.profile;
  world.profile.Follow(profiled, ModelAt(0), LaneClass{0}, 1.5);
  world.PushAt(0, 12);  // the deep exit took 10 ms, and takes 15
  EXPECT_EQ(world.Ask(), Dispatched(0, 0, 1));
  world.profile.Follow(profiled, ModelAt(0), LaneClass{0}, 1);
  EXPECT_EQ(world.Ask(), Dispatched(0, 1, 1));
  world.profile.Follow(profiled, ModelAt(0), LaneClass{0}, 3);
  EXPECT_TRUE(std::holds_alternative<Drop>(world.Ask())) << "15 ms at least";
}

// Rows of one call have one deadline, and each is a batch of its own here: nobody is left out.
TEST(Horizon, GivesNobodyUpForARequestOfTheSameDeadline) {
  for (int models = 1; models <= 40; ++models) {
    HorizonTable world;
    for (int m = 0; m < models; ++m) {
      world.AddExits(Millis(500), Micros(5), Micros(1), 1, {0.3, 0.9});
    }
    world.AddLanes(1);
    world.Prepare();
    for (int m = 0; m < models; ++m) world.PushAt(m, 500, 2);
    EXPECT_TRUE(std::holds_alternative<Dispatch>(world.Ask())) << models;
  }
}

// Beside a second lane, a longer batch behind may have to start before the first.
TEST(Horizon, GivesNobodyUpForALongerBatchBehind) {
  HorizonTable world;
  world.AddExits(Millis(500), Millis(1), Millis(10), 8, {0.3, 0.9});
  world.AddLanes(2);
  world.Prepare();
  world.PushAt(0, 20);
  world.PushAt(0, 60, 8);
  EXPECT_TRUE(std::holds_alternative<Dispatch>(world.Ask()));
}

TEST(Horizon, SpendsTimeWhereItBuysTheMostAccuracy) {
  HorizonTable world;
  world.AddExits(Millis(50), Millis(5), Millis(1), 1, {0.3, 0.5});
  world.AddExits(Millis(50), Millis(5), Millis(1), 1, {0.3, 0.9});
  world.AddLanes(1);
  world.Prepare();
  world.PushAt(0, 8);
  world.PushAt(1, 10);  // 3 ms for one, 6 for the other: it is the other's that are worth it
  EXPECT_EQ(world.Ask(), Dispatched(0, 0, 1));
}

TEST(Horizon, LeavesOutTheLowestPriorityFirst) {
  HorizonTable world;
  world.AddModel(Millis(50), Millis(5), Millis(1), 1);
  world.AddModel(Millis(50), Millis(5), Millis(1), 1);
  world.models[0].priority = 2;
  world.AddLanes(1);
  world.Prepare();
  world.PushAt(0, 7);  // due first, but then the other would be late
  world.PushAt(1, 8);
  EXPECT_EQ(world.Ask(), Launch(1, 1, 0));
  HorizonTable fine;
  fine.AddModel(Millis(50), Millis(5), Millis(1), 1);
  fine.AddModel(Millis(50), Millis(5), Millis(1), 1);
  fine.models[0].priority = 2;
  fine.AddLanes(1);
  fine.Prepare();
  fine.PushAt(0, 7);
  fine.PushAt(1, 12);
  EXPECT_EQ(fine.Ask(), Launch(0, 1, 0)) << "there is time for both";
}

// A request's own priority counts as its model's would.
TEST(Horizon, LeavesOutTheLowestPriorityOfRequests) {
  HorizonTable world;
  world.AddModel(Millis(50), Millis(5), Millis(1), 1);
  world.AddModel(Millis(50), Millis(5), Millis(1), 1);
  for (Model& model : world.models) model.priority = 2;
  world.AddLanes(1);
  world.Prepare();
  world.PushAt(0, 7);
  const Request urgent{.id = RequestId{100},
                       .arrival = kStart - Millis(42),
                       .deadline = kStart + Millis(8),
                       .priority = 1};
  world.queues[1].Push(urgent);
  world.policy->OnArrive(ModelAt(1), urgent);
  EXPECT_EQ(world.Ask(), Launch(1, 1, 0));
}

TEST(Horizon, GivesUpWhatNobodyCanMeet) {
  HorizonTable world;
  world.AddModel(Millis(50), Millis(5), Millis(1), 4);
  world.AddLanes(1);
  world.Prepare();
  world.PushAt(0, 5);
  world.PushAt(0, 40);
  EXPECT_EQ(world.Ask(), GiveUp(0, 1, DropReason::kExpired));
  world.Pop(*world.policy, ModelAt(0), 1);
  EXPECT_EQ(world.Ask(), Launch(0, 1, 0));
}

TEST(Horizon, KeepsToTheLanesThatServeTheModel) {
  HorizonTable world;
  world.AddExits(Millis(50), Millis(5), Millis(1), 4, {0.3, 0.9});
  world.AddExits(Millis(50), Millis(5), Millis(1), 4, {0.3, 0.9});
  world.AddLanes(2);
  world.lanes[0].serves = ModelSet::None(2);
  world.lanes[0].serves.Insert(ModelAt(1));
  world.Prepare();
  world.PushAt(0, 40, 4);
  EXPECT_EQ(world.Ask(), Dispatched(0, 1, 4, 1));
  world.RunOn(1, 0, 4);
  world.PushAt(1, 40, 4);
  EXPECT_EQ(world.Ask(), Dispatched(1, 1, 4, 0));
}

// With rates known and lanes to spare a batch waits for others to join it; full, it does not.
TEST(Horizon, DefersWhereLanesAreMany) {
  HorizonTable world;
  world.AddModel(Millis(100), Millis(5), Millis(1), 8);
  world.AddLanes(16);
  world.Prepare();
  for (int ms = 0; ms < 500; ms += 10) {  // 100 a second, each gone at once
    world.Push(*world.policy, 0, kStart + Millis(ms + 100));
    world.Pop(*world.policy, ModelAt(0), 1);
  }
  world.Push(*world.policy, 0, kStart + Millis(600));
  const Decision first = world.Ask(500);
  ASSERT_TRUE(std::holds_alternative<Wait>(first));
  const TimePoint until = std::get<Wait>(first).until;
  EXPECT_GT(until, kStart + Millis(570));
  EXPECT_LT(until, kStart + Millis(594));
  world.Push(*world.policy, 0, kStart + Millis(601), 7);
  EXPECT_EQ(world.Ask(501), Launch(0, 8, 0));
}

// Half a second of arrivals at this rate for each model, gone at once, so that rates are known.
void Warm(HorizonTable& world, int per_second) {
  for (int ms = 0; ms < 500; ms += 1000 / per_second) {
    for (std::size_t m = 0; m < world.models.size(); ++m) {
      world.Push(*world.policy, m, kStart + Millis(ms) + world.models[m].slo);
      world.Pop(*world.policy, ModelAt(m), 1);
    }
  }
}

// Else bursts would find work that idle lanes could have done before them.
TEST(Horizon, LendsASpareLaneToABatchThatHasGrown) {
  HorizonTable world;
  world.AddModel(Millis(100), Millis(5), Millis(1), 8);
  world.AddLanes(16);
  world.Prepare();
  Warm(world, 100);
  world.PushAt(0, 600, 4);
  EXPECT_TRUE(std::holds_alternative<Wait>(world.Ask(500))) << "2.25 ms each, 1.83 in a batch of 6";
  world.PushAt(0, 600);
  EXPECT_EQ(world.Ask(501), Launch(0, 5, 0)) << "2 ms each: nearly as good";
  world.lanes[0].batches.push_back({});
  world.policy->OnLaneChange(world.lanes[0]);
  EXPECT_TRUE(std::holds_alternative<Wait>(world.Ask(502))) << "the load needs one lane";
}

// Where larger batches pay nothing, as a brief measurement may have it, a batch that is larger than
// the load needs has grown all the same: it would wait for its deadline on idle lanes.
TEST(Horizon, WhoeverIsMoreThanTheLoadNeedsDoesNotWait) {
  HorizonTable world;
  world.AddModel(Seconds(20), Millis(-4), Millis(5), 8);  // 1 ms, 6 ms, 11 ms ...
  world.AddLanes(2);
  world.Prepare();
  for (int i = 0; i < 2; ++i) world.PushAt(0, 20'000);
  EXPECT_EQ(world.Ask(0), Launch(0, 2, 0));
}

// Rates fall while nobody comes: the last of many does not wait for company until its deadline.
TEST(Horizon, WhoeverComesLastDoesNotWaitForCompany) {
  HorizonTable world;
  world.AddModel(Seconds(10), Millis(5), Millis(1), 64);
  world.AddLanes(4);
  world.Prepare();
  Warm(world, 500);
  world.PushAt(0, 10'500);
  TimePoint now = kStart + Millis(500);
  Decision decision = world.policy->Decide(world.view(), now);
  EXPECT_TRUE(std::holds_alternative<Wait>(decision)) << "others may come yet";
  while (const auto* wait = std::get_if<Wait>(&decision)) {
    now = wait->until;
    decision = world.policy->Decide(world.view(), now);
  }
  EXPECT_EQ(decision, Launch(0, 1, 0));
  EXPECT_LE(now, kStart + Millis(1200));
}

// A single lane that waits for a larger batch would be lost to whoever comes next.
TEST(Horizon, IsEagerOnOneLane) {
  for (const bool exits : {false, true}) {
    HorizonTable world;
    world.AddExits(Millis(100), Millis(5), Millis(1), 8,
                   exits ? std::vector{0.5, 0.8} : std::vector{0.8});
    world.AddLanes(1);
    world.Prepare();
    Warm(world, 100);
    world.PushAt(0, 600);
    EXPECT_EQ(world.Ask(500), Dispatched(0, exits ? 1 : 0, 1));
  }
}

// A step of an ensemble has until its ensemble says, which may be long after its model's SLO.
TEST(Horizon, IsEagerOnOneLaneForWhatIsDueLongAfterItsSlo) {
  HorizonTable world;
  world.AddExits(Millis(20), Millis(5), Millis(1), 8, {0.8});
  world.AddLanes(1);
  world.Prepare();
  Warm(world, 20);
  world.PushAt(0, 5000);
  EXPECT_EQ(world.Ask(500), Dispatched(0, 0, 1));
}

// 4 or 8 ms for the first model, 6 for the second, which still waits for others to join.
TEST(Horizon, WaitsRatherThanBeShallowForOthersWhereThereIsTime) {
  const auto decide = [](int own_deadline, int other_deadline) {
    HorizonTable world;
    world.AddExits(Millis(200), Millis(7), Millis(1), 1, {0.3, 0.9});
    world.AddModel(Millis(50), Millis(5), Millis(1), 8);
    world.AddLanes(2);
    world.Prepare();
    Warm(world, 20);
    world.Run(1, 1, 1, kStart + Millis(500));
    world.lanes[1].free_at = kStart + Millis(560);
    world.policy->OnLaneChange(world.lanes[1]);
    world.PushAt(0, own_deadline);
    world.PushAt(1, other_deadline);
    return world.Ask(500);
  };
  EXPECT_EQ(decide(650, 516), Dispatched(0, 1, 1)) << "time for both";
  EXPECT_TRUE(std::holds_alternative<Wait>(decide(650, 512))) << "late after 8 ms, but no hurry";
  EXPECT_EQ(decide(510, 512), Dispatched(0, 0, 1)) << "now or never";
}

TEST(SpareLanes, AreThoseTheLoadNeedsWhileOthersStayFree) {
  HorizonTable world;
  world.AddModel(Millis(50), Millis(5), Millis(1), 4);
  world.AddLanes(4);
  LaneKinds kinds;
  kinds.Prepare(world.view());
  SpareLanes spare;
  spare.Prepare(kinds);
  const auto lane = [](LaneId::rep id) { return std::optional(LaneId{id}); };
  EXPECT_EQ(spare.Find(0, 4), std::nullopt) << "all busy";
  spare.SetFree(LaneId{2}, true);
  EXPECT_EQ(spare.Find(0, 4), std::nullopt) << "one is kept";
  spare.SetFree(LaneId{3}, true);
  spare.SetFree(LaneId{3}, true);
  EXPECT_EQ(spare.Find(0, 4), lane(2));
  EXPECT_EQ(spare.Find(0, 2.5), std::nullopt) << "the load does not need a third";
  spare.SetFree(LaneId{0}, true);
  EXPECT_EQ(spare.Find(0, 0.1), lane(0));
  spare.SetFree(LaneId{0}, false);
  spare.SetFree(LaneId{1}, true);
  EXPECT_EQ(spare.Find(0, 2), lane(1));
  EXPECT_EQ(spare.Find(0, 1.9), std::nullopt) << "of a light load's lanes one is lent";
  spare.SetFree(LaneId{1}, false);
  spare.SetFree(LaneId{2}, false);
  EXPECT_EQ(spare.Find(0, 4), std::nullopt);
}

// One lane, each queue one batch with one deadline, nothing expected: small enough to try all.
struct Job {
  int batch = 0;
  Duration deadline{};
  std::size_t model = 0;
};

// The most accuracy of any order and exits in which all are in time; below 0 where there is none.
double BestOf(const HorizonTable& world, const std::vector<Job>& jobs) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  double best = -1;
  const auto search = [&](auto&& self, std::size_t at, Duration now, double sum) -> void {
    if (at == order.size()) {
      best = std::max(best, sum);
      return;
    }
    const Job& job = jobs[order[at]];
    for (int e = 0; e < world.models[job.model].exit_count(); ++e) {
      const ExitId exit{static_cast<ExitId::rep>(e)};
      const Duration end =
          now + world.profile.Latency(ModelAt(job.model), exit, job.batch, LaneClass{0});
      if (end > job.deadline) continue;
      self(self, at + 1, end, sum + job.batch * world.models[job.model].exits[e].accuracy);
    }
  };
  do {
    search(search, 0, Duration{}, 0);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

// What the policy makes of it; below 0 where somebody is late or given up.
double Served(HorizonTable& world, std::size_t jobs) {
  TimePoint now = kStart;
  double sum = 0;
  for (std::size_t i = 0; i < jobs; ++i) {
    const Decision decision = world.policy->Decide(world.view(), now);
    const auto* dispatch = std::get_if<Dispatch>(&decision);
    if (dispatch == nullptr) return -1;
    const TimePoint end =
        now + world.profile.Latency(dispatch->model, dispatch->exit, dispatch->batch, LaneClass{0});
    if (end > world.queues[dispatch->model.value()].front().deadline) return -1;
    sum += dispatch->batch *
           world.models[dispatch->model.value()].exits[dispatch->exit.value()].accuracy;
    world.Pop(*world.policy, dispatch->model, dispatch->batch);
    now = end;
  }
  return sum;
}

TEST(Horizon, LosesNobodyWhomSomeScheduleServesAndIsNearTheBestOfThem) {
  int feasible = 0;
  double best_sum = 0;
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng = Rng::Stream(seed, "every schedule");
    HorizonTable world;
    std::vector<Job> jobs;
    const std::size_t models = 1 + rng.Below(4);
    for (std::size_t m = 0; m < models; ++m) {
      std::vector<double> accuracy;
      for (std::size_t e = 0, n = 1 + rng.Below(4); e < n; ++e) {
        accuracy.push_back((accuracy.empty() ? 0.05 : accuracy.back()) + 0.25 * rng.Uniform());
      }
      world.AddExits(Millis(100), Micros(static_cast<int>(500 + rng.Below(8000))),
                     Micros(static_cast<int>(100 + rng.Below(1000))), 4, accuracy);
    }
    world.AddLanes(1);
    world.Prepare();
    for (std::size_t m = 0; m < models; ++m) {
      const Job job{.batch = static_cast<int>(1 + rng.Below(4)),
                    .deadline = Micros(static_cast<int>(1000 + rng.Below(30'000))),
                    .model = m};
      jobs.push_back(job);
      world.Push(*world.policy, m, kStart + job.deadline, job.batch);
    }
    const double best = BestOf(world, jobs);
    if (best < 0) continue;
    ++feasible;
    const double served = Served(world, jobs.size());
    ASSERT_GT(served, 0) << "a schedule serves all";
    ASSERT_LE(served, best + 1e-9);
    best_sum += best;
    sum += served;
  }
  EXPECT_GT(feasible, 500);
  EXPECT_GT(sum, 0.97 * best_sum);
}

}  // namespace
}  // namespace tactus
