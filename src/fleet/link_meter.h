// What a link to another node carries, by the calls that cross it: how much went there and back,
// and how long that was on the way. Pure: the instant is a parameter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/serving_time.h"

namespace tactus {

struct LinkReading {
  double mbps = 0;  // 0: not measured
  Duration rtt{};   // 0: not measured

  bool operator==(const LinkReading&) const = default;
};

class LinkMeter {
 public:
  static constexpr Duration kWindow = Seconds(60);
  // Fewer bytes say nothing of a link's rate: what surrounds the call takes as long.
  static constexpr std::uint64_t kLeastBytes = 16 << 10;

  // An exchange of hardly any bytes.
  void AddProbe(TimePoint now, Duration took) { Add(probes_, next_probe_, {now, took, 0}); }
  // A call: bytes there and back, and its time without what it spent at the peer.
  void AddCall(TimePoint now, std::uint64_t bytes, Duration on_the_way) {
    if (bytes >= kLeastBytes) Add(calls_, next_call_, {now, on_the_way, bytes});
  }
  // Reads the last minute: the shortest probe, and the 25th percentile of what calls of some size
  // had of the link beyond it. Conservative: what a call waits for its turn counts as the link's.
  LinkReading Read(TimePoint now) const;

 private:
  struct Sample {
    TimePoint at;
    Duration took{};
    std::uint64_t bytes = 0;
  };
  using Samples = std::array<Sample, 256>;
  static void Add(Samples& samples, std::size_t& next, Sample sample) {
    samples[next++ % samples.size()] = sample;
  }

  Samples probes_{};
  Samples calls_{};
  std::size_t next_probe_ = 0;
  std::size_t next_call_ = 0;
};

}  // namespace tactus
