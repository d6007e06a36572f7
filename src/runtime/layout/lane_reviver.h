// Brings lanes back that died under a batch: tries again and again, on a thread of its own, which
// begins with the first loss.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/expected.h"
#include "base/ids.h"
#include "base/serving_time.h"

namespace tactus {

class LaneReviver {
 public:
  struct Options {
    Duration period = Seconds(1);  // from a loss to the first attempt, and between attempts
    // Makes the lane new and opens it, or says why not.
    std::function<Status(LaneId)> revive;
    std::function<void(const std::string&)> log;  // empty: nothing is said
  };
  explicit LaneReviver(Options options) : options_(std::move(options)) {}
  ~LaneReviver() { Stop(); }

  // Quick; from any thread.
  void Lost(LaneId lane, const Error& why);
  // No lane comes back from now on; waits for the attempt under way.
  void Stop();

 private:
  void Run();
  void Say(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<LaneId> lost_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tactus
