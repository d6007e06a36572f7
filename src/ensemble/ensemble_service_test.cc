// Ensembles over steps whose answers the test gives, in the test's time.
#include "ensemble/ensemble_service.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ensemble/scripted_steps_test.h"

namespace tactus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// find (rows) -> read, once for each row -> join, which gathers them; y: join's, boxes: find's.
void DeclareRows(EnsembleBench& bench, AnswerRule answer, bool join = true) {
  bench.steps.Add(
      FloatModel("find", 0, {{"in", DataType::kFp32, {4}}}, {{"rows", DataType::kFp32, {-1, 2}}}));
  bench.steps.Add(FloatModel("read", 8, {{"in", DataType::kFp32, {-1, 2}}},
                             {{"out", DataType::kFp32, {-1, 3}}}));
  bench.steps.Add(
      FloatModel("join", 0, {{"in", DataType::kFp32, {-1, 3}}}, {{"out", DataType::kFp32, {-1}}}));
  PipelineDeclaration rows;
  rows.deadlines = DeadlineRule::kRedivide;
  rows.answer = answer;
  rows.stages = {{.name = "find",
                  .model = "find",
                  .demultiply = true,
                  .demultiply_most = 4,
                  .inputs = {{"in", "x"}},
                  .outputs = {{"rows", "boxes"}}},
                 {.name = "read",
                  .model = "read",
                  .inputs = {{"in", "boxes"}},
                  .outputs = {{"out", "texts"}}}};
  ModelSpec model =
      FloatModel("rows", 0, {{"x", DataType::kFp32, {4}}}, {{"boxes", DataType::kFp32, {-1, 2}}});
  if (join) {
    rows.stages.push_back({.name = "join",
                           .model = "join",
                           .gather = "find",
                           .inputs = {{"in", "texts"}},
                           .outputs = {{"out", "y"}}});
    model.outputs.push_back({"y", DataType::kFp32, {-1}});
  } else {
    model.outputs.push_back({"texts", DataType::kFp32, {-1, 3}});
  }
  model.slo = Millis(100);
  bench.Declare(std::move(model), std::move(rows));
  bench.service->Open({"*"});
}

// Without this it loaded, and each request with so many rows failed.
TEST(EnsembleService, MoreRunsThanMayWaitAreRefusedAtTheLoad) {
  for (const int most : {3, 4}) {
    EnsembleOptions options;
    options.most_runs = most;
    EnsembleBench bench(std::move(options));
    DeclareRows(bench, AnswerRule::kAll);
    const auto found = bench.service->Find("rows", -1);
    EXPECT_EQ(found.has_value(), most == 4);
    if (found) continue;
    EXPECT_THAT(found.error().message, HasSubstr("step 'read': one request may run it 4 times, "
                                                 "and 3 may wait for a model: give a smaller "
                                                 "demultiply_most"));
  }
}

