// One bad row in a batch: without this everybody whose rows came into the same batch would get its
// error.
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/harness_test.h"
#include "runtime/kept_journal_test.h"
#include "runtime/models/apart_gate.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;
using testing::SendInOneBatch;

float FirstOf(const RowInputs& row) {
  float first = 0;
  std::memcpy(&first, row.inputs[0].data, sizeof first);
  return first;
}

// A row that begins with a number below 0 is one that the graph cannot run.
Status NoneBelowZero(const std::string&, const BatchJob& job) {
  for (const RowInputs& row : job.rows) {
    if (FirstOf(row) < 0) return Internal("index -1 is out of range");
  }
  return {};
}

class ApartCounts final : public Observer {
 public:
  void OnBatch(const ModelSpec&, const BatchRecord& batch) override {
    answered += batch.apart.answered;
    failed += batch.apart.failed;
    given_up += batch.apart.given_up;
  }
  std::atomic<int> answered{0}, failed{0}, given_up{0};
};

testing::HarnessOptions OneLane(Observer* observer = nullptr) {
  testing::HarnessOptions options;
  options.policy = "fifo:batch=8";
  options.profile = FlatProfile({"m"}, 8, 0.05);
  options.observer = observer;
  return options;
}

TEST(Apart, OnlyTheBadRowsCallHearsOfTheError) {
  ApartCounts counts;
  Harness h(OneLane(&counts));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.verdict = NoneBelowZero;
  const auto calls = SendInOneBatch(h, {1, 2, -3, 4, 5});
  for (const int i : {0, 1, 3, 4}) {
    const InferReply& reply = h.replies.Await(calls[i]);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(i + 1.0f, 7));
    EXPECT_EQ(reply.served.batch, 1);
    EXPECT_EQ(h.replies.times(calls[i]), 1u);
  }
  const InferReply& bad = h.replies.Await(calls[2]);
  ASSERT_FALSE(bad.status);
  EXPECT_THAT(bad.status.error().message, HasSubstr("index -1 is out of range"));
  EXPECT_EQ(bad.served.outcome, Outcome::kError);
  const auto statistics = h.runtime->Statistics("m", -1);
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->at(0).inference_count, 5u) << "that alone, and four apart";
  h.runtime->Stop(Duration{});
  EXPECT_EQ(counts.answered.load(), 4);
  EXPECT_EQ(counts.failed.load(), 1);
  EXPECT_EQ(counts.given_up.load(), 0);
}

// A front end's batch was granted once: its worker has run the rows apart.
TEST(Apart, AnEngineMayRefuseToBeAskedAgain) {
  ApartCounts counts;
  Harness h(OneLane(&counts));
  h.engine.runs_apart = false;
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.verdict = NoneBelowZero;
  for (const std::size_t call : SendInOneBatch(h, {1, -2})) {
    const InferReply& reply = h.replies.Await(call);
    ASSERT_FALSE(reply.status);
    EXPECT_THAT(reply.status.error().message, HasSubstr("index -1 is out of range"));
  }
  h.runtime->Stop(Duration{});
  EXPECT_EQ(counts.answered.load() + counts.failed.load() + counts.given_up.load(), 0);
}

// A call of several rows is answered whole or not at all.
TEST(Apart, ACallWithABadRowFailsWhole) {
  Harness h(OneLane());
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.verdict = NoneBelowZero;
  h.engine.batches.Close();
  h.Send("m", {0, 0}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t bad = h.Send("m", {1, 1, -1, 1}, {2, 2});
  const std::size_t good = h.Send("m", {3, 3, 4, 4}, {2, 2});
  h.engine.batches.Open();
  h.replies.AwaitAll();
  EXPECT_FALSE(h.replies.Await(bad).status);
  const InferReply& reply = h.replies.Await(good);
  ASSERT_TRUE(reply.status) << reply.status.error().message;
  EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(3, 3, 4, 4));
}

// What is declared a batch may be none: clients get what the graph makes of their rows together.
TEST(Apart, ACallRunsAgainAsItWasSent) {
  ApartCounts counts;
  Harness h(OneLane(&counts));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
    return job.rows.size() == 2 ? Status() : Status(Internal("shapes do not fit"));
  };
  h.engine.batches.Close();
  h.Send("m", {0, 0, 0, 0}, {2, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t first = h.Send("m", {1, 1, 2, 2}, {2, 2});
  const std::size_t second = h.Send("m", {3, 3, 4, 4}, {2, 2});
  h.engine.batches.Open();
  h.replies.AwaitAll();
  for (const auto& [call, a, b] : {std::tuple(first, 1.0f, 2.0f), std::tuple(second, 3.0f, 4.0f)}) {
    const InferReply& reply = h.replies.Await(call);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_THAT(Floats(reply.outputs[0]), ElementsAre(a, a, b, b));
    EXPECT_EQ(reply.served.batch, 2);
  }
  const auto statistics = h.runtime->Statistics("m", -1);
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->at(0).inference_count, 6u);
  EXPECT_EQ(statistics->at(0).execution_count, 3u);
  h.runtime->Stop(Duration{});
  EXPECT_EQ(counts.answered.load(), 4);
  EXPECT_EQ(counts.failed.load(), 0);
}

