// What ensembles were told and said must be on disk so that it can be decided again, also where the
// disk was too slow for all of it.
#include "ensemble/pipeline_journal.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"
#include "ensemble/scripted_steps_test.h"
#include "pipeline/flow_replay.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

PipelineDeclaration TwoInARow() {
  return {.name = "twice",
          .deadlines = DeadlineRule::kSpare,
          .stages = {{.name = "one",
                      .model = "echo",
                      .inputs = {{"in", "x"}},
                      .outputs = {{"out", "between"}}},
                     {.name = "two",
                      .model = "echo",
                      .inputs = {{"in", "between"}},
                      .outputs = {{"out", "y"}}}}};
}

// Calls of which one is answered, one refused behind its first step, and one left by its client.
void Serve(PipelineJournal& journal) {
  EnsembleOptions options;
  options.journal = &journal;
  EnsembleBench bench(std::move(options));
  const TensorSpec in{"in", DataType::kFp32, {-1, 2}};
  const TensorSpec out{"out", DataType::kFp32, {-1, 2}};
  bench.steps.Add(FloatModel("echo", 8, {in}, {out}));
  ModelSpec model =
      FloatModel("twice", 8, {{"x", DataType::kFp32, {-1, 2}}}, {{"y", DataType::kFp32, {-1, 2}}});
  model.slo = Millis(100);
  bench.Declare(std::move(model), TwoInARow());
  bench.service->Open({"*"});
  for (int call = 0; call < 3; ++call) {
    const auto& asked = bench.Call("twice", {1, 2}, {1, 2});
    bench.Pass(Millis(3));
    bench.steps.Answer(bench.steps.Of("echo").id, {{{1, 2}, {1, 2}}});
    bench.Pass(Millis(4));
    if (call == 2) {
      bench.service->Cancel(asked.id);
      continue;
    }
    const CallId second = bench.steps.Of("echo").id;
    if (call == 0) bench.steps.Answer(second, {{{1, 2}, {1, 2}}});
    if (call == 1) bench.steps.End(second, ErrorCode::kUnavailable, "shed", Outcome::kShed);
  }
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

class PipelineJournalTest : public ::testing::Test {
 protected:
  FlowReplayResult Written(std::size_t most) {
    auto journal = PipelineJournal::Create(folder_ / "j", "abc", most);
    EXPECT_TRUE(journal) << journal.error().message;
    Serve(**journal);
    stopped_ = (*journal)->stopped();
    EXPECT_TRUE((*journal)->Close());
    EXPECT_TRUE((*journal)->Close()) << "again";
    text_ = *ReadWhole(folder_ / "j", "journal");
    auto result = ReplayFlows(text_, "j");
    EXPECT_TRUE(result) << result.error().message;
    return result ? *result : FlowReplayResult{};
  }

  const TemporaryFolder folder_;
  std::string text_;
  bool stopped_ = false;
};

TEST_F(PipelineJournalTest, DecidesAlike) {
  const FlowReplayResult result = Written(PipelineJournal::kMostWaiting);
  EXPECT_EQ(result.difference.value_or(""), "");
  EXPECT_EQ(result.commit, "abc");
  EXPECT_EQ(result.requests, 3u);
  // Two starts and an end of each, and a step that is cancelled as its client left.
  EXPECT_EQ(result.decisions, 3u * 3 + 1);
  EXPECT_TRUE(result.complete);
  EXPECT_FALSE(stopped_);
  EXPECT_THAT(text_, HasSubstr(" twice\n"));
}

TEST_F(PipelineJournalTest, ABeginningIsTrueToo) {
  const FlowReplayResult whole = Written(PipelineJournal::kMostWaiting);
  const std::size_t half = text_.size() / 2;
  const FlowReplayResult result = Written(half);
  EXPECT_TRUE(stopped_);
  EXPECT_EQ(result.difference.value_or(""), "");
  EXPECT_FALSE(result.complete);
  EXPECT_GT(result.events, 0u);
  EXPECT_LT(result.events, whole.events);
}

TEST_F(PipelineJournalTest, SaysWhereItCannotBe) {
  const auto journal = PipelineJournal::Create(folder_ / "no" / "such", "abc");
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message, HasSubstr("no/such: cannot write the journal"));
}

}  // namespace
}  // namespace tactus
