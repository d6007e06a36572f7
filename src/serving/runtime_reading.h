// What the metrics page shows of the runtime that this process serves with.
#pragma once

#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "server/metrics/serving_metrics.h"
#include "serving/serve_options.h"

namespace tactus {

class StreamSet;

// `policy`, as the page names it, and whether it predicts how much batches slow each other down.
MetricsOptions MetricsOptionsOf(const ServeOptions& options, std::string policy, bool predicts);

// All but what others know: the advice on lanes, and what a planning thread did. Models and their
// statistics are those of `service`, which stands over the runtime.
RuntimeReading ReadingOf(const Runtime& runtime, const InferenceService& service);

// What became of the frames of the server's streams.
std::vector<StreamFrames> FramesOf(const StreamSet& streams);

}  // namespace tactus
