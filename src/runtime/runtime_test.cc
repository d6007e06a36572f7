// One call from Infer to its reply, and every way in which it can end.
#include "runtime/runtime.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/cpu_affinity.h"
#include "platform/memory_reserve.h"
#include "runtime/harness_test.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;
using ::testing::SizeIs;

testing::HarnessOptions WithProfile(double ms = 0.001) {
  testing::HarnessOptions options;
  options.profile = FlatProfile({"a", "b", "c"}, 8, ms);
  return options;
}

TEST(Runtime, AnswersACallWithItsModelsOutput) {
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  const InferReply& reply = h.replies.Await(h.Send("a", {1, 2}, {1, 2}));
  ASSERT_TRUE(reply.status) << reply.status.error().message;
  ASSERT_THAT(reply.outputs, SizeIs(1));
  EXPECT_EQ(reply.outputs[0].name, "y");
  EXPECT_THAT(reply.outputs[0].shape, ElementsAre(1, 2));
  EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(1, 2));
  EXPECT_EQ(reply.served.outcome, Outcome::kMet);
  EXPECT_EQ(reply.served.exit, "2");
  EXPECT_EQ(reply.served.batch, 1);
  EXPECT_EQ(reply.model->name, "a");
}

TEST(Runtime, AnswersACallOfSeveralRowsOnceAndInOrder) {
  // Eleven rows and batches of at most four: the answer comes from three batches.
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a", 4)));
  std::vector<float> values(22);
  for (int i = 0; i < 22; ++i) values[i] = static_cast<float>(i);
  const std::size_t call = h.Send("a", values, {11, 2});
  const InferReply& reply = h.replies.Await(call);
  ASSERT_TRUE(reply.status) << reply.status.error().message;
  EXPECT_THAT(reply.outputs[0].shape, ElementsAre(11, 2));
  EXPECT_EQ(Floats(reply.outputs[0]), values);
  h.runtime->Stop(Seconds(1));
  EXPECT_EQ(h.replies.times(call), 1u);
  std::size_t rows = 0;
  for (const auto& batch : h.engine.seen()) {
    EXPECT_LE(batch.rows, 4u);
    rows += batch.rows;
  }
  EXPECT_EQ(rows, 11u);
}

// A lane that ran out of work would otherwise keep its last batch's output, however large.
TEST(Runtime, LetsGoOfAnAnswerThatNobodyHolds) {
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  InferCall call;
  call.model = *h.runtime->Find("a", -1);
  const auto values = std::make_shared<std::vector<float>>(2, 1.0f);
  call.inputs = {{"x", DataType::kFp32, {1, 2}, std::as_bytes(std::span(*values))}};
  call.keepalive = values;
  call.received = std::chrono::steady_clock::now();
  std::weak_ptr<const void> storage;
  std::atomic<bool> answered{false};
  call.reply = [&](InferReply&& reply) {
    storage = reply.storage;
    answered = reply.status.has_value();
    answered.notify_all();
  };
  h.runtime->Infer(std::move(call));
  answered.wait(false);
  // Soon after the reply; a test that waits for ever is ended by its time limit.
  while (!storage.expired()) std::this_thread::yield();
}