// Bytes that a step has answered must reach the next step, and the client, where they lie.
TEST(EnsembleService, PassesViewsFromStepToStep) {
  EnsembleBench bench;
  DeclareChain(bench);
  auto& asked = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  const auto& first = bench.steps.Of("first");
  EXPECT_FALSE(first.call.begun) << "it is refused like any new call";
  EXPECT_EQ(first.call.inputs[0].name, "in");
  EXPECT_EQ(first.call.inputs[0].shape, (Shape{1, 4}));
  bench.steps.Answer(first.id, {{{1, 4}, {5, 6, 7, 8}}});
  const auto& second = bench.steps.Of("second");
  EXPECT_EQ(static_cast<const void*>(second.call.inputs[0].data.data()),
            static_cast<const void*>((*bench.steps.last_storage)[0].data()));
  EXPECT_EQ(second.call.keepalive, bench.steps.last_storage);
  EXPECT_TRUE(second.call.begun);
  bench.steps.Answer(second.id, {{{1, 4}, {9, 9, 9, 9}}});
  ASSERT_TRUE(asked.reply().status) << asked.reply().status.error().message;
  EXPECT_EQ(asked.reply().outputs[0].name, "y");
  EXPECT_EQ(asked.reply().outputs[0].shape, (Shape{1, 4}));
  EXPECT_EQ(static_cast<const void*>(asked.reply().outputs[0].parts[0].data()),
            static_cast<const void*>((*bench.steps.last_storage)[0].data()));
  EXPECT_EQ(asked.reply().served.outcome, Outcome::kMet);
  EXPECT_EQ(asked.reply().served.queue_us, 200);
  EXPECT_EQ(asked.reply().served.execution_us, 400);
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

TEST(EnsembleService, ACallWhoseTimeWasOverWhenItHadComeStartsNoStep) {
  EnsembleBench bench;
  DeclareChain(bench);
  bench.since_header = Millis(10);
  auto& asked = bench.Call("chain", {1, 4}, {1, 2, 3, 4}, Millis(10));
  ASSERT_EQ(asked.replies.size(), 1u);
  EXPECT_EQ(asked.reply().status.error().code, ErrorCode::kDeadlineExceeded);
  bench.Call("chain", {1, 4}, {1, 2, 3, 4}, Millis(11));
  EXPECT_EQ(bench.steps.held.size(), 1u);
}

// A call without limits of its own must still end by the ensemble's SLO: its steps share it.
TEST(EnsembleService, StepsShareTheTimeThatIsLeft) {
  EnsembleBench bench;
  DeclareChain(bench);
  bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  // Nothing is known of the steps: half of the time each.
  EXPECT_EQ(bench.steps.Of("first").call.limit.shortest(), Millis(50));
  EXPECT_TRUE(bench.steps.Of("first").call.due_by_limit) << "its model promises what it likes";
  bench.Pass(Millis(30));
  bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
  EXPECT_EQ(bench.steps.Of("second").call.limit.shortest(), Millis(70));
  // A client's limit is shorter than the SLO.
  bench.Call("chain", {1, 4}, {1, 2, 3, 4}, Millis(20));
  EXPECT_EQ(bench.steps.Of("first").call.limit.shortest(), Millis(10));
}

// What they need, not what they waited: the wait is the whole server's, and would come back as a
// reason to give them no time.
TEST(EnsembleService, LearnsWhatItsStepsNeed) {
  EnsembleBench bench;
  DeclareChain(bench);
  for (int i = 0; i < 40; ++i) {
    bench.Call("chain", {1, 4}, {1, 2, 3, 4});
    bench.Pass(Millis(20));
    bench.steps.queue_us = 5'000;
    bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
    bench.Pass(Millis(60));
    bench.steps.queue_us = 15'000;
    bench.steps.Answer(bench.steps.Of("second").id, {{{1, 4}, {5, 6, 7, 8}}});
  }
  bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(bench.steps.Of("first").call.limit.shortest(), Millis(25));
}

TEST(EnsembleService, SaysWhichStepWasRefusedAndWhen) {
  EnsembleBench bench;
  DeclareChain(bench);
  auto& asked = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  bench.Pass(Millis(40));
  bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
  bench.Pass(Millis(55));
  bench.steps.End(bench.steps.Of("second").id, ErrorCode::kDeadlineExceeded,
                  "the deadline could not be met", Outcome::kExpired);
  ASSERT_FALSE(asked.reply().status);
  EXPECT_EQ(asked.reply().status.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(
      asked.reply().status.error().message,
      AllOf(
          HasSubstr("ensemble 'chain', step 'second'"),
          HasSubstr("95.000 ms after the call came, which had 100.000 ms: the step had its first "),
          HasSubstr(" at best")));
  EXPECT_EQ(asked.reply().served.outcome, Outcome::kExpired);
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

// A step that is answered when not even the quickest run of the next fits: no use to start it.
TEST(EnsembleService, GivesUpWithTheArithmetic) {
  EnsembleOptions options;
  options.cost_of = [](const ModelSpec& model) {
    return StageCost{
        .model = ModelId{0}, .name = model.name, .quickest = Millis(15), .by_batch = {Millis(20)}};
  };
  EnsembleBench bench(std::move(options));
  DeclareChain(bench);
  auto& asked = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  bench.Pass(Millis(90));
  bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
  EXPECT_EQ(bench.steps.CountOf("second"), 0u);
  EXPECT_THAT(
      asked.reply().status.error().message,
      AllOf(HasSubstr("given up 90.000 ms after the call came"),
            HasSubstr("of its 100.000 ms 10.000 are left"), HasSubstr("30.000 ms at best")));
}

TEST(EnsembleService, EndsACallWhoseStepFails) {
  EnsembleBench bench;
  DeclareChain(bench);
  auto& failed = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  bench.steps.End(bench.steps.Of("first").id, ErrorCode::kInternal, "a NaN", Outcome::kError);
  EXPECT_THAT(failed.reply().status.error().message, HasSubstr("step 'first': a NaN"));
  EXPECT_EQ(failed.reply().served.outcome, Outcome::kError);

  bench.steps.refuses = [](const ModelSpec& model) { return model.name == "second"; };
  auto& refused = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
  EXPECT_EQ(refused.reply().status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.reply().status.error().message, HasSubstr("step 'second'"));
  bench.steps.refuses = {};

  // Unloaded in mid-flight.
  auto& unloaded = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  bench.steps.models.erase("second");
  bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
  EXPECT_THAT(unloaded.reply().status.error().message, HasSubstr("step 'second'"));

  // An answer that is not what the model promised.
  bench.steps.Add(FloatModel("second", 8, {Row4("in")}, {Row4("out")}));
  auto& misshapen = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("first").id, {{{1, 5}, {5, 6, 7, 8, 9}}});
  EXPECT_THAT(misshapen.reply().status.error().message,
              HasSubstr("input 'in' of model 'second' takes [-1,4], but the call has [1,5]"));
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

// Work on what is lost behind the first step is in vain; a client hears at once, and why.
TEST(EnsembleService, RefusesAsItComesWhatWouldBeLostLate) {
  EnsembleBench bench;
  DeclareChain(bench, DeadlineRule::kSpare);
  for (int i = 0; i < 5; ++i) {
    bench.Call("chain", {1, 4}, {1, 2, 3, 4});
    bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
    bench.steps.End(bench.steps.Of("second").id, ErrorCode::kResourceExhausted, "queue full",
                    Outcome::kShed);
  }
  std::vector<std::reference_wrapper<EnsembleBench::Asked>> held;
  for (int i = 0; i < 2; ++i) held.emplace_back(bench.Call("chain", {1, 4}, {1, 2, 3, 4}));
  auto& refused = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(bench.steps.CountOf("first"), 2u);
  EXPECT_EQ(refused.reply().status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.reply().status.error().message,
              AllOf(HasSubstr("ensemble 'chain': refused as it came"), HasSubstr("longer slo_ms")));
  EXPECT_EQ(refused.reply().served.outcome, Outcome::kShed);
  for (EnsembleBench::Asked& asked : held) {
    bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
    bench.steps.Answer(bench.steps.Of("second").id, {{{1, 4}, {5, 6, 7, 8}}});
    EXPECT_TRUE(asked.reply().status);
  }
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

TEST(EnsembleService, CancelReachesTheStepsThatRun) {
  for (const bool runs_on : {false, true}) {
    SCOPED_TRACE(runs_on ? "the step runs" : "the step waits");
    EnsembleBench bench;
    bench.steps.runs_on = runs_on;
    DeclareChain(bench);
    auto& asked = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
    const CallId step = bench.steps.Of("first").id;
    bench.service->Cancel(asked.id);
    EXPECT_EQ(asked.reply().status.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(asked.reply().served.outcome, Outcome::kCancelled);
    bench.service->Cancel(asked.id);  // twice is once
    if (runs_on) {
      EXPECT_TRUE(bench.steps.Of("first").cancelled);
      EXPECT_EQ(bench.service->unfinished(), 2u);  // the Flow's request and the step's reply
      bench.steps.Answer(step, {{{1, 4}, {5, 6, 7, 8}}});
    }
    EXPECT_EQ(bench.steps.held.size(), 0u);
    EXPECT_EQ(bench.service->unfinished(), 0u);
  }
}

TEST(EnsembleService, RunsOncePerRowAndGathers) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kAll);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("find").id, {{{3, 2}, {10, 11, 20, 21, 30, 31}}});
  ASSERT_EQ(bench.steps.CountOf("read"), 3u);
  const auto* found = (*bench.steps.last_storage)[0].data();
  std::vector<CallId> reads;
  for (std::size_t r = 0; r < 3; ++r) {
    const InferCall& call = bench.steps.held[r].call;
    EXPECT_EQ(call.inputs[0].shape, (Shape{1, 2}));
    EXPECT_EQ(static_cast<const void*>(call.inputs[0].data.data()),
              static_cast<const void*>(found + 2 * r));
    reads.push_back(bench.steps.held[r].id);
  }
  // Answered in another order than asked.
  bench.steps.Answer(reads[2], {{{1, 3}, {7, 8, 9}}});
  bench.steps.Answer(reads[0], {{{1, 3}, {1, 2, 3}}});
  EXPECT_EQ(bench.steps.CountOf("join"), 0u);
  bench.steps.Answer(reads[1], {{{1, 3}, {4, 5, 6}}});
  const InferCall& join = bench.steps.Of("join").call;
  EXPECT_EQ(join.inputs[0].shape, (Shape{3, 3}));
  const std::vector<std::byte> joined(join.inputs[0].data.begin(), join.inputs[0].data.end());
  EXPECT_THAT(FloatsIn({"", DataType::kFp32, {}, {joined}}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  bench.steps.Answer(bench.steps.Of("join").id, {{{1}, {42}}});
  ASSERT_TRUE(asked.reply().status) << asked.reply().status.error().message;
  EXPECT_THAT(FloatsIn(asked.reply().outputs[0]), ElementsAre(10, 11, 20, 21, 30, 31));
  EXPECT_THAT(FloatsIn(asked.reply().outputs[1]), ElementsAre(42));
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

// Without this, rows that were under way when the files were loaded anew were left out.
TEST(EnsembleService, AStepThatBatchesAgainTakesTheRowsThatAreUnderWay) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kEach, false);
  const ModelSpec batching = *bench.steps.models["read"];
  ModelSpec ended = batching;
  ended.max_batch = 0;
  ended.batch_origin = BatchOrigin::kDisproved;
  bench.steps.Add(ended);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  bench.steps.Add(batching);
  bench.steps.Answer(bench.steps.Of("find").id, {{{2, 2}, {10, 11, 20, 21}}});
  ASSERT_EQ(bench.steps.CountOf("read"), 2u);
  for (int i = 0; i < 2; ++i) {
    bench.steps.Answer(bench.steps.held.front().id, {{{1, 3}, {1, 2, 3}}});
  }
  EXPECT_EQ(asked.reply().outputs[1].shape, (Shape{2, 3}));
}

// The runtime refuses a model that was replaced between Find and Infer.
TEST(EnsembleService, AStepWhoseModelWasReplacedJustNowIsSentAgain) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kEach, false);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  int refused = 0;
  bench.steps.refuses = [&](const ModelSpec& model) {
    if (model.name != "read" || refused > 0) return false;
    ++refused;
    bench.steps.Add(model);
    return true;
  };
  bench.steps.refusal = ErrorCode::kUnavailable;
  bench.steps.Answer(bench.steps.Of("find").id, {{{2, 2}, {10, 11, 20, 21}}});
  EXPECT_EQ(refused, 1);
  ASSERT_EQ(bench.steps.CountOf("read"), 2u);
  for (int i = 0; i < 2; ++i) {
    bench.steps.Answer(bench.steps.held.front().id, {{{1, 3}, {1, 2, 3}}});
  }
  EXPECT_EQ(asked.reply().outputs[1].shape, (Shape{2, 3}));
}

// Else it would depend on the values of an answer whether a call of two rows is one.
TEST(EnsembleService, AStepThatOthersRunForRowByRowTakesOneRow) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kAll, false);
  bench.steps.Add(FloatModel("find", 8, {{"in", DataType::kFp32, {-1, 4}}},
                             {{"rows", DataType::kFp32, {-1, -1, 2}}}));
  PipelineDeclaration two;
  two.stages = {{.name = "find",
                 .model = "find",
                 .demultiply = true,
                 .demultiply_most = 4,
                 .inputs = {{"in", "x"}},
                 .outputs = {{"rows", "boxes"}}},
                {.name = "read",
                 .model = "read",
                 .inputs = {{"in", "boxes"}},
                 .outputs = {{"out", "texts"}}}};
  bench.Declare(FloatModel("two", 0, {{"x", DataType::kFp32, {-1, 4}}},
                           {{"texts", DataType::kFp32, {-1, 3}}}),
                std::move(two));
  bench.service->Open({"*"});
  auto& asked = bench.Call("two", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  ASSERT_FALSE(asked.reply().status);
  EXPECT_THAT(asked.reply().status.error().message,
              HasSubstr("input 'in' of model 'find' has 2 rows: a step that other steps run for "
                        "row by row takes one row at a time"));
  EXPECT_TRUE(bench.steps.held.empty());
}

