// Random lives of a dispatcher (dispatcher_life.h) under every policy with random options and under
// one that decides at random. A failure names the seed; run that life alone with
//
//   tactus_soak_test --first=SEED --lives=1
#include <string>

#include <gtest/gtest.h>

#include "dispatcher_life.h"
#include "soak_options.h"

namespace tactus {
namespace {

constexpr int kEvents = 400;

std::string PolicyOf(Chance& chance) {
  return chance.OneIn(8) ? kRandomPolicy : RandomPolicyText(chance);
}

// Lives `policy`; empty: a policy of the seed's choice. Returns what it wrote into the journal.
std::vector<JournalRecord> Live(std::uint64_t seed, std::string policy) {
  SeededChance choice(seed, "soak/policy");
  if (policy.empty()) policy = PolicyOf(choice);
  SCOPED_TRACE(Again(seed) + ", policy " + policy);
  SeededChance chance(seed, "soak/life");
  Life life(chance, policy);
  life.Run(kEvents);
  return life.journal();
}

TEST(DispatcherSoak, KeepsItsPromisesWhateverHappens) {
  std::size_t records = 0;
  const Seeds seeds = SeedsOf(2000);
  std::uint64_t lives = 0;
  for (; seeds.More(lives) && !HasFailure(); ++lives) {
    records += Live(seeds.first + lives, "").size();
  }
  EXPECT_GT(records, lives * kEvents / 2);
}

// The same events lead to the same decisions, every one: what replay stands on.
TEST(DispatcherSoak, DecidesTheSameTwice) {
  const Seeds seeds = SeedsOf(250);
  for (std::uint64_t i = 0; seeds.More(i) && !HasFailure(); ++i) {
    SCOPED_TRACE(Again(seeds.first + i));
    EXPECT_TRUE(Live(seeds.first + i, "") == Live(seeds.first + i, ""));
  }
}

// What an index keeps from one event to the next must be what the plain version finds anew.
TEST(DispatcherSoak, KeepsCandidatesAndSumsExact) {
  const Seeds seeds = SeedsOf(1000);
  for (std::uint64_t i = 0; seeds.More(i) && !HasFailure(); ++i) {
    const std::uint64_t seed = seeds.first + i;
    SeededChance choice(seed, "soak/twins");
    const std::string policy =
        RandomPolicyText(choice.OneIn(4) ? "edgeserving" : "symphony", choice);
    SCOPED_TRACE(Again(seed) + ", policy " + policy);
    EXPECT_TRUE(Live(seed, policy) == Live(seed, PlainTwin(policy)));
  }
}

}  // namespace
}  // namespace tactus
