#include "metrics/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TextTable Wide(std::vector<std::string> names) {
  TextTable table;
  table.AddColumn("policy", "");
  table.AddColumn(std::string(100, 'x'), "r/s");  // leaves 18 columns for the names
  for (std::string& name : names) table.Add({std::move(name), "7"});
  return table;
}

// Policies that differ only in their last option must not become rows that look the same.
TEST(TextTable, NumbersTheNamesThatItCuts) {
  const std::string text =
      Wide({"symphony:gather=window,aim=0.8", "fifo", "symphony:gather=window,aim=0.5",
            "symphony:gather=window,aim=0.8", "  a model with a very long name"})
          .Print();
  EXPECT_THAT(text, HasSubstr("\nsymphony:gath..[1]  "));
  EXPECT_THAT(text, HasSubstr("\nsymphony:gath..[2]  "));
  EXPECT_THAT(text, HasSubstr("\n  a model wit..[3]  "));
  EXPECT_THAT(text, HasSubstr("\n[1] symphony:gather=window,aim=0.8\n"
                              "[2] symphony:gather=window,aim=0.5\n"
                              "[3] a model with a very long name\n"));
  EXPECT_THAT(text, Not(HasSubstr("[4]")));
  EXPECT_THAT(text, HasSubstr("\nfifo  "));
}

TEST(TextTable, SaysNothingMoreWhereAllNamesFit) {
  EXPECT_THAT(Wide({"fifo", "eighteen columns.."}).Print(), Not(HasSubstr("[1]")));
}

// A column without a unit, units of several words, and brackets that are no unit.
TEST(TextTable, ColumnsOfOneStringAreThoseOfTheirOwn) {
  TextTable one, other;
  one.AddColumns("a, b|SLO [ms]|effective [on time/s]|[x] y");
  other.AddColumn("a, b", "");
  other.AddColumn("SLO", "ms");
  other.AddColumn("effective", "on time/s");
  other.AddColumn("[x] y", "");
  EXPECT_EQ(one.Print(), other.Print());
}

}  // namespace
}  // namespace tactus
