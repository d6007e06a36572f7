// Without this a launch could be taken for a miss, or what expired for one's own word.
#include "policies/departures.h"

#include <gtest/gtest.h>

#include "policies/table_for_test.h"

namespace tactus {
namespace {

using Kind = Departures::Kind;

TEST(Departures, WhatLeavesOtherwiseThanAnsweredIsLostAndAMissWhereItIsOfTheHighestLevel) {
  TableForTest table;
  for (const int priority : {1, 2}) {
    table.AddModel(Millis(500), Millis(4), Millis(1), 8);
    table.models.back().priority = priority;
    for (int i = 0; i < 2; ++i) table.queues.back().Push({.deadline = kStart + Millis(400)});
  }
  table.AddLanes(1);
  const ModelId high = TableForTest::M(0), low = TableForTest::M(1);
  PriorityOrder order(0);
  order.Prepare(table.view());
  Departures departures;
  departures.Prepare(table.view());
  EXPECT_FALSE(departures.NextQuestion());
  departures.Answer(Dispatch{.model = high, .batch = 2});
  EXPECT_EQ(departures.Leave(high, 2, order), Kind::kLaunched);
  EXPECT_FALSE(departures.NextQuestion());
  departures.Answer(Drop{.model = high, .count = 1});
  EXPECT_EQ(departures.Leave(high, 1, order), Kind::kGivenUp);
  EXPECT_FALSE(departures.NextQuestion());
  departures.Answer(Dispatch{.model = low, .batch = 1});
  EXPECT_EQ(departures.Leave(low, 2, order), Kind::kLost);
  EXPECT_FALSE(departures.NextQuestion()) << "of a lower level";
  departures.Answer(Dispatch{.model = high, .batch = 1});
  EXPECT_EQ(departures.Leave(high, 1, order), Kind::kLaunched);
  EXPECT_EQ(departures.Leave(high, 1, order), Kind::kLost) << "an answer is carried out once";
  EXPECT_TRUE(departures.NextQuestion());
  EXPECT_FALSE(departures.NextQuestion()) << "it was told";
  departures.Miss();
  EXPECT_TRUE(departures.NextQuestion());
}

}  // namespace
}  // namespace tactus
