// Without these a knowledge base that is away for some minutes could hold up a controller, fill its
// memory, lose a plan, or be written twice.
#include "knowledge/buffered_store.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knowledge/process_test.h"
#include "knowledge/store_case_test.h"
#include "knowledge/write_buffer.h"

namespace tactus::knowledge {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::chrono::milliseconds kPatience{60'000};
constexpr RetryPause kSoon{std::chrono::milliseconds(1), std::chrono::milliseconds(2)};

Batch Samples(int count) {
  Batch batch;
  for (int i = 0; i < count; ++i) {
    batch.network.push_back({kNoon, "yard", "rack", 10, Millis(20), 0});
  }
  return batch;
}

Batch PlanAndSample(std::uint64_t epoch) {
  Batch batch = Samples(1);
  batch.plans = {{epoch, 1, kNoon, "{}", "{}", "{}", PlanFate::kAdopted, kNoon, ""}};
  return batch;
}

TEST(WriteBuffer, SamplesOfMoreThanTenMinutesAreDroppedAndCounted) {
  WriteBuffer buffer{BufferLimits{}};
  buffer.Add(Samples(2), kNoon);
  buffer.Add(PlanAndSample(7), kNoon + seconds(1));
  buffer.Add(Samples(3), kNoon + minutes(5));
  EXPECT_EQ(buffer.dropped(), 0u);
  buffer.Add(Samples(1), kNoon + minutes(11));
  EXPECT_EQ(buffer.dropped(), 3u);  // the first two, and the one that came with the plan
  EXPECT_EQ(buffer.batches(), 3u);
  const auto plan = buffer.Oldest();
  EXPECT_THAT(plan->network, IsEmpty());
  EXPECT_EQ(plan->plans.at(0).epoch, 7u);
  EXPECT_EQ(plan->sequence, 2u);  // as it was
}

TEST(WriteBuffer, MemoryIsBoundedByCountAndByBytesAndTheNewestStays) {
  WriteBuffer by_count{BufferLimits{.batches = 3}};
  for (int i = 0; i < 10; ++i) by_count.Add(Samples(1), kNoon);
  EXPECT_EQ(by_count.batches(), 3u);
  EXPECT_EQ(by_count.dropped(), 7u);
  EXPECT_EQ(by_count.Oldest()->sequence, 8u);

  const std::size_t each = Samples(100).bytes();
  WriteBuffer by_bytes{BufferLimits{.bytes = 3 * each}};
  for (int i = 0; i < 10; ++i) by_bytes.Add(Samples(100), kNoon);
  EXPECT_EQ(by_bytes.batches(), 3u);
  EXPECT_EQ(by_bytes.dropped(), 700u);
  EXPECT_EQ(by_bytes.bytes(), 3 * each);

  // Nothing but plans: then the oldest plan goes.
  WriteBuffer plans{BufferLimits{.batches = 2}};
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) plans.Add(PlanAndSample(epoch), kNoon);
  EXPECT_EQ(plans.Oldest()->plans.at(0).epoch, 2u);
}

TEST(WriteBuffer, ABatchThatSomebodyWritesStaysAsItIs) {
  WriteBuffer buffer{BufferLimits{.batches = 1}};
  buffer.Add(Samples(5), kNoon);
  const auto writing = buffer.Oldest();
  buffer.Add(Samples(1), kNoon + minutes(60));
  EXPECT_EQ(writing->network.size(), 5u);
  EXPECT_EQ(buffer.Oldest(), writing);
  buffer.Remove();
  EXPECT_EQ(buffer.dropped(), 1u);
  EXPECT_EQ(buffer.bytes(), 0u);
}

// A store that is away, or hangs, when it is told to.
class MoodyStore : public StoreWriter {
 public:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    ErrorCode error = ErrorCode::kInternal;
    bool fails = false, hangs = false;
    int attempts = 0, retained = 0;
    std::vector<std::uint64_t> written;  // sequence numbers
  };
  explicit MoodyStore(State& state) : state_(state) {}

  const std::string& place() const override { return place_; }
  Expected<Written> Commit(const Batch& batch) override {
    std::unique_lock lock(state_.mutex);
    ++state_.attempts;
    state_.changed.notify_all();
    state_.changed.wait(lock, [&] { return !state_.hangs; });
    if (state_.fails) return Fail(state_.error, "moody: not now; wait");
    state_.written.push_back(batch.sequence);
    return Written::kNow;
  }
  Expected<Retained> Retain(UtcTime, const Retention&) override {
    const std::lock_guard lock(state_.mutex);
    ++state_.retained;
    state_.changed.notify_all();
    return Retained{.done = state_.retained >= 3};
  }

 private:
  State& state_;
  std::string place_ = "moody";
};

void Set(MoodyStore::State& state, bool fails, bool hangs,
         ErrorCode error = ErrorCode::kUnavailable) {
  {
    const std::lock_guard lock(state.mutex);
    state.fails = fails, state.hangs = hangs, state.error = error;
  }
  state.changed.notify_all();
}

