// Frames to a model of another server, over gRPC.
#pragma once

#include <memory>
#include <string>

#include "stream/frame_sink.h"
#include "stream/remote_server.h"

namespace tactus {

// `server`: of any KServe v2 server. Connects when it is first used, and again whenever the
// connection is lost. Its end cancels what is in flight. kInvalidArgument for an address that is
// none, a file that cannot be read, and a token that would go to another machine in the clear.
Expected<std::shared_ptr<FrameSink>> MakeRemoteSink(const RemoteServer& server, std::string model);

}  // namespace tactus
