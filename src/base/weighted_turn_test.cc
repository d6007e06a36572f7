#include "base/weighted_turn.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

// Without this, a lane of half the weight could get its turns in bursts.
TEST(WeightedTurn, TurnsAreSpreadEvenly) {
  const std::vector<double> weights = {4, 2, 1};
  std::vector<double> credit(3);
  std::string turns;
  for (int i = 0; i < 14; ++i) {
    turns += "abc"[TakeTurn(credit, [&](std::size_t k) { return std::optional(weights[k]); })];
  }
  EXPECT_EQ(turns, "abacabaabacaba");
}

TEST(WeightedTurn, WhoTakesNoPartEarnsNothing) {
  std::vector<double> credit(2);
  const auto second = [](std::size_t k) { return k == 1 ? std::optional(1.0) : std::nullopt; };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(TakeTurn(credit, second), 1u);
  EXPECT_EQ(credit, (std::vector<double>{0, 0}));
  EXPECT_EQ(TakeTurn(credit, [](std::size_t) { return std::optional<double>(); }), 2u);
}

}  // namespace
}  // namespace tactus