TEST(EnsembleService, TellsWhoTracesACallWhenItsStepsRan) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kAll, false);
  InferCall call;
  call.model = *bench.service->Find("rows", -1);
  const auto bytes = Floats({1, 2, 3, 4});
  call.inputs = {{"x", DataType::kFp32, {4}, BytesIn(*bytes)}};
  call.keepalive = bytes;
  call.received = bench.now;
  call.step_runs = std::make_shared<std::vector<StepRun>>();
  const auto runs = call.step_runs;
  std::size_t by_the_reply = 0;
  call.reply = [&](InferReply&&) { by_the_reply = runs->size(); };
  bench.service->Infer(std::move(call));
  bench.Pass(Millis(1));
  bench.steps.Answer(bench.steps.Of("find").id, {{{2, 2}, {10, 11, 20, 21}}});
  for (int i = 0; i < 2; ++i) {
    bench.Pass(Millis(1));
    bench.steps.Answer(bench.steps.held.front().id, {{{1, 3}, {1, 2, 3}}});
  }
  ASSERT_EQ(by_the_reply, 3u);
  const auto at = [&](int ms) { return bench.now - std::chrono::milliseconds(3 - ms); };
  EXPECT_EQ((*runs)[0].step, "find");
  EXPECT_EQ((*runs)[0].began, at(0));
  EXPECT_EQ((*runs)[0].ended, at(1));
  EXPECT_EQ((*runs)[2].step, "read");
  EXPECT_EQ((*runs)[2].began, at(1));
  EXPECT_EQ((*runs)[2].ended, at(3));
  EXPECT_EQ((*runs)[2].batch, 2);
  EXPECT_EQ((*runs)[2].outcome, Outcome::kMet);
}

