// Without these a node that was started again could pass for the one before, or two nodes of one
// name take turns.
#include "fleet/membership.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

using Heard = Membership::Heard;

FromNode Says(const std::string& node, Incarnation who, std::uint64_t sequence, bool hello) {
  FromNode message{node, who, sequence, NodeBeat{}};
  if (hello) message.what = NodeHello{};
  return message;
}

TEST(Membership, SilenceMakesSuspectedThenDeadAndAWordAliveAgain) {
  Membership members({"a", "b"});
  EXPECT_EQ(members.Next(), kNever);
  EXPECT_EQ(members.Hear(Says("a", {7, 1}, 1, true), kStart), Heard::kNewLife);
  EXPECT_TRUE(members.Step(kStart + Millis(2999)).empty());
  EXPECT_EQ(members.Next(), kStart + Seconds(3));
  EXPECT_EQ(members.Step(kStart + Seconds(3)).at(0).to, Standing::kSuspected);
  EXPECT_EQ(members.Next(), kStart + Seconds(10));
  EXPECT_EQ(members.Hear(Says("a", {7, 1}, 2, false), kStart + Seconds(9)), Heard::kNews);
  EXPECT_TRUE(members.Step(kStart + Seconds(10)).empty());
  EXPECT_EQ(members.Step(kStart + Seconds(19)).at(0).to, Standing::kDead);
  EXPECT_EQ(members.members().at("b").standing, Standing::kAway);
}

TEST(Membership, ALaterLifeReplacesAnEarlierOneAndNeverTheOtherWayRound) {
  Membership members({"a"});
  EXPECT_EQ(members.Hear(Says("a", {7, 2}, 5, false), kStart), Heard::kMustGreet);
  EXPECT_EQ(members.Hear(Says("a", {7, 2}, 6, true), kStart), Heard::kNewLife);
  EXPECT_EQ(members.Hear(Says("a", {7, 2}, 6, true), kStart), Heard::kOld);
  EXPECT_EQ(members.Hear(Says("a", {7, 3}, 1, true), kStart), Heard::kNewLife);
  EXPECT_EQ(members.Hear(Says("a", {7, 2}, 9, false), kStart), Heard::kEarlierLife);
  EXPECT_EQ(members.members().at("a").who, (Incarnation{7, 3}));
}

TEST(Membership, ANameHasOneBearerUntilItIsSilent) {
  Membership members({"a"});
  EXPECT_EQ(members.Hear(Says("z", {1, 1}, 1, true), kStart), Heard::kUndeclared);
  EXPECT_EQ(members.Hear(Says("a", {7, 2}, 1, true), kStart), Heard::kNewLife);
  EXPECT_EQ(members.Hear(Says("a", {8, 9}, 1, true), kStart + Seconds(1)), Heard::kNameTaken);
  members.Step(kStart + Seconds(4));
  EXPECT_EQ(members.Hear(Says("a", {8, 9}, 2, true), kStart + Seconds(4)), Heard::kNewLife);
  EXPECT_EQ(members.Hear(Says("a", {7, 2}, 2, false), kStart + Seconds(5)), Heard::kNameTaken);
}

}  // namespace
}  // namespace tactus
