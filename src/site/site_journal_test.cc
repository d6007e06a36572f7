// What a leader was told and decided, term by term: a dispatcher in nobody's site decides the same.
#include <deque>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "dispatch/replay.h"
#include "site/site_trouble_test.h"

namespace tactus::site_test {
namespace {

class TermJournal final : public Journal {
 public:
  explicit TermJournal(const std::string& policy) {
    file.header.policy = policy;
    file.header.options = CentralOptions().dispatcher;
    file.header.lanes = SiteLanes(CentralOptions().lanes);
  }
  void Append(const JournalRecord& record) noexcept override { file.records.push_back(record); }
  void Configured(const ServedModels& served) override {
    file.changes.push_back({file.records.size(), std::make_shared<const ServedModels>(served)});
  }
  void Adopted(const Plan* plan) override {
    file.changes.push_back({file.records.size(), std::make_shared<const Plan>(*plan)});
  }
  void Reshaped(const LaneShare& share) override {
    file.changes.push_back({file.records.size(), share});
  }

  JournalFile file;
};

// The journals of all terms that somebody led in a site with faults of every kind.
std::deque<TermJournal> JournalsOf(std::uint64_t seed, const std::string& policy) {
  std::deque<TermJournal> journals;
  SiteWorld world({.seed = seed, .policy = policy, .journal = [&](Term) -> Journal* {
                     return &journals.emplace_back(policy);
                   }});
  Load(world, 1500, kStart + Millis(1500));
  Trouble(world, kStart + Millis(300), kStart + Millis(1200));
  world.clock().At(kStart + Millis(1250), [&world] { Mend(world); });
  world.clock().RunUntil(kStart + Millis(2000));
  return journals;
}

TEST(SiteJournalTest, TheDecisionsOfEveryTermAreMadeAgain) {
  for (const char* policy : {"horizon", "symphony", "edgeserving", "clockwork"}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(std::string(policy) + ", seed " + std::to_string(seed));
      std::uint64_t decisions = 0;
      const auto journals = JournalsOf(seed, policy);
      EXPECT_GT(journals.size(), 1U);  // somebody took over
      for (const TermJournal& journal : journals) {
        const auto replayed = Replay(journal.file, **MakePolicy(policy));
        ASSERT_TRUE(replayed) << replayed.error().message;
        EXPECT_EQ(replayed->difference, std::nullopt);
        decisions += replayed->decisions;
      }
      EXPECT_GT(decisions, 500U);
    }
  }
}

TEST(SiteJournalTest, ADecisionThatWasAnotherOneIsFound) {
  auto journals = JournalsOf(1, "horizon");
  for (JournalRecord& record : journals.front().file.records) {
    if (record.kind != JournalRecord::Kind::kDispatch) continue;
    ++record.lane;
    break;
  }
  const auto replayed = Replay(journals.front().file, **MakePolicy("horizon"));
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_NE(replayed->difference, std::nullopt);
}

}  // namespace
}  // namespace tactus::site_test
