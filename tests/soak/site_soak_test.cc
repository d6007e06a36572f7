// Sites of all sizes and policies under faults of every kind, in virtual time: schedulers, front
// ends and workers that die, stall, come back and lose each other. Every request that a front end
// accepts ends exactly once, nothing is left, and once the last fault is over the site serves in
// time again. A hundred million requests: ./run soak cluster 100000000.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "site/site_trouble_test.h"
#include "soak_options.h"

namespace tactus {
namespace {

using site_test::Counts;
using site_test::SiteWorld;
using site_test::WorldOptions;

constexpr TimePoint kHealed = kStart + Seconds(12);
constexpr TimePoint kSteady = kStart + Seconds(13);
constexpr TimePoint kLastArrival = kStart + Seconds(15);
constexpr TimePoint kEnd = kStart + Seconds(16);
// A lane alone answers some 400 requests a second one by one, at every model's last exit.
constexpr double kEachLaneRps = 400;

WorldOptions AnySite(std::uint64_t seed) {
  Rng rng = Rng::Stream(seed, "soak/site");
  const auto upto = [&rng](std::uint64_t most) {
    return static_cast<std::uint32_t>(1 + rng.Below(most));
  };
  constexpr std::array kPolicies = {"horizon", "symphony", "clockwork", "edgeserving"};
  return {.seed = seed,
          .schedulers = upto(3),
          .front_ends = upto(5),
          .workers = upto(6),
          .lanes = static_cast<int>(upto(4)),
          .delay = Micros(20 + static_cast<std::int64_t>(rng.Below(1000))),
          .policy = kPolicies[rng.Below(kPolicies.size())]};
}

void Add(const Counts& of, Counts& to) {
  to.accepted += of.accepted;
  to.ended += of.ended;
  to.doubled += of.doubled;
  to.met += of.met;
  to.late += of.late;
  to.refused += of.refused;
  to.cancelled += of.cancelled;
}

Counts LiveOnce(std::uint64_t seed) {
  const WorldOptions options = AnySite(seed);
  Rng rng = Rng::Stream(seed, "soak/load");
  const double lanes = static_cast<double>(options.workers) * options.lanes;
  const double rate = (0.1 + 0.4 * rng.Uniform()) * kEachLaneRps * lanes;
  SiteWorld world(options);
  site_test::Load(world, rate, kLastArrival, 40, 200);
  site_test::Trouble(world, kStart + Millis(400), kHealed);
  world.clock().RunUntil(kHealed);
  site_test::Mend(world);
  world.clock().RunUntil(kSteady);
  const Counts before = world.counts();
  world.clock().RunUntil(kEnd);
  const Counts& all = world.counts();
  EXPECT_EQ(all.ended, all.accepted);
  EXPECT_EQ(all.doubled, 0U);
  EXPECT_EQ(all.met + all.late + all.refused + all.cancelled, all.ended);
  EXPECT_EQ(world.held(), 0U);
  // Published rules lose some on few lanes, whoever lives.
  const double wanted = options.policy == "horizon" ? 0.99 : 0.5;
  EXPECT_GE(static_cast<double>(all.met - before.met),
            wanted * static_cast<double>(all.accepted - before.accepted))
      << "policy " << options.policy << ", " << options.workers << " workers, "
      << all.accepted - before.accepted << " requests after the last fault";
  return all;
}

TEST(SiteSoak, EachRequestEndsOnceWhoeverDies) {
  const std::uint64_t wanted = RequestsOf(100'000);
  const Seeds seeds = SeedsOf(UINT64_MAX);
  Counts counts;
  std::uint64_t sites = 0;
  std::uint64_t said = 0;
  for (; counts.accepted < wanted && !HasFailure() && seeds.More(sites); ++sites) {
    const std::uint64_t seed = seeds.first + sites;
    SCOPED_TRACE(Again(seed));
    Add(LiveOnce(seed), counts);
    if (counts.accepted / 10'000'000 == said) continue;
    said = counts.accepted / 10'000'000;
    std::printf("%llu of %llu requests\n", static_cast<unsigned long long>(counts.accepted),
                static_cast<unsigned long long>(wanted));
    std::fflush(stdout);
  }
  std::printf(
      "%llu requests of %llu sites: %llu in time, %llu late, %llu refused, %llu cancelled\n",
      static_cast<unsigned long long>(counts.accepted), static_cast<unsigned long long>(sites),
      static_cast<unsigned long long>(counts.met), static_cast<unsigned long long>(counts.late),
      static_cast<unsigned long long>(counts.refused),
      static_cast<unsigned long long>(counts.cancelled));
  if (sites < 5) return;  // one that is repeated
  // The faults reach what they are for.
  EXPECT_GT(counts.refused, 0U);
  EXPECT_GT(counts.late, 0U);
  EXPECT_GT(counts.cancelled, 0U);
}

}  // namespace
}  // namespace tactus