void AwaitAttempts(MoodyStore::State& state, int count) {
  std::unique_lock lock(state.mutex);
  ASSERT_TRUE(state.changed.wait_for(lock, kPatience, [&] { return state.attempts >= count; }));
}

TEST(BufferedStore, NobodyWaitsForAStoreThatHangs) {
  MoodyStore::State state;
  Set(state, false, true);
  BufferedStore store(std::make_unique<MoodyStore>(state), 1, {}, kSoon);
  store.Write(Samples(1), kNoon);
  AwaitAttempts(state, 1);
  // The store's own call does not return before it is let go below, and these do.
  for (int i = 1; i < 500; ++i) store.Write(Samples(1), kNoon + seconds(i));
  EXPECT_EQ(store.counts().waiting, 500u);
  EXPECT_EQ(store.counts().written, 0u);
  Set(state, false, false);
  ASSERT_TRUE(store.Flush(kPatience));
  EXPECT_EQ(store.counts().written, 500u);
  EXPECT_EQ(state.written.front(), 1u);
  EXPECT_EQ(state.written.back(), 500u);
}

TEST(BufferedStore, WhatWaitedIsWrittenInOrderWhenTheStoreIsBack) {
  MoodyStore::State state;
  Set(state, true, false);
  BufferedStore store(std::make_unique<MoodyStore>(state), 1, BufferLimits{.age = minutes(1)},
                      kSoon);
  store.Write(PlanAndSample(1), kNoon);
  AwaitAttempts(state, 3);
  EXPECT_EQ(store.counts().last_error, "moody: not now; wait");
  // Ten minutes of virtual time, of which one is kept.
  for (int i = 1; i <= 600; ++i) store.Write(Samples(1), kNoon + seconds(i));
  Set(state, false, false);
  ASSERT_TRUE(store.Flush(kPatience));
  const auto counts = store.counts();
  EXPECT_EQ(counts.written + counts.dropped, 602u);
  EXPECT_EQ(counts.dropped, 539u);
  EXPECT_THAT(counts.last_error, IsEmpty());
  EXPECT_TRUE(std::ranges::is_sorted(state.written));
  EXPECT_EQ(state.written.back(), 601u);
  EXPECT_EQ(state.written.front(), 1u);  // on its way all the time
}

TEST(BufferedStore, WhatTheStoreRefusesDoesNotHoldUpTheRest) {
  MoodyStore::State state;
  Set(state, true, true, ErrorCode::kInvalidArgument);
  BufferedStore store(std::make_unique<MoodyStore>(state), 1, {}, kSoon);
  store.Write(Samples(4), kNoon);
  AwaitAttempts(state, 1);
  Set(state, true, false, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(store.Flush(kPatience));
  EXPECT_EQ(store.counts().refused, 4u);
  Set(state, false, false);
  store.Write(Samples(1), kNoon);
  ASSERT_TRUE(store.Flush(kPatience));
  EXPECT_EQ(store.counts().written, 1u);
}

TEST(BufferedStore, ALeaderThatWasSupersededWritesNoMore) {
  MoodyStore::State state;
  Set(state, true, false, ErrorCode::kCancelled);
  BufferedStore store(std::make_unique<MoodyStore>(state), 1, {}, kSoon);
  store.Write(Samples(4), kNoon);
  ASSERT_TRUE(store.Flush(kPatience));
  EXPECT_TRUE(store.counts().superseded);
  Set(state, false, false);
  store.Write(Samples(2), kNoon);
  ASSERT_TRUE(store.Flush(kPatience));
  EXPECT_EQ(store.counts().dropped, 6u);
  EXPECT_THAT(state.written, IsEmpty());
}

TEST(BufferedStore, RetentionGoesOnUntilItIsDone) {
  MoodyStore::State state;
  BufferedStore store(std::make_unique<MoodyStore>(state), 1, {}, kSoon);
  store.Retain(kNoon);
  std::unique_lock lock(state.mutex);
  EXPECT_TRUE(state.changed.wait_for(lock, kPatience, [&] { return state.retained == 3; }));
}

TEST(BufferedStore, TenMinutesWithoutPostgresCostNothing) {
  if (const std::string why = PostgresServer::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  PostgresServer server;
  const std::string where = server.MakeDatabase("away");
  BufferedStore store(Must(OpenStore(where)), 3, {}, kSoon);
  store.Write(Samples(1), kNoon);
  ASSERT_TRUE(store.Flush(kPatience));
  server.Kill();
  for (int i = 1; i < 600; ++i) store.Write(Samples(2), kNoon + seconds(i));
  EXPECT_EQ(store.counts().dropped, 0u);
  server.Start();
  ASSERT_TRUE(store.Flush(kPatience)) << store.counts().last_error;
  auto reader = Must(OpenStore(where));
  EXPECT_EQ(Must(reader->NetworkSamples({kNoon, kNoon + minutes(1)})).size(), 1'199u);
  EXPECT_EQ(Must(reader->HighestSeen()).term, 3u);
}

}  // namespace
}  // namespace tactus::knowledge
