// Models on some of the lanes only, and lanes that die under their batches and come back, under
// every policy: each request is answered once, where its model is. `./run soak scale` does it for a
// million requests.
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "chance.h"
#include "policies/registry.h"
#include "sim/simulation.h"
#include "soak_options.h"

namespace tactus {
namespace {

constexpr int kModels = 12;

// b requests of model m take 2 + m / 4 + b ms, at the first of two exits half of it.
ProfileFile Profile() {
  ProfileFile profile;
  profile.provenance = "made up by a soak";
  for (int m = 0; m < kModels; ++m) {
    ProfiledModel model{.name = "m" + std::to_string(m), .max_batch = 8};
    for (int e = 1; e <= 2; ++e) {
      ProfiledExit exit{.name = std::to_string(e), .accuracy = 0.4 * e};
      for (int b = 1; b <= model.max_batch; ++b) {
        const double ms = 0.5 * e * (2 + 0.25 * m + b);
        exit.cells.push_back({0, ms, ms, ms, ms, ms, ms, 0});
      }
      model.exits.push_back(exit);
    }
    profile.models.push_back(model);
  }
  return profile;
}

// Lanes of up to five kinds, each with some of the models; a kind for all, so that every model has
// a lane. Each lane dies now and then.
Scenario RandomScenario(std::uint64_t seed) {
  SeededChance chance(seed, "soak/placements");
  Scenario scenario;
  scenario.name = "placements";
  scenario.seed = seed;
  scenario.duration_s = 3;
  scenario.queue_capacity = 200;
  scenario.rate_rps = chance.Whole(500, 4000);
  scenario.expiry = chance.OneIn(3) ? "never" : "unmeetable";
  scenario.slots = chance.OneIn(3) ? 2 : 1;
  for (const ProfiledModel& model : Profile().models) {
    scenario.models.push_back({.name = model.name, .profile_as = model.name, .slo_ms = 60});
  }
  scenario.lanes = 2;  // for all models
  for (int k = chance.Whole(1, 4); k > 0; --k) {
    LaneKind kind{.name = "kind" + std::to_string(k),
                  .count = chance.Whole(1, 3),
                  .speed = 0.5 * chance.Whole(1, 4)};
    for (const ScenarioModel& model : scenario.models) {
      if (chance.OneIn(3)) kind.models.push_back(model.name);
    }
    // None would mean all of them, and Nexus plans only for such lanes if all are alike.
    if (kind.models.empty()) kind.models.push_back(scenario.models[0].name);
    scenario.lanes += kind.count;
    scenario.lane_kinds.push_back(std::move(kind));
  }
  for (int lane = 0; lane < scenario.lanes; ++lane) {
    for (double at_s = 0.1 * chance.Whole(1, 15); at_s < scenario.duration_s;) {
      const double back_s = at_s + 0.01 * chance.Whole(1, 100);
      scenario.lane_faults.push_back({lane, at_s, back_s});
      at_s = back_s + 0.1 * chance.Whole(1, 15);
    }
  }
  return scenario;
}

// What arrived, and what each lane ran or lost.
class Account final : public Journal {
 public:
  explicit Account(std::vector<LaneSpec> lanes) : lanes_(std::move(lanes)) {}
  void Append(const JournalRecord& record) noexcept override {
    if (record.kind == JournalRecord::Kind::kArrive) ++arrived[{record.at, record.model}];
    if (record.kind == JournalRecord::Kind::kDispatch) {
      misplaced += !lanes_[record.lane].serves.contains(ModelId{record.model});
    }
    lost += record.kind == JournalRecord::Kind::kFinish &&
            record.detail == static_cast<std::uint8_t>(BatchStatus::kLost);
  }
  std::map<std::pair<TimePoint, std::uint32_t>, int> arrived;  // by instant and model
  int misplaced = 0;
  int lost = 0;

 private:
  const std::vector<LaneSpec> lanes_;
};

TEST(PlacementSoak, EachRequestIsAnsweredOnceWhereItsModelIs) {
  const std::uint64_t wanted = RequestsOf(150'000);
  const auto policies = Policies();
  std::uint64_t answered = 0;
  int lost = 0;
  for (std::uint64_t i = 0; answered < wanted && !HasFailure(); ++i) {
    const std::uint64_t seed = SeedsOf(1).first + i;
    const std::string& text = policies[i % policies.size()].name;
    SCOPED_TRACE(Again(seed) + ", policy " + text);
    Scenario scenario = RandomScenario(seed);
    scenario.policy = text;
    Account account(MakeLanes(scenario));
    const auto result = Simulate(scenario, Profile(), **MakePolicy(text), {.journal = &account});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(account.misplaced, 0);
    for (const RequestRecord& record : result->records) {
      --account.arrived[{record.arrival, record.model}];
      EXPECT_NE(record.outcome, Outcome::kError);
    }
    for (const auto& [arrival, count] : account.arrived) {
      ASSERT_EQ(count, 0) << "a request of model " << arrival.second
                          << (count > 0 ? " is lost" : " was answered twice");
    }
    answered += result->records.size();
    lost += account.lost;
  }
  EXPECT_GT(lost, 100) << "lanes died with nothing under way";
  std::printf("%llu requests, each answered once; %d batches died with their lanes\n",
              static_cast<unsigned long long>(answered), lost);
}

}  // namespace
}  // namespace tactus
