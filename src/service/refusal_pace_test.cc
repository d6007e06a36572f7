#include "service/refusal_pace.h"

#include <string>

#include <gtest/gtest.h>

namespace tactus {
namespace {

constexpr TimePoint kAt = kStart + Seconds(100);
constexpr Duration kPatient = Seconds(60);

TEST(RefusalPace, TellsAtOnceWhoComesBackWhenItWasInvited) {
  RefusalPace pace;
  for (int time = 0; time < 10; ++time) {
    const TimePoint now = kAt + time * RefusalPace::kInvited;
    EXPECT_EQ(pace.When("a", 1'000'000, kPatient, now), now);
  }
}

// Callers that insist: each comes back as soon as it has heard. Whatever their number, refusals
// take no more than a twentieth of a core, and nobody waits for longer than it was asked to.
TEST(RefusalPace, SpacesThoseThatComeBackAtOnce) {
  for (const std::size_t bytes : {std::size_t{80}, std::size_t{100'000}}) {
    RefusalPace pace;
    TimePoint now = kAt;
    int told = 0;
    for (; now < kAt + Seconds(5); ++told) {
      const TimePoint at = pace.When("a", bytes, kPatient, now);
      EXPECT_GE(at, now);
      EXPECT_LE(at, now + RefusalPace::kInvited);
      now = at;
    }
    const double cost = ToSeconds(RefusalPace::kCall) + 1.2e-9 * static_cast<double>(bytes);
    EXPECT_LE(told * cost, 0.05 * 5 + 3 * cost);
    EXPECT_GE(told * cost, 0.04 * 5);
  }
}

TEST(RefusalPace, AClientThatWasNotRefusedWaitsForNobodyElses) {
  RefusalPace pace;
  for (int i = 0; i < 1000; ++i) pace.When("storm", 100'000, kPatient, kAt);
  EXPECT_GT(pace.When("storm", 100'000, kPatient, kAt), kAt + Millis(900));
  EXPECT_EQ(pace.When("calm", 100'000, kPatient, kAt), kAt);
}

TEST(RefusalPace, AnswersBeforeTheClientsOwnDeadline) {
  RefusalPace pace;
  for (int i = 0; i < 1000; ++i) pace.When("storm", 100'000, kPatient, kAt);
  EXPECT_EQ(pace.When("storm", 80, Millis(30), kAt), kAt + Millis(15));
  EXPECT_EQ(pace.When("storm", 80, Millis(-3), kAt), kAt);
}

TEST(RefusalPace, RemembersNoMoreThanSoManyClients) {
  RefusalPace pace;
  for (std::size_t i = 0; i <= 2 * RefusalPace::kMostClients; ++i) {
    EXPECT_EQ(pace.When(std::to_string(i), 80, kPatient, kAt), kAt);
  }
}

}  // namespace
}  // namespace tactus
