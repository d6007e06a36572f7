// What the metrics page shows of the runtime that this process serves with.
#pragma once

#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"

namespace tactus {

class StreamSet;

// All but what others know: the advice on lanes, and what a planning thread did. Models and their
// statistics are those of `service`, which stands over the runtime.
RuntimeReading ReadingOf(const Runtime& runtime, const InferenceService& service);

// What became of the frames of the server's streams.
std::vector<StreamFrames> FramesOf(const StreamSet& streams);

}  // namespace tactus
