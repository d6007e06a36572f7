// What one stream is: where its frames come from, which of them are wanted, and where they go.
//
//   {"source": "rtsp://camera.example/1", "model": "street", "fps": 10, "slo_ms": 300}
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "http_client/post.h"
#include "stream/frame_flow.h"
#include "stream/reconnect.h"
#include "stream/remote_server.h"
#include "stream/video_source.h"

namespace tactus {

struct StreamConfig {
  SourceOptions source;
  std::string model;
  RemoteServer server;             // another one; without a url: this one
  std::optional<HttpUrl> webhook;  // where each answer is sent
  // flow.slo 0: as long as the pipeline promises.
  FlowOptions flow{.slo = Duration{}};
  ReconnectOptions reconnect;
  // For files:
  bool loop = false;     // from the beginning again at the end
  bool realtime = true;  // at the recording's own pace, as a camera; else as fast as frames are
                         // answered, none dropped by the queue
};

// A name in paths and metrics: 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-', not beginning with '.'.
bool IsStreamName(std::string_view name);

// InvalidArgument with the key and what it takes.
Expected<StreamConfig> ParseStreamConfig(std::string_view json);
// The same keys, each with its value.
std::string ToJson(const StreamConfig& config);

}  // namespace tactus
