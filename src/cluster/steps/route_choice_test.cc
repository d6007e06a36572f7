// Without these a plan's weights would not be kept, or a node that has died would get every other
// call until the next plan.
#include "cluster/steps/route_choice.h"

#include <string>

#include <gtest/gtest.h>

namespace tactus {
namespace {

std::string Ways(RouteChoice& choice, int calls, const std::string& shut = "") {
  std::string ways;
  for (int i = 0; i < calls; ++i) {
    const auto next = choice.Next(
        [&](std::size_t each) { return shut.find(static_cast<char>('0' + each)) == shut.npos; });
    ways += next ? static_cast<char>('0' + *next) : '-';
  }
  return ways;
}

TEST(RouteChoice, SpreadsCallsByWeightAndEvenly) {
  RouteChoice two_to_one({2, 1});
  EXPECT_EQ(Ways(two_to_one, 9), "010010010");
  RouteChoice alike({0, 0, 0});
  EXPECT_EQ(Ways(alike, 6), "012012");
  RouteChoice third({1, 0, 1});
  EXPECT_EQ(Ways(third, 4), "0202") << "no weight, no call";
  RouteChoice nobody({});
  EXPECT_EQ(Ways(nobody, 2), "--");
}

TEST(RouteChoice, PassesOverWhoMayNotAndGoesOnWhereItWas) {
  RouteChoice choice({2, 1});
  EXPECT_EQ(Ways(choice, 3, "0"), "111");
  EXPECT_EQ(Ways(choice, 2, "01"), "--");
  EXPECT_EQ(Ways(choice, 3), "010") << "the one that was away is not flooded";
}

TEST(PeerStanding, IsPassedOverLongerEachTimeUntilItAnswers) {
  PeerStanding peer;
  TimePoint now = kStart + Seconds(1);
  EXPECT_FALSE(peer.away(now));
  EXPECT_TRUE(peer.Failed(now)) << "news";
  EXPECT_TRUE(peer.away(now + Millis(49)));
  EXPECT_FALSE(peer.away(now + Millis(50)));
  EXPECT_FALSE(peer.Failed(now)) << "known";
  EXPECT_TRUE(peer.away(now + Millis(99)));
  for (int i = 0; i < 20; ++i) peer.Failed(now);
  EXPECT_FALSE(peer.away(now + PeerStanding::kLongestPause));
  EXPECT_TRUE(peer.Answered()) << "news";
  EXPECT_FALSE(peer.away(now));
  EXPECT_FALSE(peer.Answered());
}

// A host that has fallen silent refuses nothing: calls expire there, one after the other.
TEST(PeerStanding, OfSeveralCallsThatExpireInARowItIsTakenForSilent) {
  PeerStanding peer;
  const TimePoint now = kStart + Seconds(1);
  EXPECT_FALSE(peer.Expired(now));
  EXPECT_FALSE(peer.Expired(now));
  EXPECT_FALSE(peer.Answered());
  EXPECT_FALSE(peer.Expired(now));
  EXPECT_FALSE(peer.Expired(now));
  EXPECT_FALSE(peer.away(now));
  EXPECT_TRUE(peer.Expired(now));
  EXPECT_TRUE(peer.away(now));
}

}  // namespace
}  // namespace tactus
