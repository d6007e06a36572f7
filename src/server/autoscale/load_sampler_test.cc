#include "server/autoscale/load_sampler.h"

#include <atomic>
#include <future>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

// A server of four lanes whose counters a test moves; its clock is the test's.
struct FakeServer {
  LoadTotals now{.totals = {.at = kStart}, .lanes = 4};

  void Pass(Duration time, int good, int bad, double busy) {
    now.totals.at += time;
    now.totals.good += good;
    now.totals.bad += bad;
    now.totals.available += time * now.lanes;
    now.totals.busy += FromSeconds(busy * ToSeconds(time) * now.lanes);
  }
};

TEST(LoadSampler, AdvisesWhatTheLastWindowAsksFor) {
  FakeServer server;
  LoadSampler sampler({}, [&] { return server.now; });
  sampler.Sample();
  EXPECT_EQ(sampler.latest().advice.advised, 4);
  server.Pass(Seconds(5), 800, 200, 1);
  sampler.Sample();
  EXPECT_EQ(sampler.latest().advice.advised, 5);
  EXPECT_DOUBLE_EQ(sampler.latest().advice.reading.bad_ratio, 0.2);
  server.Pass(Seconds(20), 100, 0, 0.45);
  sampler.Sample();
  EXPECT_EQ(sampler.latest().advice.advised, 2);  // 4 * 0.45 / 0.9
}

// A replica that somebody waits for must not be taken for one that nobody needs.
TEST(LoadSampler, IsActiveWhileSomebodyAsksOrWaits) {
  FakeServer server;
  LoadSampler sampler({.window = Seconds(10)}, [&] { return server.now; });
  const auto active_after = [&](Duration time, int good) {
    server.Pass(time, good, 0, 0);
    sampler.Sample();
    return sampler.latest().active();
  };
  EXPECT_FALSE(active_after(Seconds(1), 0));
  server.now.pending = 1;
  EXPECT_TRUE(active_after(Seconds(1), 0));
  server.now.pending = 0;
  EXPECT_TRUE(active_after(Seconds(1), 1));
  EXPECT_TRUE(active_after(Seconds(5), 0));
  EXPECT_FALSE(active_after(Seconds(20), 0));
}

// A follower that is called after it was taken away would be called after it is gone.
TEST(LoadSampler, TellsItsFollowerUntilThatIsReplaced) {
  FakeServer server;
  LoadSampler sampler({}, [&] { return server.now; });
  std::vector<int> told;
  sampler.Follow([&](const LoadSample& sample) { told.push_back(sample.advice.advised); });
  sampler.Sample();
  server.Pass(Seconds(1), 50, 50, 1);
  sampler.Sample();
  sampler.Follow({});
  sampler.Sample();
  EXPECT_EQ(told, (std::vector{4, 8}));
}

// Without a thread of its own the advice would stand still between scrapes.
TEST(LoadSampler, SamplesByItselfUntilItIsStopped) {
  std::atomic<int> reads = 0;
  std::promise<void> several;
  LoadSampler sampler({.interval = Millis(1)}, [&] {
    if (++reads == 5) several.set_value();
    return LoadTotals{.totals = {.at = kStart + Millis(reads)}, .lanes = 1};
  });
  sampler.Start();
  EXPECT_GE(reads, 1);  // the first before Start returned
  several.get_future().wait();
  sampler.Stop();
  const int stopped = reads;
  EXPECT_EQ(reads, stopped);
  sampler.Stop();
}

}  // namespace
}  // namespace tactus
