// Metric families that are read from the runtime when somebody scrapes, rather than counted as
// things happen.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "server/metrics/serving_metrics.h"

namespace prometheus {
struct MetricFamily;
}

namespace tactus {

// How busy lanes were over the last seconds, from readings of their cumulative busy time.
class BusyRatio {
 public:
  // The share of the time since the oldest reading within `kWindow` that each lane was busy; since
  // the start when there is none yet.
  std::vector<double> Update(Duration uptime, const std::vector<LaneLoad>& lanes);

  static constexpr Duration kWindow = Seconds(10);

 private:
  struct Sample {
    Duration uptime{};
    std::vector<LaneLoad> lanes;
  };
  std::deque<Sample> samples_;  // oldest first; at most kMaxSamples
  static constexpr std::size_t kMaxSamples = 64;
};

std::vector<prometheus::MetricFamily> RuntimeFamilies(const RuntimeReading& reading,
                                                      const std::vector<double>& lane_busy);
// Whether the journal is whole, and by how much the loops of HTTP are late, where it is known.
std::vector<prometheus::MetricFamily> ServerFamilies(const RuntimeReading& reading);
// What the server's load says about its lanes; `reading.advice` is there. Their label says where
// the lanes' time is an emulated device's.
std::vector<prometheus::MetricFamily> AutoscaleFamilies(const RuntimeReading& reading);
// How the device is split; `layout.plan` is there.
std::vector<prometheus::MetricFamily> LayoutFamilies(const DeviceLayout& layout);
std::vector<prometheus::MetricFamily> PlanningFamilies(const PlanningReading& planning);
std::vector<prometheus::MetricFamily> StreamFamilies(const std::vector<StreamFrames>& streams);
// What became of the calls of steps that run on other nodes.
std::vector<prometheus::MetricFamily> RemoteFamilies(const std::vector<RemoteStep>& steps);
// Resident memory and processor time, under the names that every exporter uses.
std::vector<prometheus::MetricFamily> ProcessFamilies();
// nv_inference_*: Triton's names and units (microseconds).
std::vector<prometheus::MetricFamily> TritonFamilies(const RuntimeReading& reading,
                                                     const CallsByModel& calls);

}  // namespace tactus
