// Without turns one client's thousand pieces are all taken before another's first.
#include "server/net/client_turns.h"

#include <string>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(ClientTurns, ClientsTakeTurnsAndEachKeepsItsOrder) {
  ClientTurns<int> turns;
  EXPECT_TRUE(turns.empty());
  for (int i = 0; i < 4; ++i) turns.Add("many", i);
  turns.Add("few", 10);
  std::string taken;
  for (int i = 0; i < 2; ++i) taken += std::to_string(turns.Take()) + " ";
  turns.Add("late", 20);
  turns.Add("few", 11);
  while (!turns.empty()) taken += std::to_string(turns.Take()) + " ";
  EXPECT_EQ(taken, "0 10 1 20 11 2 3 ");
}

}  // namespace
}  // namespace tactus