TEST(EnsembleService, NoRowsAreAnAnswerAndTooManyAreCut) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kAll, false);
  auto& none = bench.Call("rows", {4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("find").id, {{{0, 2}, {}}});
  ASSERT_TRUE(none.reply().status) << none.reply().status.error().message;
  EXPECT_EQ(none.reply().outputs[0].shape, (Shape{0, 2}));
  EXPECT_EQ(none.reply().outputs[1].shape, (Shape{0, 3}));

  auto& many = bench.Call("rows", {4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("find").id, {{{10'000, 2}, std::vector<float>(20'000)}});
  EXPECT_EQ(bench.steps.CountOf("read"), 4u);
  while (!bench.steps.held.empty()) {
    bench.steps.Answer(bench.steps.held.front().id, {{{1, 3}, {1, 2, 3}}});
  }
  EXPECT_EQ(many.reply().outputs[1].shape, (Shape{4, 3}));
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

// One row too many or too late must not cost the others their answer.
TEST(EnsembleService, LeavesOutRowsThatAreLate) {
  EnsembleBench bench;
  bench.steps.runs_on = true;
  DeclareRows(bench, AnswerRule::kEach, false);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("find").id, {{{3, 2}, {10, 11, 20, 21, 30, 31}}});
  std::vector<CallId> reads;
  for (const auto& each : bench.steps.held) reads.push_back(each.id);
  bench.steps.Answer(reads[0], {{{1, 3}, {1, 2, 3}}});
  bench.steps.End(reads[1], ErrorCode::kUnavailable, "shed", Outcome::kShed);
  EXPECT_FALSE(asked.answered());
  bench.Pass(Millis(99));
  EXPECT_FALSE(asked.answered());
  bench.Pass(Millis(1));
  ASSERT_TRUE(asked.reply().status) << asked.reply().status.error().message;
  EXPECT_EQ(asked.reply().outputs[1].shape, (Shape{1, 3}));
  EXPECT_THAT(FloatsIn(asked.reply().outputs[1]), ElementsAre(1, 2, 3));
  EXPECT_EQ(asked.reply().served.outcome, Outcome::kMet);
  EXPECT_TRUE(bench.steps.Of("read").cancelled);
  bench.steps.Answer(reads[2], {{{1, 3}, {7, 8, 9}}});  // nobody hears of it
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

// What waited for a row's deadline would otherwise stay until then, for each row of each call.
TEST(EnsembleService, KeepsNoDeadlineOfARowThatIsAnswered) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kEach, false);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("find").id, {{{2, 2}, {10, 11, 20, 21}}});
  EXPECT_GT(bench.service->unfinished(), 4u);
  while (!bench.steps.held.empty()) {
    bench.steps.Answer(bench.steps.held.front().id, {{{1, 3}, {1, 2, 3}}});
  }
  EXPECT_TRUE(asked.reply().status);
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