TEST(Runtime, RefusesAModelItDoesNotKnowAndAnInputItCannotRead) {
  Harness h(WithProfile());
  h.runtime->Start();
  EXPECT_EQ(h.runtime->Find("a", -1).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  EXPECT_EQ(h.runtime->Find("a", 7).error().code, ErrorCode::kNotFound);
  const InferReply& reply = h.replies.Await(h.Send("a", {1, 2, 3}, {1, 2}));
  ASSERT_FALSE(reply.status);
  EXPECT_EQ(reply.status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(reply.status.error().message, HasSubstr("input 'x'"));
  EXPECT_EQ(h.runtime->calls(), 0u);
}

TEST(Runtime, ReportsTheEnginesErrorToEveryCallOfTheBatch) {
  Harness h(WithProfile());
  h.engine.verdict = [](const std::string&, const BatchJob&) { return Internal("out of luck"); };
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  const InferReply& reply = h.replies.Await(h.Send("a", {1, 2, 3, 4}, {2, 2}));
  ASSERT_FALSE(reply.status);
  EXPECT_EQ(reply.status.error().message, "out of luck");
  EXPECT_EQ(reply.served.outcome, Outcome::kError);
}

TEST(Runtime, RefusesAtOnceWhatCannotMeetItsDeadline) {
  // The quickest run takes 50 ms by the profile; the client gives 1 ms. The engine is never asked.
  Harness h(WithProfile(50));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  const InferReply& reply = h.replies.Await(h.Send("a", {1, 2}, {1, 2}, Millis(1)));
  ASSERT_FALSE(reply.status);
  EXPECT_EQ(reply.status.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(reply.served.outcome, Outcome::kExpired);
  EXPECT_THAT(reply.status.error().message,
              AllOf(HasSubstr("could not be met by model 'a' ("),
                    HasSubstr(" after it came, of its 1.000; alone it takes 50.")));
  EXPECT_THAT(h.engine.seen(), SizeIs(0));
}

// Loaded, it would refuse every call of its clients one by one.
TEST(Runtime, RefusesToLoadAModelWhoseSloNoBatchCanMeet) {
  Harness h(WithProfile(50));
  h.runtime->Start();
  const Status served = h.runtime->Serve(FloatModel("a", 8, {2}, Millis(20)));
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(
      served.error().message,
      HasSubstr("model 'a': no batch can meet its SLO of 20 ms: the quickest (exit 1, batch "
                "1) takes 50.000 ms at best"));
  EXPECT_TRUE(h.runtime->Serve(FloatModel("a", 8, {2}, Millis(51))));
}

// The gate is shut until both batches stand before it.
TEST(Runtime, RunsAsManyBatchesAtOnceAsALaneHasSlots) {
  testing::HarnessOptions options;
  options.runtime.slots = 2;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  ASSERT_TRUE(h.runtime->Serve(FloatModel("b")));
  h.engine.batches.Close();
  h.Send("a", {1, 2}, {1, 2});
  h.Send("b", {3, 4}, {1, 2});
  h.engine.batches.AwaitWaiting(2);
  h.engine.batches.Open();
  EXPECT_TRUE(h.replies.Await(0).status);
  EXPECT_TRUE(h.replies.Await(1).status);
}

// Without this a priority would only order the requests of one model.
TEST(Runtime, APriorityMeansTheSameForTheRequestsOfAllModels) {
  struct Case {
    const char* about;
    std::uint32_t of_a, of_b;
    std::vector<std::string> order;
  };
  const Case cases[] = {{"the models' own", 0, 0, {"a", "b", "a"}},
                        {"both requests state one", 1, 2, {"a", "a", "b"}},
                        {"one falls below the other model's", 0, 3, {"a", "a", "b"}},
                        {"as the models have it, said again", 2, 1, {"a", "b", "a"}}};
  for (const Case& c : cases) {
    testing::HarnessOptions options;
    options.policy = "temporal:form=0";
    options.profile = testing::FlatProfile({"a", "b"}, 8, 1);
    Harness h(std::move(options));
    h.runtime->Start();
    ModelSpec a = FloatModel("a"), b = FloatModel("b");
    a.priority = 2;
    b.priority = 1;
    ASSERT_TRUE(h.runtime->Serve(a));
    ASSERT_TRUE(h.runtime->Serve(b));
    h.engine.batches.Close();
    h.Send("a", {1, 2}, {1, 2});
    h.engine.batches.AwaitWaiting(1);  // has the lane; the next two wait for it
    h.SendTo(*h.runtime->Find("a", -1), {3, 4}, {1, 2}, {}, nullptr, c.of_a);
    h.SendTo(*h.runtime->Find("b", -1), {5, 6}, {1, 2}, {}, nullptr, c.of_b);
    h.engine.batches.Open();
    h.replies.AwaitAll();
    std::vector<std::string> order;
    for (const auto& seen : h.engine.seen()) order.push_back(seen.model);
    EXPECT_EQ(order, c.order) << c.about;
  }
}

TEST(Runtime, RefusesAModelWhoseEngineHasFewerSlotsThanItsLanes) {
  testing::HarnessOptions options;
  options.runtime.slots = 3;
  Harness h(std::move(options));
  h.engine.max_slots = 2;
  h.runtime->Start();
  const Status served = h.runtime->Serve(FloatModel("a"));
  ASSERT_FALSE(served);
  EXPECT_THAT(served.error().message, HasSubstr("fake runs 2 batches at once in a lane, not 3"));
  EXPECT_EQ(h.engine.loaded(), 0u);
}

TEST(Runtime, GivesUpWaitingRequestsWhoseDeadlinePasses) {
  // The lane is taken by a batch that does not end; the second call's deadline comes meanwhile.
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  h.engine.batches.Close();
  const std::size_t first = h.Send("a", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const InferReply& reply = h.replies.Await(h.Send("a", {3, 4}, {1, 2}, Millis(5)));
  ASSERT_FALSE(reply.status);
  EXPECT_EQ(reply.status.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(h.replies.answered(first));
  h.engine.batches.Open();
  EXPECT_TRUE(h.replies.Await(first).status);
}

TEST(Runtime, ADeadlineOfTheModelHoldsWithoutOneOfTheClientButNotForAStepOfAnEnsemble) {
  // Another model's batch has the lane, and does not end.
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("b")));
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a", 8, {2}, Millis(5))));
  h.engine.batches.Close();
  const std::size_t first = h.Send("b", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const InferReply& reply = h.replies.Await(h.Send("a", {1, 2}, {1, 2}));
  ASSERT_FALSE(reply.status);
  EXPECT_EQ(reply.status.error().code, ErrorCode::kDeadlineExceeded);
  // Its ensemble says when a step is due.
  const std::size_t step =
      h.SendTo(*h.runtime->Find("a", -1), {1, 2}, {1, 2}, Seconds(60), nullptr, 0, true);
  EXPECT_FALSE(h.replies.answered(step));
  h.engine.batches.Open();
  EXPECT_TRUE(h.replies.Await(first).status);
  EXPECT_TRUE(h.replies.Await(step).status);
}

TEST(Runtime, ACallWhoseTimeWasOverWhenItCameIsRefusedAndNotTheMostUrgent) {
  // Even where every request is computed however late.
  testing::HarnessOptions options = WithProfile();
  options.runtime.expiry = Expiry::kNever;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  for (const Duration limit : {Duration{}, Millis(-5)}) {
    const InferReply& reply = h.replies.Await(h.Send("a", {1, 2}, {1, 2}, limit));
    ASSERT_FALSE(reply.status);
    EXPECT_EQ(reply.status.error().code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(reply.served.outcome, Outcome::kExpired);
    EXPECT_EQ(reply.served.batch, 0);
  }
  // It was over by the time that the last of its bytes had come.
  h.since_header = Millis(20);
  const InferReply& slow = h.replies.Await(h.Send("a", {1, 2}, {1, 2}, Millis(20)));
  ASSERT_FALSE(slow.status);
  EXPECT_EQ(slow.status.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(h.replies.Await(h.Send("a", {1, 2}, {1, 2}, Seconds(60))).status);
}

TEST(Runtime, CancelFreesThePlaceInTheQueue) {
  testing::HarnessOptions options = WithProfile();
  options.runtime.queue_capacity = 1;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  h.engine.batches.Close();
  const std::size_t running = h.Send("a", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  CallId id = 0;
  const std::size_t waiting = h.Send("a", {3, 4}, {1, 2}, {}, &id);
  // The queue holds one: a third is refused until the second has left.
  const InferReply& refused = h.replies.Await(h.Send("a", {5, 6}, {1, 2}));
  EXPECT_EQ(refused.status.error().code, ErrorCode::kResourceExhausted);
  h.runtime->Cancel(id);
  EXPECT_EQ(h.replies.Await(waiting).status.error().code, ErrorCode::kCancelled);
  const std::size_t third = h.Send("a", {5, 6}, {1, 2});
  h.engine.batches.Open();
  EXPECT_TRUE(h.replies.Await(running).status);
  EXPECT_TRUE(h.replies.Await(third).status);
  h.runtime->Cancel(id);  // long answered: nothing happens
  EXPECT_EQ(h.replies.times(waiting), 1u);
}

TEST(Runtime, StopsABatchWhenNobodyWaitsForItAnyMore) {
  Harness h(WithProfile());
  h.engine.terminates = true;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  h.engine.batches.Close();
  CallId id = 0;
  const std::size_t call = h.Send("a", {1, 2}, {1, 2}, {}, &id);
  h.engine.batches.AwaitWaiting(1);
  h.runtime->Cancel(id);
  while (h.engine.terminated() == 0) std::this_thread::yield();
  // The engine may still read the inputs, so the call ends with its batch.
  EXPECT_FALSE(h.replies.answered(call));
  h.engine.batches.Open();
  EXPECT_EQ(h.replies.Await(call).status.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(h.replies.Await(call).served.outcome, Outcome::kCancelled);
}

TEST(Runtime, AdmitsAllRowsOfACallOrNone) {
  testing::HarnessOptions options = WithProfile();
  options.runtime.queue_capacity = 3;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  h.engine.batches.Close();
  h.Send("a", {0, 0}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t two = h.Send("a", {1, 1, 2, 2}, {2, 2});
  const InferReply& refused = h.replies.Await(h.Send("a", {3, 3, 4, 4}, {2, 2}));
  EXPECT_EQ(refused.status.error().code, ErrorCode::kResourceExhausted);
  const std::size_t one = h.Send("a", {5, 5}, {1, 2});
  h.engine.batches.Open();
  EXPECT_THAT(Floats(h.replies.Await(two).outputs[0]), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(Floats(h.replies.Await(one).outputs[0]), ElementsAre(5, 5));
}

TEST(Runtime, NeverBatchesRequestsOfDifferentShapes) {
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a", 8, {-1})));
  h.engine.batches.Close();
  h.Send("a", {0}, {1, 1});
  h.engine.batches.AwaitWaiting(1);
  std::vector<std::size_t> calls;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t length = 1 + i % 3;
    calls.push_back(h.Send("a", std::vector<float>(length, 7), {1, length}));
  }
  h.engine.batches.Open();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const InferReply& reply = h.replies.Await(calls[i]);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_THAT(reply.outputs[0].shape, ElementsAre(1, 1 + static_cast<int>(i) % 3));
  }
}

TEST(Runtime, AModelWithoutABatchDimensionTakesWholeTensors) {
  Harness h;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("whole", 0, {3, 2})));
  const InferReply& reply = h.replies.Await(h.Send("whole", {1, 2, 3, 4, 5, 6}, {3, 2}));
  ASSERT_TRUE(reply.status) << reply.status.error().message;
  EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Runtime, BoundsTheBytesItHolds) {
  testing::HarnessOptions options = WithProfile();
  options.runtime.pending_bytes = 16;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  h.engine.batches.Close();
  const std::size_t kept = h.Send("a", {1, 2, 3, 4}, {2, 2});
  const std::size_t refused = h.Send("a", {5, 6}, {1, 2});
  EXPECT_EQ(h.replies.Await(refused).status.error().code, ErrorCode::kResourceExhausted);
  h.engine.batches.Open();
  EXPECT_TRUE(h.replies.Await(kept).status);
}

rlim_t AddressesInUse() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Without this nobody would send its calls to another server; and without the one call at a time
// that is tried, a server whose engines keep what lies idle until a run gives it back would refuse
// calls for ever.
TEST(Runtime, IsNotReadyWhileItRefusesCallsForWantOfMemory) {
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  h.engine.batches.Close();
  const std::size_t kept = h.Send("a", {1, 2}, {1, 2});
  const std::new_handler before = std::get_new_handler();
  MemoryReserve::Hold();
  std::get_new_handler()();  // an allocation failed
  std::set_new_handler(before);
  rlimit addresses{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &addresses), 0);
  const rlimit few{.rlim_cur = AddressesInUse() + MemoryReserve::kBytes / 2,
                   .rlim_max = addresses.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &few), 0);
  const bool ready = h.runtime->Ready();
  const bool model_ready = h.runtime->ModelReady("a", -1).has_value();
  const std::size_t beside = h.Send("a", {1, 2}, {1, 2});
  h.engine.batches.Open();
  const Status second = h.replies.Await(beside).status;
  const bool first_answered = h.replies.Await(kept).status.has_value();
  while (h.runtime->pending() > 0) std::this_thread::yield();
  const bool ready_to_try = h.runtime->Ready();
  const Status tried = h.replies.Await(h.Send("a", {1, 2}, {1, 2})).status;
  const bool still_short = MemoryReserve::Spent();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &addresses), 0);
  EXPECT_FALSE(ready);
  EXPECT_FALSE(model_ready);
  ASSERT_FALSE(second) << "one is tried at a time";
  EXPECT_EQ(second.error().code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(first_answered);
  EXPECT_TRUE(ready_to_try);
  EXPECT_TRUE(tried) << tried.error().message;
  EXPECT_TRUE(still_short) << "the limit was none: this test shows nothing";
  EXPECT_TRUE(h.runtime->Ready()) << "there is room again";
  EXPECT_TRUE(h.replies.Await(h.Send("a", {1, 2}, {1, 2})).status);
}

TEST(Runtime, StatisticsAddUp) {
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  for (int i = 0; i < 5; ++i) h.replies.Await(h.Send("a", {1, 2, 3, 4}, {2, 2}));
  const auto statistics = h.runtime->Statistics("a", -1);
  ASSERT_TRUE(statistics);
  ASSERT_THAT(*statistics, SizeIs(1));
  const ModelStatistics& a = (*statistics)[0];
  EXPECT_EQ(a.inference_count, 10u);
  EXPECT_EQ(a.success.count, 5u);
  EXPECT_EQ(a.fail.count, 0u);
  std::uint64_t rows = 0;
  std::uint64_t executions = 0;
  for (const auto& batch : a.batches) {
    rows += batch.batch_size * batch.compute_infer.count;
    executions += batch.compute_infer.count;
  }
  EXPECT_EQ(rows, 10u);
  EXPECT_EQ(executions, a.execution_count);
}

// What policies are told of the machine must be seen. By the profile batches take half a minute; a
// ratio is bounded.
TEST(Runtime, SaysWhatBatchesCountAsBesideTheProfile) {
  testing::HarnessOptions options;
  options.profile = FlatProfile({"a"}, 8, 15'000);
  options.runtime.follow.on = true;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  const auto ratios = [&] { return (*h.runtime->Statistics("a", -1))[0].latency_ratios; };
  EXPECT_THAT(ratios(), ElementsAre(1));
  for (int i = 0; i < 130; ++i) h.replies.Await(h.Send("a", {1, 2}, {1, 2}));
  EXPECT_THAT(ratios(), ElementsAre(0.5));
}

TEST(Runtime, StopFinishesWhatIsUnderWayAndRefusesWhatComes) {
  Harness h(WithProfile());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  const auto spec = *h.runtime->Find("a", -1);
  h.engine.batches.Close();
  std::vector<std::size_t> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(h.Send("a", {1, 2}, {1, 2}));
  h.engine.batches.AwaitWaiting(1);
  std::thread stop([&] { h.runtime->Stop(Seconds(100)); });
  while (h.runtime->Ready()) std::this_thread::yield();
  const InferReply& late = h.replies.Await(h.SendTo(spec, {1, 2}, {1, 2}));
  EXPECT_EQ(late.status.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(h.runtime->Live());
  h.engine.batches.Open();
  stop.join();
  for (const std::size_t call : calls) EXPECT_TRUE(h.replies.Await(call).status);
  EXPECT_EQ(h.engine.loaded(), 0u);
  EXPECT_FALSE(h.runtime->Live());
}

TEST(Runtime, StopWithoutGraceAnswersWhatWaitsAndStopsWhatRuns) {
  Harness h(WithProfile());
  h.engine.terminates = true;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a", 1)));
  h.engine.batches.Close();
  const std::size_t running = h.Send("a", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t waiting = h.Send("a", {1, 2}, {1, 2});
  std::thread stop([&] { h.runtime->Stop(Duration{}); });
  EXPECT_EQ(h.replies.Await(waiting).status.error().code, ErrorCode::kUnavailable);
  while (h.engine.terminated() == 0) std::this_thread::yield();
  h.engine.batches.Open();
  stop.join();
  EXPECT_EQ(h.replies.Await(running).status.error().code, ErrorCode::kUnavailable);
}

// Without this a stop would wait for what an engine's process never ends.
TEST(Runtime, StopAbandonsEnginesThatHoldItsCallsAndLoads) {
  testing::HarnessOptions options = WithProfile();
  std::mutex mutex;
  std::vector<std::string> said;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    said.push_back(line);
  };
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a", 1)));
  h.engine.slow_model = "b";
  h.engine.loads.Close();
  h.engine.batches.Close();
  const std::size_t running = h.Send("a", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t waiting = h.Send("a", {1, 2}, {1, 2});
  std::thread load([&] {
    const auto served = h.runtime->Serve(FloatModel("b"));
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(served.error().message, "the server is stopping") << "no fault of the model";
  });
  h.engine.loads.AwaitWaiting(1);
  const std::size_t said_before = [&] {
    const std::lock_guard lock(mutex);
    return said.size();
  }();
  h.runtime->Stop(Duration{});
  load.join();
  EXPECT_EQ(said.size(), said_before) << said.back();
  for (const std::size_t call : {running, waiting}) {
    EXPECT_EQ(h.replies.Await(call).status.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(h.replies.times(call), 1u);
  }
  for (const std::string& line : said) EXPECT_FALSE(line.starts_with("lane 0")) << line;
}

TEST(Runtime, RunsAllLanesOnTheCoresThatItIsGiven) {
  testing::HarnessOptions options;
  options.runtime.lanes = 2;
  options.runtime.cores = {AllowedCores().front()};
  Harness h(options);
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  ASSERT_EQ(h.engine.lanes().size(), 2u);
  for (const LaneSpec& lane : h.engine.lanes()) {
    EXPECT_EQ(OnCpu(lane.placement).cores, options.runtime.cores);
  }
}

}  // namespace
}  // namespace tactus
