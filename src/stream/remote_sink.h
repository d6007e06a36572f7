// Frames to a model of another server, over gRPC.
#pragma once

#include <memory>
#include <string>

#include "stream/frame_sink.h"

namespace tactus {

// `url`: HOST:PORT of any KServe v2 server. Connects when it is first used, and again whenever the
// connection is lost. Its end cancels what is in flight.
Expected<std::shared_ptr<FrameSink>> MakeRemoteSink(const std::string& url, std::string model);

}  // namespace tactus