TEST(EnsembleService, OneLostRowEndsACallThatNeedsAll) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kAll);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("find").id, {{{3, 2}, {10, 11, 20, 21, 30, 31}}});
  bench.steps.End(bench.steps.held[1].id, ErrorCode::kUnavailable, "shed", Outcome::kShed);
  EXPECT_THAT(asked.reply().status.error().message, HasSubstr("step 'read': shed"));
  EXPECT_EQ(bench.steps.held.size(), 0u);  // the others were cancelled
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

TEST(EnsembleService, TheErrorIsThatOfTheRowThatFailedAndNotOfThoseThatItTookAlong) {
  EnsembleBench bench;
  DeclareRows(bench, AnswerRule::kAll);
  auto& asked = bench.Call("rows", {4}, {1, 2, 3, 4});
  bench.steps.models.erase("read");
  bench.steps.Answer(bench.steps.Of("find").id, {{{3, 2}, {10, 11, 20, 21, 30, 31}}});
  EXPECT_THAT(asked.reply().status.error().message,
              HasSubstr("step 'read': the repository has no model"));
  EXPECT_EQ(asked.reply().served.outcome, Outcome::kError) << "and not cancelled";
  EXPECT_EQ(bench.service->unfinished(), 0u);
}

TEST(EnsembleService, RefusesModelsThatDoNotFit) {
  EnsembleBench bench;
  DeclareChain(bench);
  bench.steps.Add(FloatModel("second", 8, {{"in", DataType::kFp32, {-1, 5}}}, {Row4("out")}));
  EXPECT_THAT(bench.service->Find("chain", -1).error().message,
              HasSubstr("'between' comes as [-1,4], which is no [-1,5]"));
  bench.steps.Add(FloatModel("second", 8, {Row4("in")}, {Row4("out")}));
  EXPECT_TRUE(bench.service->Find("chain", -1));
}

