// One model over the last seconds, as the live page shows it, and why its calls miss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/rng.h"
#include "server/live/live_moments.h"
#include "server/metrics/serving_metrics.h"

namespace tactus {

// The share of its time that the lanes were busy, and the longest batches that they ran: of all
// models, in a second.
struct LiveLanes {
  double busy = 0;
  Duration longest{};
  std::string longest_of;  // the model of that batch
  // The longest of those that took far more than was expected when they were decided.
  Duration stalled{};
  Duration stalled_expected{};
  std::string stalled_of;
  std::int64_t deaths = 0;  // of lanes

  // A batch has run; `expected` is 0 where nobody knows.
  void Note(const std::string& model, Duration took, Duration expected);
  // Those of another second.
  void Join(const LiveLanes& other);
};

// Pure. A window of kSeconds, second by second.
class LiveModel {
 public:
  static constexpr std::size_t kSeconds = 10;
  static constexpr std::size_t kMostLatencies = 512;  // of a second, drawn from all of its

  explicit LiveModel(Duration slo) : slo_(slo) {}

  void SetSlo(Duration slo) { slo_ = slo; }

  void Note(const LiveMoments::Answer& answer);
  // Its `predicted` is what the profile says.
  void Note(const LiveMoments::Batch& batch);
  // A second is over; `total`: calls that ended since the start, `steps`: those of them that were
  // steps of pipelines.
  void Second(const OutcomeCounts& total, const OutcomeCounts& steps);

  struct Window {
    OutcomeCounts ended{};             // by outcome
    OutcomeCounts steps{};             // of those, steps of pipelines
    double seconds = 0;                // that it covers
    Duration p50{}, p99{};             // of calls that were answered; 0: none was
    double slower = 0;                 // batches' time over the profile's; 0: none ran
    double rows = 0;                   // of a batch, in the mean
    std::vector<std::uint64_t> exits;  // calls that were answered, by exit
  };
  Window Last() const;
  // In one sentence with numbers; empty: at least 99 % met their deadline. `lanes`: of the seconds
  // of the window, the newest last. Those in which calls missed say how busy the lanes were.
  std::string WhyMissed(const std::deque<LiveLanes>& lanes) const;

 private:
  struct Piece {
    OutcomeCounts ended{};
    OutcomeCounts steps{};
    double took_s = 0, predicted_s = 0;
    std::uint64_t batches = 0, rows = 0, answers = 0;
    std::vector<std::uint64_t> exits;
    std::vector<Duration> latencies;
  };
  LiveLanes WhenMissed(const std::deque<LiveLanes>& lanes) const;

  Duration slo_;
  std::deque<Piece> pieces_;  // by second
  Piece now_;                 // the second under way
  OutcomeCounts total_{};
  OutcomeCounts total_steps_{};
  bool begun_ = false;  // `total_` is known
  Rng rng_ = Rng::Stream(1, "live");
};

}  // namespace tactus
