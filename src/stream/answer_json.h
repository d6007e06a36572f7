// An answered frame as one line of JSON, for those who follow a stream.
#pragma once

#include <cstddef>
#include <string>

#include "stream/stream_runner.h"
#include "stream/webhook.h"

namespace tactus {

// {"stream":"a","frame":12,"captured_ms":...,"latency_ms":31.2,"late":false,"outputs":{"boxes":
// {"datatype":"FP32","shape":[2,4],"data":[...]}}}; a tensor of more than `most_elements` comes
// without its data, FP16, BF16 and what is no text too. Without a line feed.
std::string ToJsonLine(const AnsweredFrame& frame, std::size_t most_elements = 4096);

// A stream's name, configuration, state and counters; what became of its answers at its webhook.
std::string ToJson(const std::string& name, const StreamConfig& config,
                   const StreamReading& reading, const WebhookReading* webhook = nullptr);

}  // namespace tactus
