// Where a call's time went, as browsers, proxies and tracing read it from a Server-Timing field.
#pragma once

#include <string>

#include "service/infer_call.h"

namespace tactus {

// "queue;dur=1.250, exec;dur=3.000" in milliseconds, as far as the call came; where it was not
// served, also why: `refused;desc="expired"`. Times of an emulated device say so. The field's name
// is server-timing, over HTTP and in gRPC's trailing metadata.
std::string ServerTiming(const InferReply& reply);

}  // namespace tactus
