// Frames to a model of this process.
#pragma once

#include <memory>
#include <string>

#include "service/inference_service.h"
#include "stream/frame_sink.h"

namespace tactus {

// `service` outlives the sink and every answer to it.
std::shared_ptr<FrameSink> MakeServiceSink(InferenceService& service, std::string model);

}  // namespace tactus
