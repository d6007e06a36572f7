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

// Numbers that a terminal has no room for would wrap, and no column could be followed.
TEST(TextTable, WhatCanBeSparedGoesFirstAndIsNamed) {
  TextTable table;
  table.AddColumn("policy", "");
  table.AddColumn(std::string(50, 'x'), "", 1);
  table.AddColumn(std::string(40, 'y'), "", 9);
  table.AddColumn(std::string(30, 'z'), "");
  table.Add({"fifo", "1", "2", "3"});
  EXPECT_THAT(table.Print(), Not(HasSubstr("want of width")));
  TextTable::SetWidth(120);
  const std::string text = table.Print();
  EXPECT_THAT(text, HasSubstr(std::string(50, 'x') + "  " + std::string(30, 'z')));
  EXPECT_THAT(text, HasSubstr("\nnot shown, for want of width: " + std::string(40, 'y') + " ("));
  TextTable::SetWidth(80);
  const std::string narrow = table.Print();
  TextTable::SetWidth(120);
  EXPECT_THAT(narrow,
              HasSubstr("want of width: " + std::string(40, 'y') + ", " + std::string(50, 'x')));
  EXPECT_THAT(narrow, HasSubstr("fifo"));
}

TEST(TextTable, AColumnThatSaysNothingIsNotShown) {
  TextTable table;
  table.AddColumns("policy|goodput [r/s]|busy [%]|exits [%]");
  table.Add({"fifo", "7", "-"});
  table.Add({"horizon", "8", "", "-"});
  EXPECT_EQ(table.Print(),
            "policy   goodput\n             r/s\nfifo           7\nhorizon        8\n");
}

// A column without a unit, units of several words, and brackets that are no unit.
TEST(TextTable, ColumnsOfOneStringAreThoseOfTheirOwn) {
  TextTable one, other;
  one.AddColumns("a, b|SLO [ms]~1|effective [on time/s]|[x] y");
  other.AddColumn("a, b", "");
  other.AddColumn("SLO", "ms");
  other.AddColumn("effective", "on time/s");
  other.AddColumn("[x] y", "");
  EXPECT_EQ(one.Print(), other.Print());
}

}  // namespace
}  // namespace tactus
