// A journal of pipelines that says something else than this program must be found out, and one that
// makes no sense refused with its line.
#include "pipeline/flow_replay.h"

#include <algorithm>
#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/flow.h"
#include "pipeline/made_pipeline_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

class Silent final : public FlowOutbox {
 public:
  void Start(const RunKey&, TimePoint, TimePoint) override {}
  void Lost(const RunKey&, TimePoint) override {}
  void Cancel(const RunKey&) override {}
  void Ended(const PipelineEnd&) override {}
};

class Text final : public FlowJournal {
 public:
  void Append(const FlowRecord& record) override { AppendText(lines, 0, record); }
  std::string lines;
};

RunKey Key(StageId::rep stage, std::uint32_t item = 0) {
  return {PipelineRequestId{0}, {StageId{stage}, item}};
}

// detect finds three rows, of which one is refused.
std::string Journal() {
  const PipelineDeclaration declaration{
      .name = "rows\nof a picture",
      .slo = Millis(60),
      .deadlines = DeadlineRule::kRedivide,
      .answer = AnswerRule::kEach,
      .stages = {{.name = "detect", .demultiply = true},
                 {.name = "read", .after = {"detect"}},
                 {.name = "join", .after = {"read"}, .gather = "detect"}}};
  Silent outbox;
  Flow flow({PipelineOf(declaration, Millis(10))}, outbox);
  Text text;
  text.lines = FlowText(0, declaration, flow.pipelines()[0]);
  flow.Record(&text);
  flow.Adopt(0, std::array{Millis(12), Millis(10), Millis(20)});
  flow.Begin(0, kStart, kStart + Millis(60));
  flow.Answered(Key(0), 3, kStart + Millis(15));
  flow.Refused(Key(1, 1), DropReason::kShed, kStart + Millis(16));
  flow.Answered(Key(1, 0), 1, kStart + Millis(20));
  flow.Answered(Key(1, 2), 1, kStart + Millis(40));
  flow.Answered(Key(2), 1, kStart + Millis(58));
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(text.lines, '\n'));
  return FlowHeadText("abc") + text.lines + FlowEndText(lines, true);
}

std::string Changed(const std::string& from, const std::string& to) {
  std::string text = Journal();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in\n" << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string WhyRefused(const std::string& text) {
  const auto result = ReplayFlows(text, "j");
  if (!result) return result.error().message;
  return result->difference ? "different: " + *result->difference : "identical";
}

TEST(FlowReplay, SaysTheSameAgain) {
  const auto result = ReplayFlows(Journal(), "j");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->difference.value_or(""), "");
  EXPECT_EQ(result->commit, "abc");
  EXPECT_EQ(result->pipelines, 1u);
  EXPECT_EQ(result->requests, 1u);
  EXPECT_EQ(result->events, 9u);
  EXPECT_EQ(result->decisions, 7u);  // five starts, a row given up, the end
  EXPECT_TRUE(result->complete);
}

TEST(FlowReplay, FindsTheFirstDifference) {
  // Another deadline of the first start, another end, one start too few.
  EXPECT_THAT(WhyRefused(Changed("\nS 0 0 0 0 ", "\nS 0 0 0 0 1")),
              HasSubstr("different: line 10: the journal has 'S 0 0 0 1"));
  EXPECT_THAT(WhyRefused(Changed("\nE 0 0 0 ", "\nE 0 0 1 ")), HasSubstr("different: line "));
  std::string text = Changed("L 0 0 1 1\n", "");
  EXPECT_THAT(WhyRefused(text), HasSubstr("different: line "));
  // A need that nobody had leads to other deadlines.
  EXPECT_THAT(WhyRefused(Changed("\nn 0 0 1 10000000\n", "\nn 0 0 1 30000000\n")),
              HasSubstr("different: line "));
}

TEST(FlowReplay, RefusesWhatNoFlowWasTold) {
  EXPECT_THAT(WhyRefused("TACTUSJ2"), HasSubstr("j: is no journal of pipelines"));
  EXPECT_THAT(WhyRefused(Changed("pipelines 2 ", "pipelines 9 ")), HasSubstr("j:1: is of another"));
  EXPECT_THAT(WhyRefused(Changed("\na 0 0 1 0 ", "\na 0 0 1 7 ")),
              HasSubstr(": no such run was started"));
  EXPECT_THAT(WhyRefused(Changed("\na 0 0 1 0 ", "\na 0 0 0 0 ")), HasSubstr("it has ended"));
  EXPECT_THAT(WhyRefused(Changed("\nb 0 0 0 60000000 -1 ", "\nb 0 0 0 60000000 4 ")),
              HasSubstr("not all that it waits for"));
  EXPECT_THAT(WhyRefused(Changed("\nb 0 0 0 ", "\nb 0 0 9223372036854775807 ")),
              HasSubstr("no request begins like this"));
  EXPECT_THAT(WhyRefused(Changed(" -1 0\n", " -1 2\n")), HasSubstr("no request begins like this"));
  EXPECT_THAT(WhyRefused(Changed("\nn 0 0 1 ", "\nn 0 0 2 ")), HasSubstr("j:7: stages' needs"));
  EXPECT_THAT(WhyRefused(Changed("\ns 0 1 ", "\ns 0 7 ")), HasSubstr("j:3: no stage looks like"));
  EXPECT_THAT(WhyRefused(Changed("\np 0 ", "\np 3 ")), HasSubstr("j:2: pipelines are numbered"));
  EXPECT_THAT(WhyRefused(Changed("\nr 0 ", "\nr 4 ")), HasSubstr("no such pipeline was declared"));
  EXPECT_THAT(WhyRefused(Changed("\nr 0 ", "\nz 0 ")), HasSubstr("not told such a thing"));
  EXPECT_THAT(WhyRefused(Changed("\nr 0 ", "\n\nr 0 ")), HasSubstr("is damaged"));
}

// Cut anywhere behind its head, it is replayed as far as it goes, and says so.
TEST(FlowReplay, WhatWasCutOffIsABeginning) {
  const std::string text = Journal();
  const std::size_t head = text.find('\n');
  std::uint64_t decisions = 0;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const auto result = ReplayFlows(text.substr(0, n), "j");
    ASSERT_EQ(result.has_value(), n > head) << n;
    if (!result) continue;
    ASSERT_TRUE(result->cut_off && !result->complete) << n;
    ASSERT_EQ(result->difference, std::nullopt) << n;
    ASSERT_GE(result->decisions, decisions);
    decisions = result->decisions;
  }
  const auto whole = ReplayFlows(text, "j");
  ASSERT_TRUE(whole && !whole->cut_off);
  EXPECT_EQ(decisions, whole->decisions);
  EXPECT_THAT(WhyRefused(text + "b 0\n"), HasSubstr("something follows its end"));
}

}  // namespace
}  // namespace tactus