// Also where its rows came into two batches.
TEST(Apart, ACallWhoseRowsWereInTwoBatchesRunsAgainWhole) {
  testing::HarnessOptions options = OneLane();
  options.policy = "fifo:batch=4";
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
    return job.rows.size() == 3 ? Status() : Status(Internal("shapes do not fit"));
  };
  h.engine.batches.Close();
  h.Send("m", {0, 0, 0, 0, 0, 0}, {3, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t calls[] = {h.Send("m", {1, 1, 2, 2, 3, 3}, {3, 2}),
                               h.Send("m", {4, 4, 5, 5, 6, 6}, {3, 2})};
  h.engine.batches.Open();
  h.replies.AwaitAll();
  float first = 1;
  for (const std::size_t call : calls) {
    const InferReply& reply = h.replies.Await(call);
    ASSERT_TRUE(reply.status) << reply.status.error().message;
    EXPECT_THAT(Floats(reply.outputs[0]),
                ElementsAre(first, first, first + 1, first + 1, first + 2, first + 2));
    first += 3;
  }
  std::vector<std::size_t> sizes;
  for (const auto& batch : h.engine.seen()) sizes.push_back(batch.rows);
  EXPECT_THAT(sizes, ElementsAre(3, 4, 3, 3, 2, 3))
      << "the first again whole, and the second twice";
}

TEST(Apart, ABatchOfOneCallIsNotRunAgain) {
  ApartCounts counts;
  Harness h(OneLane(&counts));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  h.engine.verdict = NoneBelowZero;
  const std::size_t call = h.Send("m", {1, 1, -1, 1}, {2, 2});
  EXPECT_FALSE(h.replies.Await(call).status);
  EXPECT_EQ(h.engine.seen().size(), 1u);
  h.runtime->Stop(Duration{});
  EXPECT_EQ(counts.answered.load() + counts.failed.load() + counts.given_up.load(), 0);
}

TEST(Apart, LateCallsAreGivenUp) {
  ApartCounts counts;
  testing::HarnessOptions options = OneLane(&counts);
  options.runtime.expiry = Expiry::kPassed;
  Harness h(std::move(options));
  h.runtime->Start();
  ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
  auto late = std::chrono::steady_clock::time_point::max();
  h.engine.verdict = [&](const std::string& model, const BatchJob& job) -> Status {
    while (job.rows.size() > 1 && std::chrono::steady_clock::now() < late)
      std::this_thread::yield();
    return NoneBelowZero(model, job);
  };
  h.engine.batches.Close();
  const std::size_t first = h.Send("m", {0, 0}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  late = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const std::size_t calls[] = {h.Send("m", {1, 1}, {1, 2}, Millis(200)),
                               h.Send("m", {-1, 1}, {1, 2}, Millis(200))};
  h.engine.batches.Open();
  EXPECT_TRUE(h.replies.Await(first).status);
  for (const std::size_t call : calls) {
    EXPECT_EQ(h.replies.Await(call).served.outcome, Outcome::kExpired);
  }
  EXPECT_LE(h.engine.seen().size(), 2u) << "a late call ran again";
  h.runtime->Stop(Duration{});
  EXPECT_EQ(counts.answered.load() + counts.failed.load(), 0);
}

// What fails whatever it is given must not cost a run for each row for ever; and whoever sends
// nothing but bad rows must not keep others from an answer.
TEST(ApartGate, ClosesWhereNothingSucceededForLong) {
  ApartGate gate;
  const TimePoint start = kStart + Seconds(100);
  for (int i = 0; i < 99; ++i) EXPECT_TRUE(gate.Pass(start + Millis(100) * i)) << i;
  int passed = 0;
  for (unsigned i = 0; i < 4 * ApartGate::kEach; ++i) {
    passed += gate.Pass(start + ApartGate::kHopeful + Millis(i)) ? 1 : 0;
  }
  EXPECT_EQ(passed, 4);
  gate.Succeeded();
  EXPECT_TRUE(gate.Pass(start + Seconds(60)));
  EXPECT_TRUE(gate.Pass(start + Seconds(69)));
}

// The same decisions come of the journal, with a lane that dies in between.
TEST(Apart, AJournalOfItReplays) {
  testing::KeptJournal journal("fifo:batch=8", {LaneSpec{}, LaneSpec{}});
  testing::HarnessOptions options = OneLane();
  options.runtime.lanes = 2;
  options.runtime.revive_after = Millis(1);
  options.journal = journal.writer();
  {
    Harness h(std::move(options));
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(FloatModel("m")));
    h.engine.verdict = NoneBelowZero;
    std::atomic<int> batches{0};
    h.engine.dies = [&] { return batches.fetch_add(1) % 50 == 31; };
    for (int i = 0; i < 800; ++i) h.Send("m", {i % 16 == 3 ? -1.0f : 1.0f * i, 2}, {1, 2});
    h.replies.AwaitAll();
    for (std::size_t i = 0; i < 800; ++i) {
      const InferReply& reply = h.replies.Await(i);
      EXPECT_EQ(h.replies.times(i), 1u);
      ASSERT_EQ(reply.status.has_value(), i % 16 != 3) << i;
      if (!reply.status) continue;
      EXPECT_EQ(Floats(reply.outputs[0])[0], static_cast<float>(i));
    }
    h.runtime->Stop(Duration{});
  }
  journal.Replayed();
}

}  // namespace
}  // namespace tactus
