// What was decided in real time is decided again from its journal, through cancellations, expiry
// and models that come and go.

#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/temporary_folder_test.h"
#include "dispatch/journal_file.h"
#include "dispatch/replay.h"
#include "runtime/harness_test.h"
#include "runtime/layout/lane_layout.h"

namespace tactus {
namespace {

TEST(RealTimeJournal, LeadsToTheSameDecisions) {
  const TemporaryFolder folder;
  const auto path = folder / "journal";
  JournalHeader header;
  header.policy = "edgeserving";
  header.source = "measured";
  header.options.queue_capacity = 64;
  header.lanes = {LaneSpec{.slots = 2}};
  auto writer = JournalWriter::Create(path, header, WhenFull::kStop);
  ASSERT_TRUE(writer) << writer.error().message;
  {
    testing::HarnessOptions options;
    options.policy = header.policy;
    options.runtime.queue_capacity = header.options.queue_capacity;
    options.runtime.slots = 2;
    options.profile = testing::FlatProfile({"a", "b"}, 8, 0.05);
    options.journal = writer->get();
    testing::Harness h(std::move(options));
    h.runtime->Start();
    ASSERT_TRUE(h.runtime->Serve(testing::FloatModel("a")));
    ASSERT_TRUE(h.runtime->Serve(testing::FloatModel("b")));
    Rng rng = Rng::Stream(7, "journal");
    for (int i = 0; i < 500; ++i) {
      std::optional<Duration> deadline;
      if (rng.Below(3) == 0) deadline = Micros(static_cast<std::int64_t>(rng.Below(1000)));
      CallId id = 0;
      h.Send(rng.Below(2) == 0 ? "a" : "b", {1, 2, 3, 4}, {2, 2}, deadline, &id);
      if (rng.Below(5) == 0) h.runtime->Cancel(id);
      if (i == 250) {
        ASSERT_TRUE(h.runtime->Serve(testing::FloatModel("b", 4)));
      }
    }
    h.replies.AwaitAll();
    ASSERT_TRUE(h.runtime->Unload("a"));
    h.runtime->Stop(Duration{});
  }
  ASSERT_TRUE((*writer)->Close());
  const auto journal = LoadJournal(path);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_TRUE(journal->complete);
  auto policy = MakePolicy(header.policy);
  ASSERT_TRUE(policy);
  const auto replayed = Replay(*journal, **policy);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_EQ(replayed->difference, std::nullopt);
  EXPECT_GT(replayed->decisions, 0u);
}

// Without its plans, and the shares of its lanes, a server's run could not be replayed once it had
// split its device anew.
TEST(RealTimeJournal, LeadsToTheSameDecisionsWherePlansChange) {
  const std::vector<std::string> names = {"a", "b"};
  const TemporaryFolder folder;
  const auto path = folder / "journal";
  JournalHeader header;
  header.policy = "planned";
  header.source = "served";
  header.options.queue_capacity = 64;
  header.lanes = LaneLayout::Lanes();
  auto writer = JournalWriter::Create(path, header, WhenFull::kStop);
  ASSERT_TRUE(writer) << writer.error().message;
  {
    testing::HarnessOptions options;
    options.policy = header.policy;
    options.runtime.queue_capacity = header.options.queue_capacity;
    options.runtime.split = SplitOptions{.cores = 2,
                                         .shares = {{0.5, testing::FlatProfile(names, 8, 0.02)},
                                                    {1, testing::FlatProfile(names, 8, 0.01)}}};
    options.journal = writer->get();
    testing::Harness h(std::move(options));
    h.runtime->Start();
    for (const std::string& name : names) {
      ASSERT_TRUE(h.runtime->Serve(testing::FloatModel(name)));
    }
    const auto lane = [](LaneClass::rep c, std::vector<ModelId::rep> models) {
      LanePlan plan{.spec = {.lane_class = LaneClass{c}, .fraction = c == 0 ? 0.5 : 1.0},
                    .cycle = Millis(10)};
      for (const auto m : models) plan.entries.push_back({.model = ModelId{m}, .batch = 4});
      return plan;
    };
    const Plan plans[] = {{.lanes = {lane(1, {0, 1})}}, {.lanes = {lane(0, {0}), lane(0, {1})}}};
    Rng rng = Rng::Stream(7, "journal");
    for (int i = 0; i < 400; ++i) {
      if (i % 50 == 0) {
        const Status adopted = h.runtime->Adopt(plans[i / 50 % 2], names);
        ASSERT_TRUE(adopted) << adopted.error().message;
      }
      h.Send(names[rng.Below(2)], {1, 2, 3, 4}, {2, 2});
    }
    h.replies.AwaitAll();
    h.runtime->Stop(Duration{});
  }
  ASSERT_TRUE((*writer)->Close());
  const auto journal = LoadJournal(path);
  ASSERT_TRUE(journal) << journal.error().message;
  const auto replayed = Replay(*journal, **MakePolicy(header.policy));
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_EQ(replayed->difference, std::nullopt);
  EXPECT_GE(replayed->plans, 8u);
}

}  // namespace
}  // namespace tactus
