// Reads a running server's counters about once a second and keeps the advice that follows from
// them, for the metrics page and for whoever scales the server.
#pragma once

#include <functional>
#include <mutex>

#include "base/serving_time.h"
#include "planners/autoscale/lane_adviser.h"
#include "platform/repeated_task.h"

namespace tactus {

struct LoadSamplerOptions {
  AutoscaleOptions advice;
  Duration window = Seconds(10);   // that the advice looks at
  Duration interval = Seconds(1);  // from one reading to the next
};

// A server's counters at one instant.
struct LoadTotals {
  ServiceTotals totals;
  int lanes = 0;
  std::size_t pending = 0;  // requests that wait or run
};

struct LoadSample {
  LaneAdvice advice;
  std::size_t pending = 0;

  // Somebody has sent a request within the window, or waits for an answer.
  bool active() const { return advice.reading.requests > 0 || pending > 0; }
};

class LoadSampler {
 public:
  // `read` is called on the sampler's thread, and by Start. Validate(options.advice) holds.
  LoadSampler(LoadSamplerOptions options, std::function<LoadTotals()> read);

  // Takes the first reading before it returns.
  void Start();
  void Stop();
  // Takes a reading now; Start's thread does so at each interval.
  void Sample();

  LoadSample latest() const;

  // Called after each reading, on the thread that took it, until it is replaced; an empty function
  // is no follower. The follower before is not called any more when this returns.
  void Follow(std::function<void(const LoadSample&)> follower);

 private:
  const LoadSamplerOptions options_;
  const std::function<LoadTotals()> read_;
  std::mutex sampling_;  // one reading at a time; guards adviser_
  LaneAdviser adviser_;
  mutable std::mutex latest_mutex_;
  LoadSample latest_;
  std::mutex follower_mutex_;  // held while the follower is called
  std::function<void(const LoadSample&)> follower_;
  RepeatedTask thread_;
};

}  // namespace tactus
