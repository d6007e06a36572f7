// What became of the frames of video streams.
#include "server/metrics/gauge_family.h"
#include "server/metrics/runtime_families.h"

namespace tactus {

std::vector<MetricFamily> StreamFamilies(const std::vector<StreamFrames>& streams) {
  MetricFamily read = Family("tactus_stream_frames_read_total",
                             "Frames that the stream's source brought.", MetricType::Counter);
  MetricFamily ended =
      Family("tactus_stream_frames_total",
             "Frames of the stream by how they ended; stage answer, reason served is the good one.",
             MetricType::Counter);
  MetricFamily reconnects =
      Family("tactus_stream_reconnects_total", "Times that the stream's source came back.",
             MetricType::Counter);
  MetricFamily running = Family("tactus_stream_running",
                                "1 while the stream's source brings frames.", MetricType::Gauge);
  MetricFamily webhook =
      Family("tactus_stream_webhook_total",
             "Answers of the stream by what became of them at its webhook.", MetricType::Counter);
  for (const StreamFrames& stream : streams) {
    const Labels name{{"stream", stream.stream}};
    Add(read, name, static_cast<double>(stream.read));
    Add(reconnects, name, static_cast<double>(stream.reconnects));
    Add(running, name, stream.running ? 1 : 0);
    for (const StreamFrames::Ended& end : stream.ended) {
      Labels labels = name;
      labels.push_back({"stage", std::string(end.stage)});
      labels.push_back({"reason", std::string(end.reason)});
      Add(ended, std::move(labels), static_cast<double>(end.count));
    }
    for (const auto& [outcome, count] : stream.webhook) {
      Labels labels = name;
      labels.push_back({"outcome", std::string(outcome)});
      Add(webhook, std::move(labels), static_cast<double>(count));
    }
  }
  return {std::move(read), std::move(ended), std::move(reconnects), std::move(running),
          std::move(webhook)};
}

}  // namespace tactus