TEST(EnsembleService, AStepLeavesOutWhatNothingIsPassedTo) {
  EnsembleBench bench;
  DeclareChain(bench);
  ModelSpec second = FloatModel("second", 8, {Row4("scale"), Row4("in")}, {Row4("out")});
  second.inputs[0].optional = true;
  bench.steps.Add(second);
  bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  bench.steps.Answer(bench.steps.Of("first").id, {{{1, 4}, {5, 6, 7, 8}}});
  const auto& inputs = bench.steps.Of("second").call.inputs;
  EXPECT_TRUE(inputs.at(0).absent);
  EXPECT_EQ(inputs.at(0).name, "scale");
  EXPECT_FALSE(inputs.at(1).absent);
  EXPECT_EQ(inputs.at(1).shape, (Shape{1, 4}));
  // One that became required is no longer the same model.
  second.inputs[0].optional = false;
  bench.steps.Add(second);
  EXPECT_THAT(bench.service->Find("chain", -1).error().message,
              HasSubstr("nothing is passed to input 'scale'"));
}

TEST(EnsembleService, GivesItsPriorityToItsSteps) {
  EnsembleBench bench;
  bench.steps.Add(FloatModel("only", 8, {Row4("in")}, {Row4("out")}));
  ModelSpec model = FloatModel("one", 4, {Row4("x")}, {Row4("y")});
  model.slo = Millis(100);
  model.priority = 3;
  for (const bool stated : {false, true}) {
    if (stated) model.parameters["priority"] = "3";
    model.config = stated ? "with a priority" : "without";
    PipelineDeclaration one;
    one.stages = {
        {.name = "only", .model = "only", .inputs = {{"in", "x"}}, .outputs = {{"out", "y"}}}};
    bench.Declare(model, std::move(one));
    bench.service->Open({"*"});
    bench.Call("one", {1, 4}, {1, 2, 3, 4});
    EXPECT_EQ(bench.steps.Of("only").call.priority, stated ? 3u : 0u);
    bench.steps.Answer(bench.steps.Of("only").id, {{{1, 4}, {1, 2, 3, 4}}});
  }
}

