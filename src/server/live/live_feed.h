// Who watches the server's live page: what there is and was at first, then five ticks a second, as
// server-sent events of JSON. docs/reference/page.md has the fields.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "platform/repeated_task.h"
#include "server/live/live_minute.h"
#include "server/live/live_model.h"
#include "server/live/live_moments.h"
#include "server/metrics/serving_metrics.h"
#include "stream/frame_feed.h"

namespace tactus {

class LiveFeed {
 public:
  static constexpr std::size_t kMostWatchers = 16;
  static constexpr std::size_t kMostOfClient = 8;

  struct Parts {
    std::string policy;
    std::string lane = "lane";  // what a lane is called
    // A batch's time has in it what the batch waited at another server: no profile predicts that.
    bool elsewhere = false;
    bool streams = false;  // whether the server has /v2/streams
    // That may be asked for in a what-if; empty: none is answered.
    std::vector<std::string> policies = {};
    std::string journal = {};  // the file of --journal; empty: there is none
    LiveMoments& moments;      // of this feed alone
    const ServingMetrics& metrics;
    std::function<RuntimeReading()> read;
    // Whether a what-if may change the model: not a pipeline, whose steps it simulates. Empty: it
    // may change none.
    std::function<bool(const std::string& model)> settable = nullptr;
    // For so long after the last watcher has left, moments are noted on: a page that is loaded
    // again has its minute whole.
    Duration linger = Seconds(10);
    // Null for a model that is not served.
    std::function<std::shared_ptr<const ModelSpec>(const std::string&, std::int64_t)> find;
  };

  // What the parts name outlives the feed.
  explicit LiveFeed(Parts parts);
  ~LiveFeed() { Stop(); }

  // From any thread. `client`: as limits know it. kResourceExhausted beyond kMostWatchers, or
  // kMostOfClient of it; kUnavailable once stopped. A slow watcher loses ticks.
  Expected<std::shared_ptr<FeedWatcher>> Watch(std::string_view client);
  // What was seen while somebody watched. From any thread.
  LiveMinute::Kept Minute() const { return minute_.Copy(LiveMinute::Clock::now()); }
  // Ends all watchers. Idempotent.
  void Stop();

 private:
  static constexpr Duration kTick = Millis(200);
  static constexpr Duration kSecond = Seconds(1);
  static constexpr std::size_t kKeptSeconds = 600;
  // A tick draws no more bars: batches of a lane that follow each other are drawn as one. What
  // does not fit all the same is counted.
  static constexpr std::size_t kMostBars = 120;
  // Nor does it name more instants at which calls of a model were given up.
  static constexpr std::size_t kMostDrops = 500;

  struct Shown {
    std::shared_ptr<const ModelSpec> spec;
    LiveModel model;
  };

  Duration Tick();
  // Whether anybody watches, or did of late.
  bool Watched(bool anybody, std::chrono::steady_clock::time_point now);
  // Calls that ended since the start, by model: all its versions.
  struct Ended {
    OutcomeCounts of_clients{};
    OutcomeCounts steps{};  // of pipelines
  };
  using EndedByName = std::map<std::string, Ended>;
  EndedByName ReadEnded() const;
  // A second is over: for the past, watched or not ...
  void Keep(const RuntimeReading& reading, const EndedByName& by_name);
  // ... and by model, for who watches.
  void Second(const EndedByName& by_name);
  void LearnModels(const RuntimeReading& reading);
  bool SecondIsOver();
  void Count(const LiveMoments::Taken& taken);
  std::string StateText(const RuntimeReading& reading) const;
  std::string PastText() const;
  std::string TickText(const LiveMoments::Taken& taken, const RuntimeReading* second) const;
  static void Send(std::string_view event, const std::string& json,
                   const std::vector<std::shared_ptr<FeedWatcher>>& watchers);
  void Begin();

  const Parts parts_;
  std::mutex mutex_;
  struct Watching {
    std::shared_ptr<FeedWatcher> watcher;
    std::string client;
    bool fresh = true;  // it has had no state yet
  };
  std::vector<Watching> watchers_;
  bool stopped_ = false;

  LiveMinute minute_;

  // The task's own.
  bool watched_ = false;
  std::chrono::steady_clock::time_point left_;  // when somebody watched last
  std::chrono::steady_clock::time_point next_second_;
  std::map<std::string, Shown> shown_;    // by model
  std::vector<std::string> names_;        // of the moments' models
  std::map<std::string, double> ratios_;  // by model: what batches take over the profile
  bool begun_ = false;                    // what was before is known
  std::vector<LaneLoad> lanes_before_;
  Duration uptime_before_{};
  OutcomeCounts ended_before_{};
  ServingMetrics::Refusals refused_before_{};
  ServingMetrics::Refusals refused_{};  // in the last second
  OutcomeCounts ended_{};               // calls of clients in the last second
  std::vector<double> busy_;            // by lane, in the last second
  struct Past {
    double met = 0, missed = 0;  // calls a second
    std::uint64_t waiting = 0;   // rows that wait or run
    double busy = 0;             // the share of their time that the lanes are busy
    double refused = 0;          // calls a second that entered no queue
  };
  std::deque<Past> past_;          // of the last kKeptSeconds, by second
  std::deque<LiveLanes> seconds_;  // of the window
  LiveLanes second_;               // under way
  std::string known_;              // the state that the watchers were told last
  RepeatedTask task_;              // last: it uses the rest
};

}  // namespace tactus
