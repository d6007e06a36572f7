// What was decided in real time is decided again from its journal, through cancellations, expiry
// and models that come and go.

#include <gtest/gtest.h>

#include "base/rng.h"
#include "runtime/harness_test.h"
#include "runtime/kept_journal_test.h"
#include "runtime/layout/lane_layout.h"

namespace tactus {
namespace {

TEST(RealTimeJournal, LeadsToTheSameDecisions) {
  testing::KeptJournal journal("edgeserving", {LaneSpec{.slots = 2}}, 64);
  {
    testing::HarnessOptions options;
    options.policy = "edgeserving";
    options.runtime.queue_capacity = 64;
    options.runtime.slots = 2;
    options.profile = testing::FlatProfile({"a", "b"}, 8, 0.05);
    options.journal = journal.writer();
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
  journal.Replayed();
}

// Without its plans, and the shares of its lanes, a server's run could not be replayed once it had
// split its device anew.
TEST(RealTimeJournal, LeadsToTheSameDecisionsWherePlansChange) {
  const std::vector<std::string> names = {"a", "b"};
  testing::KeptJournal journal("planned", LaneLayout::Lanes(), 64);
  {
    testing::HarnessOptions options;
    options.policy = "planned";
    options.runtime.queue_capacity = 64;
    options.runtime.split = SplitOptions{.cores = 2,
                                         .shares = {{0.5, testing::FlatProfile(names, 8, 0.02)},
                                                    {1, testing::FlatProfile(names, 8, 0.01)}}};
    options.journal = journal.writer();
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
  EXPECT_GE(journal.Replayed().plans, 8u);
}

}  // namespace
}  // namespace tactus