TEST(EnsembleService, CountsItsCalls) {
  EnsembleOptions options;
  options.most_calls = 1;
  EnsembleBench bench(std::move(options));
  DeclareChain(bench);
  auto& answered = bench.Call("chain", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto& refused = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(refused.reply().status.error().code, ErrorCode::kResourceExhausted);
  bench.Pass(Millis(10));
  bench.steps.Answer(bench.steps.Of("first").id, {{{2, 4}, std::vector<float>(8)}});
  bench.steps.Answer(bench.steps.Of("second").id, {{{2, 4}, std::vector<float>(8)}});
  EXPECT_TRUE(answered.reply().status);
  auto& failed = bench.Call("chain", {1, 4}, {1, 2, 3, 4});
  bench.service->Cancel(failed.id);
  const auto statistics = bench.service->Statistics("chain", -1);
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->at(0).inference_count, 2u);
  EXPECT_EQ(statistics->at(0).execution_count, 1u);
  EXPECT_EQ(statistics->at(0).success.count, 1u);
  EXPECT_EQ(statistics->at(0).success.ns, 10'000'000u);
  EXPECT_EQ(statistics->at(0).queue.ns, 200'000u);
  EXPECT_EQ(statistics->at(0).compute_infer.ns, 400'000u);
  EXPECT_EQ(statistics->at(0).fail.count, 1u);
}

}  // namespace
}  // namespace tactus
