// What became of steps that were sent to other nodes.
#include "server/metrics/gauge_family.h"
#include "server/metrics/runtime_families.h"

namespace tactus {

std::vector<MetricFamily> RemoteFamilies(const std::vector<RemoteStep>& steps) {
  MetricFamily calls = Family("tactus_remote_step_calls_total",
                              "Calls of a pipeline's step to another node by how they ended there; "
                              "one that failed may have been answered by another node then.",
                              MetricType::Counter);
  MetricFamily bytes = Family("tactus_remote_step_bytes_total",
                              "Bytes of the step's tensors to the node (and of what a group "
                              "of steps is), and of its answers back.",
                              MetricType::Counter);
  MetricFamily seconds =
      Family("tactus_remote_step_seconds_total",
             "Time of the step's answered calls: there (in queues and running at the node), and "
             "link (all else from sending to answer).",
             MetricType::Counter);
  for (const RemoteStep& step : steps) {
    const auto add = [&](MetricFamily& family, const char* label, const char* value, double count) {
      Add(family,
          {{"pipeline", step.pipeline}, {"step", step.step}, {"node", step.node}, {label, value}},
          count);
    };
    add(calls, "outcome", "answered", static_cast<double>(step.answered));
    add(calls, "outcome", "failed", static_cast<double>(step.failed));
    add(bytes, "direction", "out", static_cast<double>(step.bytes_out));
    add(bytes, "direction", "in", static_cast<double>(step.bytes_in));
    add(seconds, "part", "there", ToSeconds(step.there));
    add(seconds, "part", "link", ToSeconds(step.link));
  }
  return {std::move(calls), std::move(bytes), std::move(seconds)};
}

}  // namespace tactus
