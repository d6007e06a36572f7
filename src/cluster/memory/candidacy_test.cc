// Without these a controller could lead after its lease has ended, or wait for ever although nobody
// leads.
#include "cluster/memory/candidacy.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Says what it is told to say, and Held by a lease of 10 s.
class ScriptedCoordination final : public knowledge::Coordination {
 public:
  enum class Says { kYes, kAway, kLost };
  struct Script {
    Says says = Says::kYes;
    std::vector<std::string> calls;
  };
  explicit ScriptedCoordination(Script& script) : script_(script) {}

  const std::string& place() const override { return place_; }
  Expected<std::uint64_t> Acquire(TimePoint now, std::uint64_t above) override {
    script_.calls.push_back("acquire above " + std::to_string(above));
    if (script_.says != Says::kYes) {
      Heard("ctl0");
      return Fail(ErrorCode::kUnavailable, "scripted: another controller leads (ctl0)");
    }
    Hold(above + 1, now + Seconds(10));
    return above + 1;
  }
  Status Renew(TimePoint now) override {
    script_.calls.push_back("renew");
    if (script_.says == Says::kAway) return Fail(ErrorCode::kUnavailable, "scripted: away");
    if (script_.says == Says::kLost) {
      Lose();
      return Fail(ErrorCode::kCancelled, "scripted: leadership is lost");
    }
    Extend(now + Seconds(10));
    return {};
  }
  void Resign() override {
    if (IsHeld()) script_.calls.push_back("resign");
    Lose();
  }

 private:
  Script& script_;
  const std::string place_ = "scripted";
};

class CandidacyTest : public ::testing::Test {
 protected:
  using Says = ScriptedCoordination::Says;

  Candidacy Stand(std::uint64_t above) {
    return Candidacy(std::make_unique<ScriptedCoordination>(script), "ctl1",
                     {.above = [above] { return above; }},
                     [this](const std::string& line) { lines.push_back(line); });
  }
  // Steps until `end`, as its thread does; whether it led all the while.
  bool Run(Candidacy& candidacy, TimePoint end) {
    bool led = true;
    for (; now < end; now += Millis(100)) {
      candidacy.Step(now);
      led = led && candidacy.term() != 0 && now < candidacy.until();
    }
    return led;
  }

  ScriptedCoordination::Script script;
  std::vector<std::string> lines;
  TimePoint now = kStart;
};

TEST_F(CandidacyTest, LeadsByATermAboveWhatIsKnownAndRenewsInTime) {
  Candidacy candidacy = Stand(6);
  EXPECT_TRUE(Run(candidacy, kStart + Seconds(100)));
  EXPECT_EQ(candidacy.term(), 7u);
  EXPECT_THAT(lines, ElementsAre("ctl1 is elected, term 7"));
  EXPECT_EQ(script.calls.size(), 30u);  // one that acquires, then each 3.4 s: ticks are 0.1 s apart
}

TEST_F(CandidacyTest, WaitsForItsTurnAndSaysOnceWhoLeads) {
  script.says = Says::kAway;
  Candidacy candidacy = Stand(0);
  Run(candidacy, kStart + Seconds(10));
  EXPECT_EQ(candidacy.term(), 0u);
  EXPECT_EQ(candidacy.leader(), "ctl0");
  EXPECT_EQ(script.calls.size(), 10u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines.at(0), HasSubstr("ctl0"));
  script.says = Says::kYes;
  Run(candidacy, kStart + Seconds(11));
  EXPECT_EQ(candidacy.term(), 1u);
}

// The service is away: it leads until its lease ends, and no longer.
TEST_F(CandidacyTest, AServiceThatIsAwayEndsItsLeadershipWithTheLease) {
  Candidacy candidacy = Stand(0);
  Run(candidacy, kStart + Seconds(4));  // renewed at 3.4 s
  script.says = Says::kAway;
  EXPECT_TRUE(Run(candidacy, kStart + Millis(13'300)));
  EXPECT_EQ(candidacy.until(), kStart + Millis(13'400));
  script.says = Says::kYes;
  Run(candidacy, kStart + Seconds(14));
  EXPECT_EQ(candidacy.term(), 1u) << "it was back before another led";
}

TEST_F(CandidacyTest, ALeaseThatIsLostIsStoodForAgain) {
  Candidacy candidacy = Stand(0);
  Run(candidacy, kStart + Seconds(3));
  script.says = Says::kLost;
  Run(candidacy, kStart + Seconds(4));
  EXPECT_EQ(candidacy.term(), 0u);
  EXPECT_EQ(candidacy.until(), kStart);
  script.says = Says::kYes;
  Run(candidacy, kStart + Seconds(6));
  EXPECT_EQ(candidacy.term(), 1u);
}

TEST_F(CandidacyTest, StandsForATermAboveOneThatANodeObeys) {
  Candidacy candidacy = Stand(0);
  Run(candidacy, kStart + Seconds(1));
  candidacy.StandAgain(9, now);
  EXPECT_EQ(candidacy.term(), 0u);
  Run(candidacy, kStart + Seconds(3));
  EXPECT_EQ(candidacy.term(), 10u);
  EXPECT_THAT(script.calls, ElementsAre("acquire above 0", "resign", "acquire above 9"));
}

// The real lock of a file: the second waits, hears the first one's name, and follows.
TEST_F(CandidacyTest, OfTwoAtOneFileTheSecondFollowsWithAHigherTerm) {
  const TemporaryFolder folder;
  const auto stand = [&](const std::string& name) {
    auto coordination =
        knowledge::OpenCoordination("sqlite:" + (folder / "knowledge.db").string(), {.name = name});
    EXPECT_TRUE(coordination);
    return std::make_unique<Candidacy>(*std::move(coordination), name, CandidacyOptions{},
                                       [](const std::string&) {});
  };
  auto first = stand("ctl a"), second = stand("ctl b");
  first->Step(now);
  second->Step(now);
  EXPECT_EQ(first->term(), 1u);
  EXPECT_EQ(second->term(), 0u);
  EXPECT_EQ(second->leader(), "ctl a");
  first.reset();
  Run(*second, kStart + Seconds(2));
  EXPECT_EQ(second->term(), 2u);
}

}  // namespace
}  // namespace tactus
