#include "serving/runtime_reading.h"

#include <utility>

#include "metrics/report.h"
#include "server/kserve/validation.h"
#include "stream/stream_set.h"

namespace tactus {

MetricsOptions MetricsOptionsOf(const ServeOptions& o, std::string policy, bool predicts) {
  return {.triton_names = o.triton_metrics,
          .slos = {},
          .predicts_slowdowns = predicts,
          .version = std::string(kServerVersion),
          .commit = BuildCommit(),
          .policy = std::move(policy)};
}

RuntimeReading ReadingOf(const Runtime& runtime, const InferenceService& service) {
  RuntimeReading reading{.pending = runtime.pending(),
                         .calls = runtime.calls(),
                         .input_bytes = runtime.input_bytes(),
                         .answer_bytes = runtime.answer_bytes(),
                         .uptime = runtime.uptime(),
                         .lanes = runtime.lane_loads(),
                         .models = service.Index(),
                         .layout = runtime.layout()};
  if (auto statistics = service.Statistics("", -1)) reading.statistics = std::move(*statistics);
  return reading;
}

std::vector<StreamFrames> FramesOf(const StreamSet& streams) {
  std::vector<StreamFrames> all;
  for (const auto& [name, reading, webhook] : streams.readings()) {
    StreamFrames frames{.stream = name,
                        .read = reading.counts.read,
                        .ended = {},
                        .reconnects = reading.reconnects,
                        .running = reading.state == StreamState::kRunning,
                        .webhook = {}};
    for (std::size_t i = 0; i < kFrameEnds; ++i) {
      const FrameEndName end = Name(static_cast<FrameEnd>(i));
      frames.ended.push_back({end.stage, end.reason, reading.counts.ends[i]});
    }
    for (std::size_t i = 0; webhook && i < kWebhookEnds; ++i) {
      frames.webhook.emplace_back(Name(static_cast<WebhookEnd>(i)), webhook->ends[i]);
    }
    all.push_back(std::move(frames));
  }
  return all;
}

}  // namespace tactus
