#include "server/live/live_feed.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string NextOf(FeedWatcher& watcher) {
  std::promise<std::string> piece;
  watcher.Next([&](std::string text) { piece.set_value(std::move(text)); });
  return piece.get_future().get();
}

// What follows "data: ".
json DataOf(const std::string& event) {
  const std::size_t at = event.find("data: ");
  return at == event.npos ? json() : json::parse(event.substr(at + 6));
}

class LiveFeedTest : public ::testing::Test {
 protected:
  LiveFeedTest() {
    spec_->name = "<img onerror=x>";
    spec_->slo = Millis(50);
    spec_->exits = {{"early", {}, 0}, {"late", {}, 0}};
  }
  RuntimeReading Read() {
    ++readings_;
    RuntimeReading reading{.pending = 3, .uptime = Seconds(readings_)};
    reading.lanes.resize(lanes_);
    if (lanes_ > 0) reading.lanes[0].deaths = deaths_;
    reading.statistics = {{.name = spec_->name, .latency_ratios = {ratio_}}};
    if (lanes_ == 2) reading.lanes[1].held = true;
    reading.models = {{spec_->name, 1, "READY", ""}};
    return reading;
  }
  void AwaitReadings(int more) {
    for (const int now = readings_; readings_ < now + more;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void Batch(Duration at, int rows) {
    moments_.OnBatch(*spec_, {.lane = LaneId{1},
                              .exit = ExitId{1},
                              .batch = rows,
                              .decided = kStart + at,
                              .expected_end = kStart + at + Millis(4),
                              .started = kStart + at,
                              .ended = kStart + at + Millis(5)});
  }
  void Answer(Duration batch_at, Outcome outcome) {
    moments_.OnAnswered(*spec_,
                        {.arrival = kStart,
                         .deadline = kStart + Millis(25),
                         .started = kStart + batch_at,
                         .ended = kStart + Millis(30),
                         .batch = 4,
                         .outcome = outcome},
                        1);
  }
  // The first tick with bars.
  static json TickWithBars(FeedWatcher& watcher) {
    for (;;) {
      const std::string event = NextOf(watcher);
      if (event.starts_with("event: tick") && !DataOf(event)["bars"].empty()) return DataOf(event);
    }
  }

  const std::shared_ptr<ModelSpec> spec_ = std::make_shared<ModelSpec>();
  std::atomic<int> readings_ = 0;
  std::atomic<std::size_t> lanes_ = 2;
  std::atomic<int> deaths_ = 0;
  std::atomic<double> ratio_ = 1;
  ServingMetrics metrics_{MetricsOptions{}};
  LiveMoments moments_{metrics_};
  LiveFeed feed_{{.policy = "fifo",
                  .moments = moments_,
                  .metrics = metrics_,
                  .read = [this] { return Read(); },
                  .linger = {},
                  .find = [this](const std::string&, std::int64_t) { return spec_; }}};
};

TEST_F(LiveFeedTest, TellsAWatcherFirstWhatThereIsAndThenWhatHappens) {
  auto watcher = *feed_.Watch("a");
  const std::string state = NextOf(*watcher);
  EXPECT_TRUE(state.starts_with("event: state\n"));
  const json data = DataOf(state);
  EXPECT_EQ(data["policy"], "fifo");
  EXPECT_EQ(data["lanes"], 2);
  EXPECT_EQ(data["models"][0]["name"], "<img onerror=x>");
  EXPECT_EQ(data["models"][0]["exits"], json::parse(R"(["early","late"])"));
  EXPECT_TRUE(NextOf(*watcher).starts_with("event: past\n"));
  json second;
  while (!second.contains("lanes")) second = DataOf(NextOf(*watcher));
  EXPECT_EQ(second["lanes"][1][1], 1) << "it is held";
  Batch(Millis(10), 4);
  Batch(Millis(20), 2);
  Answer(Millis(10), Outcome::kLate);
  Answer(Millis(20), Outcome::kShed);
  const json tick = TickWithBars(*watcher);
  EXPECT_EQ(tick["drops"], json::parse("[0,200,1]"));
  EXPECT_EQ(tick["from_ms"], 10);
  EXPECT_EQ(tick["bars"], json::parse("[1,0,1,4,0,50,1,1,40,100,50, 1,0,1,2,100,50,0,1,40,0,0]"));
}

TEST_F(LiveFeedTest, ManyBatchesOfALaneAreOneBar) {
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  for (int i = 0; i < 1200; ++i) Batch(Millis(10 * i), 1);
  std::int64_t batches = 0;
  while (batches < 1200) {
    const json bars = TickWithBars(*watcher)["bars"];
    EXPECT_LE(bars.size(), 120u * 11);
    for (std::size_t i = 7; i < bars.size(); i += 11) batches += bars[i].get<std::int64_t>();
  }
  EXPECT_EQ(batches, 1200);
}

// Without this, a pipeline of two models counts thrice in the share of all calls.
TEST_F(LiveFeedTest, StepsOfPipelinesAreNoCallsOfClients) {
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  AwaitReadings(2);  // the model is known, and a second has begun
  const RequestRecord record{.arrival = kStart, .ended = kStart + Millis(5)};
  ModelSpec both;
  both.name = "both";
  both.platform = "ensemble";
  moments_.OnAnswered(both, record, 1);
  for (int i = 0; i < 2; ++i) moments_.OnStepAnswered(*spec_, record, 1);
  std::uint64_t calls = 0;
  json model;
  while (!model.contains("steps") || model["ended"][0] != 2) {
    const std::string event = NextOf(*watcher);
    if (!event.starts_with("event: tick")) continue;
    const json tick = DataOf(event);
    if (!tick.contains("ended")) continue;
    calls += tick["ended"][0].get<std::uint64_t>();
    model = tick["models"].value(spec_->name, json::object());
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(model["steps"], json::parse("[2,0,0,0,0,0]")) << "the table has them as such";
}

// While one long batch runs, no tick has another's bar.
TEST_F(LiveFeedTest, CallsThatAreGivenUpAreToldWithoutABatch) {
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  Answer(Millis(10), Outcome::kExpired);
  json tick;
  while (tick["drops"].empty()) {
    const std::string event = NextOf(*watcher);
    if (event.starts_with("event: tick")) tick = DataOf(event);
  }
  EXPECT_EQ(tick["drops"], json::parse("[0,0,1]"));
  EXPECT_EQ(tick["from_ms"], 30);
}

// Without this the story of a late batch says that fewer were given up than were.
TEST_F(LiveFeedTest, EveryCallThatIsGivenUpIsCounted) {
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  constexpr int kCalls = 3000;
  for (int i = 0; i < kCalls; ++i) {
    moments_.OnAnswered(
        *spec_,
        {.arrival = kStart, .ended = kStart + i / 3 * Millis(1), .outcome = Outcome::kExpired}, 1);
  }
  int placed = 0;
  int unplaced = 0;
  while (placed + unplaced < kCalls) {
    const std::string event = NextOf(*watcher);
    if (!event.starts_with("event: tick")) continue;
    const json tick = DataOf(event);
    EXPECT_LE(tick["drops"].size(), 3u * 500);
    for (std::size_t i = 2; i < tick["drops"].size(); i += 3) placed += tick["drops"][i].get<int>();
    const json more = tick.value("unplaced", json::array());
    for (std::size_t i = 1; i < more.size(); i += 2) unplaced += more[i].get<int>();
  }
  EXPECT_EQ(placed + unplaced, kCalls);
  EXPECT_GE(placed, 1500);
}

// Where batches of many models take turns, no bar stands for two of them.
TEST_F(LiveFeedTest, BatchesThatAreNotDrawnAreCounted) {
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  ModelSpec other = *spec_;
  other.name = "other";
  for (int i = 0; i < 1000; ++i) {
    const TimePoint at = kStart + Millis(10 * i);
    moments_.OnBatch(i % 2 == 0 ? *spec_ : other,
                     {.batch = 1, .decided = at, .started = at, .ended = at + Millis(5)});
  }
  int batches = 0;
  while (batches < 1000) {
    const json tick = TickWithBars(*watcher);
    EXPECT_LE(tick["bars"].size(), 120u * 11);
    batches += tick.value("not_drawn", 0);
    for (std::size_t i = 7; i < tick["bars"].size(); i += 11) {
      batches += tick["bars"][i].get<int>();
    }
  }
  EXPECT_EQ(batches, 1000);
}

// Without this the page is green while clients are refused.
TEST_F(LiveFeedTest, CallsThatAreRefusedAreCountedByReason) {
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  AwaitReadings(2);
  for (int i = 0; i < 5; ++i) metrics_.OnTurnedAway(RefusalReason::kClientLimit);
  moments_.OnRefused("", ErrorCode::kNotFound);
  json refused = json::object();
  while (refused.size() < 2) {
    const std::string event = NextOf(*watcher);
    if (!event.starts_with("event: tick")) continue;
    const json now = DataOf(event).value("refused", json::object());
    for (const auto& [reason, count] : now.items()) {
      refused[reason] = refused.value(reason, 0) + count.get<int>();
    }
  }
  EXPECT_EQ(refused, json::parse(R"({"client_limit":5,"not_found":1})"));
  auto later = *feed_.Watch("b");
  NextOf(*later);
  int past = 0;
  const json seconds = DataOf(NextOf(*later))["seconds"];
  for (const json& second : seconds) past += second[4].get<int>();
  EXPECT_GE(past, 5);
}

// Without this the first bars of a model have no name.
TEST_F(LiveFeedTest, NamesComeBeforeTheBarsThatUseThem) {
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  Batch(Millis(10), 4);
  bool named = false;
  for (;;) {
    const std::string event = NextOf(*watcher);
    if (event.starts_with("event: state")) named = !DataOf(event)["names"].empty();
    if (event.starts_with("event: tick") && !DataOf(event)["bars"].empty()) break;
  }
  EXPECT_TRUE(named);
}

// What is predicted follows what batches take; the profile stays.
TEST_F(LiveFeedTest, BatchesAreHeldAgainstTheProfile) {
  ratio_ = 2;
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  json models;
  for (int i = 0; !models.contains(spec_->name); ++i) {
    Batch(Millis(10 * i), 4);
    Answer(Millis(10 * i), Outcome::kMet);
    const std::string event = NextOf(*watcher);
    if (event.starts_with("event: tick")) models = DataOf(event).value("models", json::object());
  }
  EXPECT_EQ(models[spec_->name]["slower"], 2.5) << "5 ms where the profile says 2";
}

TEST_F(LiveFeedTest, LanesThatDiedAreCounted) {
  deaths_ = 3;
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);  // the state, whose lanes are a number
  json second;
  while (!second.contains("lanes")) second = DataOf(NextOf(*watcher));
  EXPECT_EQ(second["lanes"][0][2], 3);
}

// Without this, whoever opens many pages keeps the server busy.
TEST_F(LiveFeedTest, SoManyMayWatch) {
  std::vector<std::shared_ptr<FeedWatcher>> all;
  for (std::size_t i = 0; i < LiveFeed::kMostOfClient; ++i) all.push_back(*feed_.Watch("a"));
  const auto of_one = feed_.Watch("a");
  ASSERT_FALSE(of_one);
  EXPECT_EQ(of_one.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(of_one.error().message, HasSubstr("8 of them from a"));
  while (all.size() < LiveFeed::kMostWatchers) all.push_back(*feed_.Watch("b"));
  EXPECT_FALSE(feed_.Watch("c"));
  all[3]->Leave();
  EXPECT_TRUE(feed_.Watch("c").has_value()) << "one has left";
}

TEST_F(LiveFeedTest, NoBatchIsNotedWhileNobodyWatches) {
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  watcher->Leave();
  AwaitReadings(2);  // it has noticed
  moments_.Take();
  Batch(Millis(30), 4);
  EXPECT_TRUE(moments_.Take().batches.empty());
}

// Whoever opens the page after a fault sees it.
TEST_F(LiveFeedTest, AWatcherHearsOfTheSecondsBefore) {
  AwaitReadings(2);
  for (int i = 0; i < 3; ++i) Answer(Millis(10), Outcome::kMet);
  Answer(Millis(10), Outcome::kShed);
  Answer(Millis(10), Outcome::kCancelled);
  AwaitReadings(3);
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  const json past = DataOf(NextOf(*watcher))["seconds"];
  EXPECT_GE(past.size(), 3u);
  int met = 0;
  int missed = 0;
  for (const json& second : past) {
    met += second[0].get<int>();
    missed += second[1].get<int>();
    EXPECT_EQ(second[2], 3) << "rows that wait";
  }
  EXPECT_EQ(met, 3);
  EXPECT_EQ(missed, 1);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {  // visits make no seconds
    watcher->Leave();
    watcher = *feed_.Watch("a");
    NextOf(*watcher);
    const std::size_t seconds = DataOf(NextOf(*watcher))["seconds"].size();
    const auto passed = std::chrono::steady_clock::now() - began;
    EXPECT_LE(seconds, past.size() + 1 + static_cast<std::size_t>(passed / 1s));
  }
}

// A front end knows its servers as they run their first batches.
TEST_F(LiveFeedTest, SecondsAreKeptBeforeThereIsALane) {
  lanes_ = 0;
  AwaitReadings(2);
  Answer(Millis(10), Outcome::kShed);
  AwaitReadings(2);
  auto watcher = *feed_.Watch("a");
  NextOf(*watcher);
  int missed = 0;
  const json past = DataOf(NextOf(*watcher))["seconds"];
  for (const json& second : past) missed += second[1].get<int>();
  EXPECT_EQ(missed, 1);
}

TEST_F(LiveFeedTest, AStopEndsItsWatchers) {
  auto watcher = *feed_.Watch("a");
  feed_.Stop();
  for (std::string piece = NextOf(*watcher); !piece.empty();) piece = NextOf(*watcher);
  EXPECT_FALSE(feed_.Watch("a").has_value());
}

}  // namespace
}  // namespace tactus
