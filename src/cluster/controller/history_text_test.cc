#include "cluster/controller/history_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using testing::HasSubstr;

// Otherwise a reader would take the worst second of a link for what it mostly carries.
TEST(HistoryTextTest, OfALinkTheQuartilesAreShown) {
  ClusterPast past;
  past.links.emplace();
  for (const double mbps : {40.0, 10.0, 30.0, 20.0}) {
    past.links->push_back({.from_site = "a", .to_site = "b", .mbps = mbps});
  }
  const std::string text = PastTables(past);
  EXPECT_THAT(text, HasSubstr("a     b    10.0  10.0    20.0  40.0"));
  EXPECT_THAT(PastTables({.plans = {}, .events = {}, .arrivals = {}, .links = {{}}}),
              HasSubstr("links, Mbit/s: none\n"));
}

// Otherwise programs that read the history would take text for a plan, or stop at what is none.
TEST(HistoryTextTest, PlansAreDocumentsWhereTheyAreSome) {
  ClusterPast past;
  past.plans = {{.epoch = 2, .term = 1, .input = "{\"devices\":[1,2]}", .plan = "cut off {"}};
  const auto json = nlohmann::json::parse(PastJson(past));
  EXPECT_EQ(json.at("plans").at(0).at("input").at("devices").size(), 2u);
  EXPECT_EQ(json.at("plans").at(0).at("plan"), "cut off {");
  EXPECT_FALSE(json.contains("events")) << "it was not asked for";
  EXPECT_THAT(PastTables(past), HasSubstr("1.2"));
  EXPECT_THAT(PastTables(past), HasSubstr("unknown")) << "its controller did not live to say";
}

}  // namespace
}  // namespace tactus
